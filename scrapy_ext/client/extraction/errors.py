"""Errors of an extraction request: one class per reaction of the caller.

Every error has the problem that the service reported and, redacted as in logs and request records, the fields that were
sent. Rules of the contract
are checked before anything is sent: those raise :class:`~scrapy_ext.api.violations.ContractError` instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from scrapy_ext.api.extraction.problems import CAUSE_HEADER, PROBLEM_TYPES, Cause, Problem, Scope
from scrapy_ext.api.masking import HIDDEN, without_secrets, without_user
from scrapy_ext.client.retry import parse_retry_after

#: Characters of a string that are shown.
LONGEST: Final = 200
#: Items of an array that are shown.
MOST_ITEMS: Final = 20

#: Names of headers and members whose values are credentials, without regard to case and dashes.
_SECRET_NAME: Final = re.compile(
    r"auth|cookie|token|secret|password|api-?key|session|csrf|xsrf|credential", re.IGNORECASE
)
#: Fields of the request body, which may be a login form.
_BODIES: Final = ("httpRequestBody", "httpRequestText")


def redacted(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without credentials, cookies and bodies, and with long values cut."""
    return {name: _field(name, value) for name, value in fields.items()}


def _field(name: str, value: object) -> Any:
    if name in _BODIES and isinstance(value, str):
        return f"({len(value)} characters)"
    if name == "url" and isinstance(value, str):
        return _cut(without_user(value))
    return _value(name, value)


def _value(name: str, value: object) -> Any:
    if isinstance(value, Mapping):
        return _object(name, value)
    if isinstance(value, list | tuple):
        shown = [_value(name, item) for item in value[:MOST_ITEMS]]
        return shown if len(value) <= MOST_ITEMS else [*shown, f"(and {len(value) - MOST_ITEMS} more)"]
    return _cut(value) if isinstance(value, str) else value


def _object(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    shown = {member: _value(member, inner) for member, inner in value.items()}
    for member in shown:
        if _SECRET_NAME.search(member):
            shown[member] = HIDDEN
    # {name, value} pairs: the value of a secret name is secret, and so are all cookies. The text of an action may be a
    # password.
    secret_pair = name == "requestCookies" or _SECRET_NAME.search(str(value.get("name", "")))
    if "value" in shown and secret_pair:
        shown["value"] = HIDDEN
    if name == "actions" and "text" in shown:
        shown["text"] = HIDDEN
    return shown


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


#: Message for an answer, or a page, of more bytes than DOWNLOAD_MAXSIZE.
TOO_LARGE: Final = "%d bytes are more than the %d that DOWNLOAD_MAXSIZE allows"


class ExtractError(Exception):
    """An extraction that failed.

    - ``status``, ``type``, ``title``, ``detail`` and ``blocked_domain``: those of the problem that the service reported
      (extraction-api.md, Problem object); without one ``status`` is None and ``type`` empty.
    - ``cause``: the reason why the site could not be downloaded, a value of
      :class:`~scrapy_ext.api.extraction.problems.Cause`; empty when it is unknown.
    - ``retry_after``: seconds.
    - ``sent``: the fields of the request, with secrets and long values cut (:func:`.redacted`).
    - ``ambiguous``: the service may have done, and billed, the work all the same.
    """

    remedy: str = ""
    ambiguous: bool = False

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        type: str = "",
        title: str = "",
        blocked_domain: str | None = None,
        retry_after: float | None = None,
        sent: Mapping[str, Any] | None = None,
        cause: str = "",
    ) -> None:
        self.status = status
        self.type = type
        self.title = title
        self.detail = without_secrets(detail)
        self.blocked_domain = blocked_domain
        self.retry_after = retry_after
        self.cause = cause
        self.sent: Mapping[str, Any] = redacted(sent) if sent else {}
        super().__init__(self.detail)

    def __str__(self) -> str:
        problem = ": ".join(part for part in (self.title, self.detail) if part).rstrip(".")
        if self.status is not None and self.title != f"HTTP {self.status}":
            problem = " ".join(part for part in (str(self.status), self.type, problem) if part)
        where = f"extraction of {self.sent['url']} failed: " if "url" in self.sent else ""
        return f"{where}{problem}. {self.remedy}".rstrip()

    def __repr__(self) -> str:
        """Return the class and the whole message: errbacks log the representation."""
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def scope(self) -> Scope:
        """The scope of a limit. That of a 429 or 503 without a problem type follows from the status."""
        row = PROBLEM_TYPES.get(self.type)
        if row is not None:
            return row.scope
        return _SCOPE_BY_STATUS.get(self.status or 0, Scope.NONE)


class InvalidRequestError(ExtractError):
    """400 or 413: the service refuses the request as malformed."""


class KeyRefusedError(ExtractError):
    """401: the key is missing or unknown."""

    remedy = "Check the setting EXTRACT_API_KEY: it is the key of the extraction service, not that of the platform."


class AccountSuspendedError(ExtractError):
    """403: the account is suspended, or may not do this."""

    remedy = "Ask the operator of the extraction service about the account of EXTRACT_API_KEY."


class DomainUnreachableError(ExtractError):
    """421: the domain does not exist or does not answer."""


class UnprocessableError(ExtractError):
    """422: the fields contradict each other."""


class BrowserMissingError(UnprocessableError):
    """422: the service has no browser to load the page with."""


class LimitError(ExtractError):
    """429: too many requests, of the user, to the domain, or of the organisation to the domain (``scope``)."""


class OverloadError(ExtractError):
    """503: the service is overloaded."""


class DomainForbiddenError(ExtractError):
    """451: extraction from ``blocked_domain`` is forbidden."""


class ServiceError(ExtractError):
    """500 and other 5xx: the service failed, or its own work took too long."""


class BanError(ExtractError):
    """520: the site banned the service; another attempt may succeed."""


class DownloadError(ExtractError):
    """521: the page cannot be downloaded; another attempt would fail, too."""


class UnreachableServiceError(ExtractError):
    """No whole answer: no connection (then ``ambiguous`` is False), a broken one, or a timeout."""

    remedy = "Check EXTRACT_API_URL, and that the service is up."

    def __init__(self, detail: str, *, ambiguous: bool, cause: str = "", remedy: str = "") -> None:
        super().__init__(detail, cause=cause)
        if remedy:
            self.remedy = remedy
        self.ambiguous = ambiguous
        #: Failed connections to the service in a row, of all requests.
        self.rounds = 0

    @property
    def scope(self) -> Scope:
        """GLOBAL without a connection: then no request reaches the service."""
        return Scope.NONE if self.ambiguous else Scope.GLOBAL


class TooLargeError(ExtractError):
    """The content has more bytes than DOWNLOAD_MAXSIZE, or meta ``download_maxsize``, allows."""

    remedy = "Raise DOWNLOAD_MAXSIZE, or set download_maxsize in the meta of the request."
    ambiguous = True


class OverMemoryError(TooLargeError):
    """One answer takes more memory than all answers together may have."""

    remedy = "Raise EXTRACT_API_MEMORY_LIMIT_MB, if the machine has that memory."


class RedirectFollowedError(ExtractError):
    """The service followed a redirect that the request, the spider or a setting (``kept_by``) excludes."""

    ambiguous = True
    remedy = (
        "Browsers follow redirects by themselves, and so do services without the field followRedirect: ask for "
        "httpResponseBody, send the request direct (meta extract_api False), or allow redirects."
    )

    def __init__(self, kept_by: str, url: str, *, sent: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"the service followed a redirect to {url}, which {kept_by} excludes", sent=sent)
        self.kept_by = kept_by
        self.url = url


class UnexpectedAnswerError(ExtractError):
    """An answer that the service does not give: 200 without a JSON object, a redirect, or a malformed result."""

    remedy = "Check that EXTRACT_API_URL leads to the extraction service, and check the proxies in front of it."
    ambiguous = True


class IncompleteAnswerError(UnexpectedAnswerError):
    """A result without a requested output."""


_SCOPE_BY_STATUS: Final[Mapping[int, Scope]] = {429: Scope.DOMAIN, 503: Scope.GLOBAL}

_BY_STATUS: Final[Mapping[int, type[ExtractError]]] = {
    401: KeyRefusedError,
    403: AccountSuspendedError,
    421: DomainUnreachableError,
    422: UnprocessableError,
    429: LimitError,
    451: DomainForbiddenError,
    503: OverloadError,
    520: BanError,
    521: DownloadError,
}


def error_of(
    status: int, headers: Mapping[str, str], body: bytes | bytearray, sent: Mapping[str, Any] | None = None
) -> ExtractError:
    """Return the error of an answer without success. Its body may be absent, or arbitrary data."""
    if status < 400:
        place = headers.get("Location", "")[:200]
        return UnexpectedAnswerError(f"a redirect to {place}" if place else "no success", status=status, sent=sent)
    problem = Problem.from_answer(status, body)
    detail = problem.detail
    if not detail and "html" in headers.get("Content-Type", ""):
        detail = "an HTML page, not an answer of the extraction service"
    cause = headers.get(CAUSE_HEADER, "")
    kind = _BY_STATUS.get(status, ServiceError if status >= 500 else InvalidRequestError)
    if cause == Cause.NO_BROWSER.value:
        kind = BrowserMissingError
    return kind(
        detail,
        status=status,
        type=problem.type,
        title=problem.title,
        blocked_domain=problem.blocked_domain,
        retry_after=parse_retry_after(headers.get("Retry-After")),
        sent=sent,
        cause=cause,
    )

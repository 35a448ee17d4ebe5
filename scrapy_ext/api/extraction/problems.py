"""Table of all errors of the extraction service, and the exception that has one of its rows.

Causes by problem (extraction-api.md, Errors):

* 421 ``/website/domain-unreachable``: the name does not resolve, the connection is refused, or this server does not
  fetch from the address. A retry does not help.
* 451 ``/download/domain-forbidden``: the domain is on the operator's block list.
* 520 ``/download/temporary-error``: the target timed out, broke the connection or banned the request; or a proxy
  failed. A retry may help.
* 521 ``/download/internal-error``: the target's answer can never become a result (bad certificate, endless redirects,
  more bytes than the limit, a download instead of a page).

The target's own 4xx and 5xx responses are results, with their ``statusCode``, unless they are bans.
"""

from __future__ import annotations

import errno
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec

from scrapy_ext.api.masking import without_user
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS

PROBLEM_CONTENT_TYPE: Final = "application/problem+json"


class Scope(str, Enum):
    """The subject of a rate limit or an overload."""

    NONE = "none"
    USER = "user"
    DOMAIN = "domain"
    ORGANISATION_DOMAIN = "organisation and domain"
    GLOBAL = "global"


CAUSE_HEADER: Final = "Extract-Cause"


class Cause(str, Enum):
    """The cause of a problem in more detail than its type, sent in the header :data:`CAUSE_HEADER`, an extension."""

    HOST_NOT_FOUND = "host-not-found"
    HOST_NOT_ALLOWED = "host-not-allowed"
    CONNECTION_REFUSED = "connection-refused"
    TIMEOUT = "timeout"
    CUT_SHORT = "cut-short"
    TOO_LARGE = "too-large"
    NO_BROWSER = "no-browser"
    BAN = "ban"
    PROXY = "proxy"


class ProblemType(msgspec.Struct, frozen=True):
    """A row of the table of errors. ``extension``: it is no row of the contract's table."""

    type: str
    status: int
    title: str
    condition: str
    scope: Scope = Scope.NONE
    extension: bool = False

    @property
    def retry_after(self) -> bool:
        """Return true when the answer has a ``Retry-After`` header (integer seconds, at least 0)."""
        return self.status in (429, 503, 520)

    @property
    def retryable(self) -> bool:
        """Return true when the contract allows sending the same request again."""
        return self.retry_after or self.status == 500


_TOO_MANY: Final = "Too many requests."
_ORGANISATION_TITLE: Final = "Over Organisation Requests limit for the requested domain"
_ORGANISATION: Final = "Too many requests to one domain by the organisation."
_UNPROCESSABLE: Final = "Request cannot be processed, for example incompatible parameters."
_SUSPENDED: Final = "Account suspended, or not allowed to make the request."
_UNREACHABLE: Final = "Domain invalid or unreachable. Not to be retried."
_ROWS: Final = (
    ProblemType("/request/invalid", 400, "Bad Request", "Malformed request, for example an unrecognised field."),
    ProblemType("/request/invalid-json", 400, "Invalid JSON", "Body is not valid JSON."),
    ProblemType("/auth/not-valid", 401, "Authentication Info Invalid", "No valid authentication information."),
    ProblemType("/auth/key-not-found", 401, "Authentication Key Not Found", "Key invalid or cannot be matched."),
    ProblemType("/auth/account-suspended", 403, "Account Suspended", _SUSPENDED),
    # The contract's table has no 413; a body over its 5 MiB limit gets it (rule 12).
    ProblemType("/request/too-large", 413, "Request Too Large", "Request body over 5 MiB."),
    ProblemType("/website/domain-unreachable", 421, "Domain Unreachable", _UNREACHABLE),
    ProblemType("/request/unprocessable", 422, "Unprocessable Request", _UNPROCESSABLE),
    ProblemType("/limits/over-user-limit", 429, "Over User Requests Limit", _TOO_MANY, Scope.USER),
    ProblemType("/limits/over-domain-limit", 429, "Over Domain Requests Limit", _TOO_MANY, Scope.DOMAIN),
    ProblemType("/limits/over-org-domain-limit", 429, _ORGANISATION_TITLE, _ORGANISATION, Scope.ORGANISATION_DOMAIN),
    ProblemType("/download/domain-forbidden", 451, "Domain Forbidden", "Extraction for the domain is forbidden."),
    ProblemType("/server/internal", 500, "Internal Server Error", "Internal error."),
    ProblemType("/server/timed-out", 500, "Request Timed Out", "The request took too long."),
    ProblemType("/limits/over-global-limit", 503, "Global Requests Limit Reached", "System overload.", Scope.GLOBAL),
    ProblemType("/download/temporary-error", 520, "Website Ban", "No ban-free response in reasonable time."),
    ProblemType("/download/internal-error", 521, "Internal Downloading Error", "Permanent downloading error."),
    # Sessions are an extension; these are the names by which clients of hosted services know their errors.
    ProblemType(
        "/problem/session-expired", 422, "Session Expired", "The session was not used for too long.", extension=True
    ),
    ProblemType("/problem/over-session-limit", 422, "Over Session Limit", "Too many open sessions.", extension=True),
    ProblemType(
        "/problem/session-creation-error",
        503,
        "Session Creation Error",
        "The session could not be begun.",
        extension=True,
    ),
)
PROBLEM_TYPES: Final[dict[str, ProblemType]] = {row.type: row for row in _ROWS}
#: Types of refusals before the operation, by status.
_REFUSALS: Final = {400: "/request/invalid", 429: "/limits/over-user-limit", 503: "/limits/over-global-limit"}


class Problem(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The body of an error (RFC 9457); ``blocked_domain`` only in the 451 problem."""

    type: str
    title: str
    status: int
    detail: str
    blocked_domain: str | None = None

    @classmethod
    def of(cls, type: str, detail: str, *, blocked_domain: str | None = None) -> Problem:
        """Return the problem of a row of :data:`PROBLEM_TYPES`."""
        row = PROBLEM_TYPES[type]
        return cls(type, row.title, row.status, detail, blocked_domain)

    @classmethod
    def of_refusal(cls, status: int, detail: str) -> Problem:
        """Return the problem of a request that is refused before the operation: of a row that has this status, or
        without a type of the contract, as RFC 9457 has it."""
        if status in _REFUSALS:
            return cls.of(_REFUSALS[status], detail)
        return cls("about:blank", HTTPStatus(status).phrase, status, detail)

    @classmethod
    def from_answer(cls, status: int, body: bytes | bytearray) -> Problem:
        """Read an error answer, whose body may be missing or not a problem.

        Absent members and those of a wrong type are derived from the HTTP status (extraction-api.md, Errors).
        """
        try:
            decoded: object = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            decoded = None
        members: dict[str, Any] = decoded if isinstance(decoded, dict) else {}

        def text(name: str, default: str) -> str:
            value = members.get(name)
            return value if isinstance(value, str) else default

        blocked = members.get("blockedDomain")
        return cls(
            type=text("type", ""),
            title=text("title", f"HTTP {status}"),
            status=status,
            detail=text("detail", ""),
            blocked_domain=blocked if isinstance(blocked, str) else None,
        )


# ── the exception ──

#: Default ``Retry-After`` in seconds, by problem.
RETRY_AFTER: Final = {
    "/limits/over-global-limit": 2,
    "/download/temporary-error": 5,
    "/problem/session-creation-error": 5,
}


class ExtractionError(Exception):
    """A request that ends in a problem of the contract's table.

    ``detail`` is shown to the caller, and ``remedy`` after it: neither contains an address, a path or a secret of the
    server. Credentials in their URLs are removed.
    """

    def __init__(
        self,
        type: str,
        detail: str,
        cause: Cause | None = None,
        *,
        remedy: str = "",
        blocked_domain: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        detail = without_user(f"{detail} {remedy}".rstrip())
        super().__init__(detail)
        self.problem = Problem.of(type, detail, blocked_domain=blocked_domain)
        self.cause = cause
        if retry_after is None and PROBLEM_TYPES[type].retry_after:
            retry_after = RETRY_AFTER[type]
        self.retry_after = retry_after


#: The target cannot be reached (421).
unreachable: Final = partial(
    ExtractionError, "/website/domain-unreachable", remedy="Check the host and the port of the URL."
)
#: The target may answer later (520).
temporary: Final = partial(ExtractionError, "/download/temporary-error", remedy="Send the request again later.")
#: The target's answer can never become a result (521).
permanent: Final = partial(
    ExtractionError, "/download/internal-error", remedy="Leave this URL out: another attempt would fail, too."
)
#: The request is not supported (422).
unprocessable: Final = partial(ExtractionError, "/request/unprocessable")
#: The server is at capacity (503).
overloaded: Final = partial(ExtractionError, "/limits/over-global-limit")
#: The request took too long (500).
timed_out: Final = partial(
    ExtractionError,
    "/server/timed-out",
    cause=Cause.TIMEOUT,
    remedy="Send the request again, or request less at a time.",
)
#: An internal error (500).
internal: Final = partial(
    ExtractionError, "/server/internal", remedy="Ask the operator: the log of the server names the cause."
)


def forbidden(host: str, domain: str) -> ExtractionError:
    """Return the problem of a domain that the operator blocks (451)."""
    detail = (
        f"The operator of this server has blocked extraction from {host}. Ask the operator to take it off --block-list."
    )
    return ExtractionError("/download/domain-forbidden", detail, blocked_domain=domain)


def over_limit(type: str, detail: str, wait: int) -> ExtractionError:
    """Return the problem of an exceeded rate of a key, a domain, or both (429); ``wait`` in seconds."""
    return ExtractionError(type, detail, retry_after=wait)


_BY_ERRNO: Final = {
    errno.ECONNREFUSED: "refused the connection",
    errno.ENETUNREACH: "is on a network that cannot be reached",
    errno.EHOSTUNREACH: "cannot be reached",
    errno.EADDRNOTAVAIL: "cannot be reached",
    errno.EACCES: "cannot be reached",
}


def connection_failed(host: str, port: int, error: OSError) -> ExtractionError:
    """Return the problem of a connection that failed or broke."""
    reason = _BY_ERRNO.get(error.errno or 0)
    if reason is not None:
        refused = error.errno == errno.ECONNREFUSED
        return unreachable(f"{host}:{port} {reason}.", Cause.CONNECTION_REFUSED if refused else None)
    if isinstance(error, TIMEOUT_ERRORS):
        return temporary(f"{host}:{port} did not answer in time.", Cause.TIMEOUT)
    return temporary(f"The connection to {host}:{port} broke off.")

"""Result of a page in the browser, and the problems of one that has none."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction import Cause, Header, Redirect
from scrapy_ext.api.extraction.problems import ExtractionError, permanent, temporary, unreachable
from scrapy_ext.server.extraction.session_state import SessionState


class BusyPageError(ExtractionError):
    """The scripts of a page left no time to read it (520), whichever way it came."""

    def __init__(self, url: str) -> None:
        detail = f"{url} kept its page busy for too long to be read. Send the request again, or use httpResponseBody."
        super().__init__("/download/temporary-error", detail, Cause.TIMEOUT)


class PageResult(msgspec.Struct, kw_only=True):
    """The data that was taken from a page."""

    url: str
    status: int | None
    #: Redirects from the URL of the request to the page. Navigations by the page itself are no redirects.
    redirects: list[Redirect] | None = None
    headers: list[Header] | None = None
    html: str | None = None
    #: The HTML for automatic extraction, with shadow roots and what styles say; None where it is not available.
    styles: str | None = None
    #: Kind of a file that is shown in a viewer (:mod:`..documents`); ``html`` is its text. "" for a page.
    viewed: str = ""
    screenshot: bytes | None = None
    captured: list[dict[str, Any]] | None = None
    #: Of the session of the request.
    state: SessionState | None = None
    actions: list[dict[str, Any]] | None = None
    cookies: list[dict[str, Any]] | None = None
    #: The body of the document as received; None where it is not available.
    document: bytes | None = None
    #: The header of that name, or "".
    retry_after: str = ""
    #: It was waited for a challenge, which led to this page.
    passed_challenge: bool = False
    #: Scripts or actions led to another document.
    has_moved: bool = False


# ── errors of Chromium's navigations, as problems of the extraction API ──


#: Errors that are not temporary, by their meaning.
_UNREACHABLE: Final = {
    "NAME_NOT_RESOLVED": Cause.HOST_NOT_FOUND,
    "ADDRESS_UNREACHABLE": None,
    "CONNECTION_REFUSED": Cause.CONNECTION_REFUSED,
    "INVALID_URL": None,
}
_CUT_SHORT: Final = ("CONTENT_LENGTH_MISMATCH", "INCOMPLETE_CHUNKED")
_PERMANENT: Final = {
    "ERR_CERT": "has no valid certificate",
    "ERR_SSL": "does not speak TLS as it should",
    "TOO_MANY_REDIRECTS": "redirects without end",
    "REDIRECT": "redirects to something that may not be requested",
    "UNKNOWN_URL_SCHEME": "redirects to something that is not an http or https URL",
    "UNSAFE_PORT": "is on a port that browsers refuse",
    "INVALID_": "answered with something that is not HTTP",
    "CONTENT_DECODING": "answered with a content coding that does not decode",
    "RESPONSE_HEADERS": "answered with headers that browsers refuse",
    "BLOCKED_BY": "answered with a page that browsers refuse to show",
}


def navigation_problem(url: str, message: str) -> ExtractionError:
    """Return the problem of a navigation to a URL, or of the body of its document, that ended with an error."""
    code = message.partition("net::")[2].split(" ", 1)[0].strip() or "ERR_FAILED"
    for name, cause in _UNREACHABLE.items():
        if name in code:
            return unreachable(f"{url} cannot be reached ({code}).", cause)
    for name, words in _PERMANENT.items():
        if name in code:
            return permanent(f"{url} {words} ({code}).")
    if any(name in code for name in _CUT_SHORT):
        return temporary(f"{url} broke off in the middle of its answer ({code}).", Cause.CUT_SHORT)
    timeout = Cause.TIMEOUT if "TIMED_OUT" in code else None
    return temporary(f"{url} could not be loaded ({code}).", timeout)

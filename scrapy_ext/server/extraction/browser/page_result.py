"""Result of a page in the browser, and the error of one that is too busy to have one."""

from __future__ import annotations

from typing import Any

import msgspec

from scrapy_ext.api.extraction import Cause, Header, Redirect
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.extraction.session_state import SessionState


class BusyPageError(ExtractionError):
    """The scripts of a page left no time to read it (520), whichever way it came."""

    def __init__(self, url: str) -> None:
        detail = f"{url} kept its page busy for too long to be read."
        super().__init__("/download/temporary-error", detail, Cause.TIMEOUT)


class PageResult(msgspec.Struct, kw_only=True):
    """The data that was taken from a page."""

    url: str
    status: int | None
    #: Redirects from the URL of the request to the page. Navigations by the page itself are no redirects.
    redirects: list[Redirect] | None = None
    headers: list[Header] | None = None
    html: str | None = None
    #: The HTML with computed styles, for automatic extraction; None where they are not available.
    styles: str | None = None
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

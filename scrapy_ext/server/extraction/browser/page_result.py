"""Result of a page in the browser."""

from __future__ import annotations

from typing import Any

import msgspec

from scrapy_ext.api.extraction import Header, Redirect
from scrapy_ext.server.extraction.session_state import SessionState


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

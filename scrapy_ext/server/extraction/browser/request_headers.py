"""``requestHeaders`` in the browser: they go to the page itself, not to what it loads from others.

They are added to each navigation of the page, its redirects too, wherever it goes; credentials, and headers whose names
tell of keys, tokens and the like, go to the origin of the URL that was asked for, and to no other. By DevTools:
Playwright shows no redirects, and would have every request of the page pass through this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Final

from playwright.async_api import CDPSession, Error
from yarl import URL

from scrapy_ext.api.extraction import Header
from scrapy_ext.api.extraction.private_headers import is_private_header
from scrapy_ext.server.extraction.outgoing import is_dropped

#: They are told to the browser when it opens the page, and when it goes to the URL.
_ELSEWHERE: Final = ("user-agent", "referer")


async def send_headers(session: CDPSession, headers: Iterable[Header], url: str) -> None:
    """Have a page that was not navigated yet send the headers of a request for ``url``."""
    extra = {
        header.name.lower(): header.value
        for header in headers
        if not is_dropped(header.name) and header.name.lower() not in _ELSEWHERE
    }
    if not extra:
        return
    origin = URL(url, encoded=True).origin()
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]

    async def go_on(event: dict[str, Any]) -> None:
        going: dict[str, Any] = {"requestId": event["requestId"]}
        if event["frameId"] == frame:
            request = event["request"]
            sent = {name.lower(): value for name, value in request["headers"].items()} | extra
            if not _is_of(origin, request["url"]):
                sent = {name: value for name, value in sent.items() if not is_private_header(name)}
            going["headers"] = [{"name": name, "value": value} for name, value in sent.items()]
        # It fails where the page goes elsewhere already, or is gone.
        with contextlib.suppress(Error):
            await session.send("Fetch.continueRequest", going)

    session.on("Fetch.requestPaused", go_on)
    await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})


def _is_of(origin: URL, url: str) -> bool:
    try:
        return URL(url, encoded=True).origin() == origin
    except ValueError:
        return False  # What has no origin.

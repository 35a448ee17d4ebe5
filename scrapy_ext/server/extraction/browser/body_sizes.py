"""Sizes of the bodies that a page receives, as they are after decompression.

Playwright reports the bytes on the wire, of which a compressed body can have a thousandth. DevTools reports the
decompressed ones while they arrive, so that the size of a body is known before it is brought out of the browser. Frames
of other sites are processes of their own, with DevTools of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from playwright.async_api import CDPSession, Error, Frame, Page

#: URLs whose sizes are kept, the last ones.
_MOST: Final = 5000


class BodySizes:
    """Create it before the page is navigated, and :meth:`start` it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        #: Bytes of the largest body so far, by URL.
        self._sizes: dict[str, int] = {}
        self._starting: set[asyncio.Task[None]] = set()
        page.on("framenavigated", self._navigated)

    def of(self, url: str) -> int | None:
        """Return the bytes of the largest body that a URL had; None if they are unknown."""
        return self._sizes.get(_without_fragment(url))

    async def start(self, devtools: CDPSession) -> None:
        """Note the sizes that a session of DevTools reports."""
        urls: dict[str, str] = {}
        received: dict[str, int] = {}

        def begun(event: dict[str, Any]) -> None:
            url = urls[event["requestId"]] = _without_fragment(event["response"]["url"])
            self._note(url, 0)

        def arrived(event: dict[str, Any]) -> None:
            number = event["requestId"]
            received[number] = received.get(number, 0) + event["dataLength"]
            if number in urls:
                self._note(urls[number], received[number])

        def ended(event: dict[str, Any]) -> None:
            urls.pop(event["requestId"], None)
            received.pop(event["requestId"], None)

        devtools.on("Network.responseReceived", begun)
        devtools.on("Network.dataReceived", arrived)
        devtools.on("Network.loadingFinished", ended)
        devtools.on("Network.loadingFailed", ended)
        # This session keeps no bodies; that of Playwright does.
        await devtools.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})

    def _note(self, url: str, size: int) -> None:
        largest = max(self._sizes.pop(url, 0), size)
        if len(self._sizes) >= _MOST:
            del self._sizes[next(iter(self._sizes))]
        self._sizes[url] = largest

    def _navigated(self, frame: Frame) -> None:
        if frame.parent_frame is not None:
            task = asyncio.ensure_future(self._start_in(frame))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_in(self, frame: Frame) -> None:
        # It fails for a frame in the process of the page, which the session of the page reports, and one that is gone.
        with contextlib.suppress(Error):
            await self.start(await self._page.context.new_cdp_session(frame))


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]

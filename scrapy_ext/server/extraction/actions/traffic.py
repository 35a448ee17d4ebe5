"""What a page's network does: whether it is quiet, and which navigation the page stands at."""

from __future__ import annotations

import asyncio
from typing import Final

from playwright.async_api import Frame, Page, Request

#: Kinds of request that stay open by design, and so say nothing of whether a page is ready.
_ENDLESS: Final = frozenset({"eventsource", "websocket", "media", "ping", "cspviolationreport"})


class Traffic:
    """Follows the requests of one page and of its frames."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        self._last = asyncio.get_running_loop().time()
        self._quiet_until: float | None = None
        #: The last navigation that the page itself began.
        self.navigation: Request | None = None
        #: The one whose document it shows, of which ``statusCode`` and headers are told.
        self.arrived: Request | None = None
        page.on("framenavigated", self._navigated)
        page.on("request", self._started)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def stir(self) -> None:
        """Something is about to be done in the page: only quiet from now on is quiet."""
        self._last = asyncio.get_running_loop().time()

    async def quiet(self, needed: float, at_most: float) -> bool:
        """Wait until no request was open for ``needed`` seconds; False when that was not within ``at_most``."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ends = begun + at_most
        while (now := loop.time()) < ends:
            since = max(self._last, begun) if not self._open else now
            if now - since >= needed:
                self._quiet_until = self._last
                return True
            await asyncio.sleep(min(since + needed, ends) - now)
        self._quiet_until = None
        return False

    @property
    def is_disturbed(self) -> bool:
        """Whether a network that had become quiet did not stay so."""
        return self._quiet_until is not None and self._last > self._quiet_until

    def _started(self, request: Request) -> None:
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.navigation = request
            # Requests of the document before may never be told as ended.
            self._open.clear()
        if request.resource_type not in _ENDLESS:
            self._open.add(request)
        self._last = asyncio.get_running_loop().time()

    def _navigated(self, frame: Frame) -> None:
        if frame == self._page.main_frame:
            self.arrived = self.navigation

    def _ended(self, request: Request) -> None:
        self._open.discard(request)
        self._last = asyncio.get_running_loop().time()

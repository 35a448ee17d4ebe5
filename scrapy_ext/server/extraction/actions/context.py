"""The page that actions run in, with its requests, responses and navigations."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from playwright.async_api import CDPSession, Error, Frame, Locator, Page, Request, Response

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.extraction.actions.action import Selector


class ActionError(Exception):
    """An action failed; the message is for the caller."""


#: Kinds of request that stay open by design, which do not count for a quiet network.
_ENDLESS: Final = frozenset({"eventsource", "websocket", "media", "ping", "cspviolationreport"})


class Traffic:
    """The open requests of one page and of its frames."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        #: Requests for documents of frames, whose bodies are being received.
        self._received: set[Request] = set()
        self._last = asyncio.get_running_loop().time()
        self._quiet_until: float | None = None
        #: The last navigation that the page itself began.
        self.navigation: Request | None = None
        #: The navigation to the current document, whose ``statusCode`` and headers are reported.
        self.arrived: Request | None = None
        #: Number of documents so far.
        self.documents = 0
        page.on("framenavigated", self._navigated)
        page.on("request", self._started)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def stir(self) -> None:
        """Note that something begins in the page: the network counts as quiet only from now on."""
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

    def stop(self) -> None:
        """Count documents that are being received as ended: of one that was stopped, no end is reported."""
        self._open -= self._received
        self._received.clear()

    @property
    def is_disturbed(self) -> bool:
        """True if requests followed after the network had become quiet."""
        return self._quiet_until is not None and self._last > self._quiet_until

    def _started(self, request: Request) -> None:
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.navigation = request
            # The end of requests of the previous document may never be reported.
            self._open.clear()
            self._received.clear()
        if request.resource_type not in _ENDLESS:
            self._open.add(request)
        self._last = asyncio.get_running_loop().time()

    def _navigated(self, frame: Frame) -> None:
        self._received |= {each for each in self._open if each.is_navigation_request() and each.frame == frame}
        if frame == self._page.main_frame and self.arrived is not self.navigation:
            self.arrived = self.navigation
            self.documents += 1

    def _ended(self, request: Request) -> None:
        self._open.discard(request)
        self._received.discard(request)
        self._last = asyncio.get_running_loop().time()


#: Requests and responses of a page that are kept, the last ones.
_KEPT: Final = 5_000
#: Time limit of taking a page back, in seconds.
_BACK: Final = 5.0


class ActionContext:
    """A page for its actions. ``check`` raises :class:`ExtractionError` when the document is not a page.

    Create it before the page is navigated, so that it sees all requests.
    """

    def __init__(
        self,
        page: Page,
        devtools: CDPSession,
        traffic: Traffic,
        quiet: float,
        check: Callable[[], Awaitable[Response | None]],
    ) -> None:
        self.page = page
        #: For functions that Playwright does not have.
        self.devtools = devtools
        self.traffic = traffic
        self.quiet = quiet
        self._check = check
        self._seen: deque[tuple[int, bool, str]] = deque(maxlen=_KEPT)
        self._count = 0
        self._since = 0
        self._news = asyncio.Event()
        self._url = ""
        #: The navigation of the page when the last action that is no wait began.
        self.stood_at: Request | None = None
        page.on("request", lambda request: self._see(False, request.url))
        page.on("response", lambda response: self._see(True, response.url))

    def elements(self, selector: Selector | None) -> Locator:
        """Return the elements that a selector finds."""
        if selector is None:
            raise ActionError("it needs a selector")  # never: the table's `needs` were checked
        if selector.type == "text":
            return self.page.get_by_text(selector.value)
        return self.page.locator(f"{selector.type}={selector.value}")

    def mark(self) -> None:
        """Note that an action that is no wait begins: later waits are for events from now on."""
        self._since = self._count
        self.stood_at = self.traffic.arrived
        self._url = self.page.url
        self.traffic.stir()

    async def seen(self, matches: Callable[[str], bool], *, answered: bool) -> None:
        """Wait until a request whose URL matches was sent, or answered, since the last mark."""
        while not any(matches(url) for url in self._urls(answered)):
            self._news.clear()
            await self._news.wait()

    async def back_from_nowhere(self) -> str:
        """Take a page back that was led to something that is no page; return the error, or "" at a page."""
        nowhere = await self._nowhere()
        if nowhere:
            with contextlib.suppress(Error):
                await self.page.go_back(wait_until="domcontentloaded", timeout=1000 * _BACK)
            if self._url and await self._nowhere():
                # The browser's history may have no entry to go back to.
                with contextlib.suppress(Error):
                    await self.page.goto(self._url, wait_until="domcontentloaded", timeout=1000 * _BACK)
        return nowhere

    async def _nowhere(self) -> str:
        """Return why the document is not a page, or ""."""
        try:
            await self._check()
        except ExtractionError as failure:
            return str(failure)
        return ""

    def _see(self, answered: bool, url: str) -> None:
        self._count += 1
        self._seen.append((self._count, answered, url))
        self._news.set()

    def _urls(self, answered: bool) -> Iterator[str]:
        return (url for number, kind, url in self._seen if number > self._since and kind is answered)

"""An action as a caller writes it, and the page that it runs in with its requests, responses and navigations."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import msgspec
from playwright.async_api import CDPSession, Error, Frame, Locator, Page, Request, Response

from scrapy_ext.api.extraction.errors import ExtractionError


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An element: the first that a CSS selector, an XPath or a visible text finds.

    ``state`` is what ``waitForSelector`` waits for.
    """

    value: str
    type: str = "css"
    state: str = "visible"


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One action. Which members an action of its kind takes is in :data:`~.reading.ACTIONS`."""

    action: str
    selector: Selector | None = None
    text: str = ""
    key: str = ""
    values: list[str] = []
    button: str = "left"
    delay: float = 0.0
    timeout: float | None = None
    wait_for_navigation_timeout: float = 0.0
    wait_until: str = "load"
    url: str = ""
    url_pattern: str = ""
    url_matching_options: str = "contains"
    source: str = ""
    max_scroll_count: int | None = None
    max_scroll_delay: float = 3.0
    max_page_height: int | None = None
    top: int = 0
    left: int = 0
    on_error: str = "return"
    #: Why the service does not do it. No member: nobody but the service sets it.
    refused: str = ""


class ActionError(Exception):
    """An action failed; the message is for the caller."""


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


#: Requests and responses of a page that are remembered, the last ones.
_KEPT: Final = 5_000
#: For a page to be back where it was.
_BACK: Final = 5.0


class ActionContext:
    """A page for its actions. ``check`` raises :class:`ExtractionError` when the page stands at something that is none.

    Make it before the page is navigated, so that it sees all requests.
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
        #: What says to the browser what Playwright has no word for.
        self.devtools = devtools
        self.traffic = traffic
        self.quiet = quiet
        self._check = check
        self._seen: deque[tuple[int, bool, str]] = deque(maxlen=_KEPT)
        self._count = 0
        self._since = 0
        self._news = asyncio.Event()
        self._url = ""
        #: Where the page stood when the last action that is no wait began.
        self.stood_at: Request | None = None
        page.on("request", lambda request: self._see(False, request.url))
        page.on("response", lambda response: self._see(True, response.url))

    def elements(self, selector: Selector | None) -> Locator:
        """What a selector finds."""
        assert selector is not None  # noqa: S101  (the table's `needs` were checked)
        if selector.type == "text":
            return self.page.get_by_text(selector.value)
        return self.page.locator(f"{selector.type}={selector.value}")

    def mark(self) -> None:
        """An action that is no wait begins: the waits after it are for what comes from now on."""
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
        """Take a page that was led to what is no page back to where it was; why, or nothing when it is at a page."""
        nowhere = await self._nowhere()
        if nowhere:
            with contextlib.suppress(Error):
                await self.page.go_back(wait_until="domcontentloaded", timeout=1000 * _BACK)
            if self._url and await self._nowhere():
                # What leads away may leave no way back in the history of the browser.
                with contextlib.suppress(Error):
                    await self.page.goto(self._url, wait_until="domcontentloaded", timeout=1000 * _BACK)
        return nowhere

    async def _nowhere(self) -> str:
        """Why the page stands at what is no page, or nothing."""
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

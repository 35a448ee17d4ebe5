"""Where actions play: one page, and what has come and gone in it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from playwright.async_api import CDPSession, Error, Locator, Page, Request, Response

from scrapy_ext.api.extraction.errors import ExtractionError
from scrapy_ext.server.extraction.actions.records import Selector
from scrapy_ext.server.extraction.actions.traffic import Traffic

#: Requests and responses of a page that are remembered, the last ones.
_KEPT: Final = 5_000
#: For a page to be back where it was.
_BACK: Final = 5.0


class Stage:
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

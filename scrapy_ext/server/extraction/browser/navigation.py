"""A page of the browser before it is navigated (``requestHeaders``, ``requestCookies``), and until it is loaded.

Headers go to the page itself, not to what it loads from others. They are added to each navigation of the page, its
redirects too, wherever it goes; credentials, and headers whose names indicate keys, tokens and the like, go to the
origin of the requested URL only. DevTools sends them: Playwright shows no redirects, and would have every request of
the page pass through this process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from playwright.async_api import CDPSession, Error, Request
from yarl import URL

from scrapy_ext.api.extraction import Header
from scrapy_ext.api.extraction.forms import COOKIE_PREFIXES, is_private_header
from scrapy_ext.api.extraction.problems import unprocessable
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.actions.context import Traffic
from scrapy_ext.server.extraction.browser.open_page import OpenPage
from scrapy_ext.server.extraction.browser.page_clock import PageClock, RealClockNeededError
from scrapy_ext.server.extraction.outgoing import Cookie, in_order, is_dropped

#: Headers that Playwright sets when it opens the page and navigates.
_ELSEWHERE: Final = ("user-agent", "referer")


async def send_headers(session: CDPSession, frame: str, headers: Iterable[Header], url: str) -> None:
    """Set the headers of a request for ``url`` on a page, by its frame, that was not navigated yet."""
    extra = {
        header.name.lower(): header
        for header in headers
        if not is_dropped(header.name) and header.name.lower() not in _ELSEWHERE
    }
    if not extra:
        return
    origin = URL(url, encoded=True).origin()

    async def go_on(event: dict[str, Any]) -> None:
        going: dict[str, Any] = {"requestId": event["requestId"]}
        if event["frameId"] == frame:
            request = event["request"]
            sent = {name.lower(): Header(name, value) for name, value in request["headers"].items()} | extra
            if not _is_of(origin, request["url"]):
                sent = {name: header for name, header in sent.items() if not is_private_header(name)}
            going["headers"] = [{"name": header.name, "value": header.value} for header in in_order(sent.values())]
        # It fails where the page navigates elsewhere already, or was closed.
        with contextlib.suppress(Error):
            await session.send("Fetch.continueRequest", going)

    session.on("Fetch.requestPaused", go_on)
    await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})


def _is_of(origin: URL, url: str) -> bool:
    try:
        return URL(url, encoded=True).origin() == origin
    except ValueError:
        return False  # A URL without an origin.


#: Prefixes of names (RFC 6265bis, 4.1.3) with which a cookie is sent over https alone, hidden from scripts, or for one
#: host alone, which excludes a domain.
_HTTP_ONLY: Final = ("__http-", "__host-http-")
_OF_ONE_HOST: Final = "__host-"


async def set_cookies(session: CDPSession, cookies: Sequence[Cookie], url: str) -> None:
    """Set the cookies of a request for ``url``; raises :class:`ExtractionError` (422) for a refused one.

    DevTools sets them: Playwright takes no path for a cookie of one host alone.
    """
    first: dict[tuple[str, str | None, str], Cookie] = {}
    for cookie in cookies:
        first.setdefault(cookie.key, cookie)
    params = [_param(cookie, url) for cookie in first.values()]
    try:
        await session.send("Network.setCookies", {"cookies": params})
    except Error:
        # All or none of them were set, and the error does not name the wrong one.
        for cookie, param in zip(first.values(), params, strict=True):
            try:
                taken = (await session.send("Network.setCookie", param))["success"]
            except Error:
                taken = False
            if not taken:
                raise unprocessable(
                    f"requestCookies[{cookies.index(cookie)}] ({cookie.name[:60]}) is one that browsers refuse. "
                    "Check its length, its domain, expires (seconds since 1970), and the rules of names with __Host-."
                ) from None
        raise


def _param(cookie: Cookie, url: str) -> dict[str, Any]:
    """Return a cookie as DevTools takes it: for the host of a URL, or for a domain."""
    prefix = cookie.name.lower()
    param: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "path": cookie.path,
        "expires": cookie.expires,
        "httpOnly": cookie.http_only or prefix.startswith(_HTTP_ONLY),
        "secure": cookie.secure or prefix.startswith(COOKIE_PREFIXES),
        "sameSite": cookie.same_site,
    }
    if cookie.domain is None:
        page = URL(url, encoded=True).with_path("/").with_user(None)
        param["url"] = str(page.with_scheme("https") if param["secure"] else page)
    elif prefix.startswith(_OF_ONE_HOST):
        param["url"] = f"https://{cookie.domain.lstrip('.')}/"
    else:
        param["domain"] = cookie.domain
    return {name: value for name, value in param.items() if value is not None}


# ── wait until a page is loaded, and its network is quiet ──
#
# A page is loaded when its ``load`` event came. That event never comes for a document whose loading was stopped, by
# ``window.stop()`` for example, or whose body ends in an error: DevTools reports the end of the loading then, and
# Playwright the error. A page that navigates without end is refused after :data:`_MOST_DOCUMENTS`.


#: Documents in a row that each moved on to the next without an action; more is a loop.
_MOST_DOCUMENTS: Final = 20


class Settling:
    """The loading of the documents of a page. Create it before the page is navigated."""

    def __init__(self, opened: OpenPage, traffic: Traffic, clock: PageClock, limits: ServiceLimits) -> None:
        self._page = opened.page
        self._frame = opened.frame
        self._traffic = traffic
        self._clock = clock
        self._limits = limits
        self._ended = asyncio.Event()
        self._counted = 0
        opened.devtools.on("Page.frameStartedLoading", self._started)
        opened.devtools.on("Page.frameStoppedLoading", self._stopped)
        opened.devtools.on("Page.loadEventFired", lambda _: self._ended.set())
        for event in ("crash", "close"):
            opened.page.on(event, lambda _: self._ended.set())
        opened.page.on("framenavigated", lambda _: self._check_count())
        opened.page.on("requestfailed", self._failed)

    async def wait(self, may_forward: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Wait for the end of the loading, then for a quiet network, each within its limit.

        If ``may_forward`` returns true for a page that does nothing for ``limits.observe``, the page's clock is set
        forward by the rest of the quiet time. Then this may raise :class:`RealClockNeededError`.
        """
        self._counted = self._traffic.documents
        try:
            async with timeout_after(self._limits.load):
                await self._ended.wait()
        except TIMEOUT_ERRORS:
            return  # A page that is still loading will not be quiet either.
        begun, limits = asyncio.get_running_loop().time(), self._limits
        if may_forward is not None and limits.observe < limits.quiet:
            waited = await self._observe(may_forward, begun)
            if waited < limits.quiet:
                await self._forward(limits.quiet - waited, begun + limits.settle)
                return
        await self._traffic.quiet(limits.quiet, limits.settle, begun=begun)

    async def _observe(self, may_forward: Callable[[], Awaitable[bool]], begun: float) -> float:
        """Wait until the page does nothing and the network is quiet; return the seconds for which it was, or all of
        them where the clock may not be set forward.
        """
        limits, traffic = self._limits, self._traffic
        document, waited = traffic.arrived, limits.observe
        while waited < limits.quiet:
            quiet = traffic.quiet(waited, limits.settle, begun=begun)
            is_quiet, forwards = await asyncio.gather(quiet, may_forward())
            if not (is_quiet and forwards) or traffic.has_streams or traffic.arrived is not document:
                break
            if not await self._clock.query():
                return waited
            waited += limits.observe
        return limits.quiet

    async def _forward(self, seconds: float, ends: float) -> None:
        """Set the page's clock forward until its network is quiet by that clock, in real time until ``ends``."""
        loop, limits, traffic = asyncio.get_running_loop(), self._limits, self._traffic
        is_quiet = False
        for _ in range(max(1, round(limits.settle / limits.quiet))):
            events = traffic.events
            works = await self._clock.forward(seconds, ends - loop.time())
            if works or traffic.events != events or not self._ended.is_set():
                await self._pace(ends)
            is_quiet = traffic.events == events
            if (is_quiet and self._ended.is_set()) or loop.time() >= ends:
                break
            seconds = limits.quiet - limits.observe
        traffic.note_quiet(is_quiet)
        if traffic.has_streams or not self._ended.is_set() or not await self._clock.governs(len(self._page.frames)):
            raise RealClockNeededError

    async def _pace(self, ends: float) -> None:
        """Let the page's clock go on until the page does nothing, for at most the quiet time."""
        loop, limits = asyncio.get_running_loop(), self._limits
        for _ in range(max(1, round(limits.quiet / limits.observe) - 1)):
            works = await self._clock.pace(limits.observe, ends - loop.time())
            if (not works and self._ended.is_set()) or loop.time() >= ends:
                break

    @property
    def is_endless(self) -> bool:
        """True if the page has moved on too often since it was last waited for."""
        return self._traffic.documents - self._counted > _MOST_DOCUMENTS

    def _started(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._frame and not self.is_endless:
            self._ended.clear()

    def _stopped(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._frame:
            self._traffic.stop()
            self._ended.set()

    def _failed(self, request: Request) -> None:
        if request is self._traffic.arrived:
            self._ended.set()

    def _check_count(self) -> None:
        if self.is_endless:
            self._ended.set()

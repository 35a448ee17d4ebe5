"""A page of the browser before it is navigated (``requestHeaders``, ``requestCookies``), and until it is loaded.

Headers go to the page itself, not to what it loads from others. They are added to each navigation of the page, its
redirects too, wherever it goes; credentials, and headers whose names indicate keys, tokens and the like, go to the
origin of the requested URL only. DevTools sends them: Playwright shows no redirects, and would have every request of
the page pass through this process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from playwright.async_api import CDPSession, Error, Request
from yarl import URL

from scrapy_ext.api.extraction import Header
from scrapy_ext.api.extraction.forms import COOKIE_PREFIXES
from scrapy_ext.api.extraction.problems import unprocessable
from scrapy_ext.api.masking import is_private_header
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.actions.context import Traffic
from scrapy_ext.server.extraction.browser.open_page import OpenPage
from scrapy_ext.server.extraction.outgoing import Cookie, in_order, is_dropped

#: Headers that Playwright sets when it opens the page and navigates.
_ELSEWHERE: Final = ("user-agent", "referer")


async def send_headers(session: CDPSession, frame: str, headers: Iterable[Header], url: str) -> None:
    """Set the headers of a request for ``url`` on a page that was not navigated yet, by the main frame's identifier."""
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

    def __init__(self, opened: OpenPage, traffic: Traffic, limits: ServiceLimits) -> None:
        self._frame = opened.frame
        self._traffic = traffic
        self._limits = limits
        self._ended = asyncio.Event()
        self._counted = 0
        page, devtools = opened.page, opened.devtools
        devtools.on("Page.frameStartedLoading", self._started)
        devtools.on("Page.frameStoppedLoading", self._stopped)
        devtools.on("Page.loadEventFired", lambda _: self._ended.set())
        for event in ("crash", "close"):
            page.on(event, lambda _: self._ended.set())
        page.on("framenavigated", lambda _: self._check_count())
        page.on("requestfailed", self._failed)

    async def wait(self, when_loaded: Callable[[], object] | None = None) -> None:
        """Wait for the end of the loading, then for a quiet network, each within its limit."""
        self._counted = self._traffic.documents
        try:
            async with timeout_after(self._limits.load):
                await self._ended.wait()
        except TIMEOUT_ERRORS:
            return  # A page that is still loading will not be quiet either.
        if when_loaded is not None:
            when_loaded()
        await self._traffic.quiet(self._limits.quiet, self._limits.settle)

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

"""Pages that were opened and not navigated yet: for a request, or ahead of it.

Opening a page takes as long as loading a small one: a process starts. So while pages of one profile are loaded one
after the other, their browser opens the next ones (:class:`SparePages`) in the quiet time of those before. A spare page
serves one request, as any other: it has a context and a proxy of its own, and the proxy refuses every connection until
it is taken.

Identity: the browser reports to sites the same as the service's HTTP requests do. Playwright sets the language and
the User-Agent of a context. The rest is set here, for each page: the languages beside the first one (``de-AT,de``),
as browsers have them (requests for resources of the page have the first language alone), and the brands of client
hints (``Sec-CH-UA``), which else report a headless browser. With a User-Agent of the caller's there are no client
hints at all, since the right ones are unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, CDPSession, Error, Page

from scrapy_ext.server.extraction.browser.storage import storage_of
from scrapy_ext.server.extraction.outgoing import NO_BRAND, agent_of, user_agent
from scrapy_ext.server.extraction.plan import PagePlan, Viewport
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.net.proxy import PageProxy

_NO_BRAND: Final = {"brand": NO_BRAND[0], "version": NO_BRAND[1]}


class Profile(NamedTuple):
    """Properties of a page that are fixed when it is opened. ``agent`` is the User-Agent of the caller."""

    agent: str | None
    device: str
    language: str
    timezone: str | None
    viewport: Viewport
    javascript: bool


def profile_of(plan: PagePlan) -> Profile:
    return Profile(agent_of(plan.headers), plan.device, plan.language, plan.timezone, plan.viewport, plan.javascript)


class OpenPage(NamedTuple):
    """A page in a context of its own, with its proxy, a session of DevTools, and the identifier of its frame there."""

    proxy: PageProxy
    context: BrowserContext
    page: Page
    #: For functions that Playwright does not have; one for each page, as opening it takes time.
    devtools: CDPSession
    frame: str
    #: Set when the process of the page ends.
    crashed: asyncio.Event


async def open_page(
    chromium: Chromium, proxy: PageProxy, profile: Profile, state: SessionState | None, *, verify_tls: bool
) -> OpenPage:
    """Open a page in a fresh context; it reports its identity to sites as HTTP requests do."""
    context = await chromium.new_context(
        proxy={"server": proxy.url},
        user_agent=profile.agent or user_agent(chromium.version, profile.device),
        viewport={"width": profile.viewport.width, "height": profile.viewport.height},
        is_mobile=profile.device == "mobile",
        has_touch=profile.device == "mobile",
        java_script_enabled=profile.javascript,
        storage_state=storage_of(state),
        locale=profile.language,
        timezone_id=profile.timezone,
        accept_downloads=False,
        service_workers="block",
        ignore_https_errors=not verify_tls,
    )
    try:
        page = await context.new_page()
        crashed = asyncio.Event()
        page.on("crash", lambda _: crashed.set())
        devtools = await context.new_cdp_session(page)
        # At once: each is a round trip to the browser.
        tree, *_ = await asyncio.gather(
            devtools.send("Page.getFrameTree"),
            devtools.send("Page.enable"),
            _introduce(devtools, chromium.version, profile.agent, profile.language, profile.device),
        )
    except BaseException:
        with contextlib.suppress(Error):
            await context.close()
        raise
    return OpenPage(proxy, context, page, devtools, tree["frameTree"]["frame"]["id"], crashed)


async def _introduce(session: CDPSession, version: str, agent: str | None, language: str, device: str) -> None:
    """Set languages, brands and kind of ``device`` of a page that was not navigated yet; ``agent`` is the caller's
    User-Agent.

    They apply as long as the session of the page.
    """
    override: dict[str, Any] = {
        "userAgent": agent or user_agent(version, device),
        "acceptLanguage": ",".join(dict.fromkeys((language, language.partition("-")[0]))),
    }
    if agent is None:
        override["userAgentMetadata"] = _hints(version, mobile=device == "mobile")
    if device == "mobile":
        override["platform"] = "Linux armv81"
    await session.send("Emulation.setUserAgentOverride", override)


def _hints(version: str, *, mobile: bool) -> dict[str, Any]:
    major = version.partition(".")[0]
    return {
        "brands": [_NO_BRAND, {"brand": "Chromium", "version": major}],
        "fullVersionList": [
            {**_NO_BRAND, "version": f"{_NO_BRAND['version']}.0.0.0"},
            {"brand": "Chromium", "version": version},
        ],
        "platform": "Android" if mobile else "Linux",
        "platformVersion": "10" if mobile else "",
        "architecture": "" if mobile else "x86",
        "bitness": "" if mobile else "64",
        "model": "K" if mobile else "",
        "mobile": mobile,
        "wow64": False,
    }


Opening = asyncio.Task[OpenPage]


def _is_lost(opening: Opening) -> bool:
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or opening.result().crashed.is_set()


class SparePages:
    """Spare pages of one browser, at most ``most``, of the profile that was wanted twice in a row.

    They are dropped when none was wanted for ``idle`` seconds. ``start`` begins to open a page, ``drop`` closes one.
    """

    def __init__(
        self, most: int, idle: float, start: Callable[[Profile], Opening], drop: Callable[[Opening], object]
    ) -> None:
        self._most = most
        self._idle = idle
        self._start = start
        self._drop = drop
        self._profile: Profile | None = None
        self._is_wanted_again = False
        self._pages: deque[Opening] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, profile: Profile) -> Opening | None:
        """Return a spare page of a profile, if there is one."""
        if profile != self._profile:
            self.clear()
            self._profile = profile
            return None
        self._is_wanted_again = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle, self.clear)
        while self._pages:
            taken = self._pages.popleft()
            if not _is_lost(taken):
                return taken
            self._drop(taken)
        return None

    def open_next(self, profile: Profile) -> None:
        """Begin to open a page, when one of its profile has loaded and is only waited for."""
        if profile == self._profile and self._is_wanted_again and len(self._pages) < self._most:
            self._pages.append(self._start(profile))

    def __len__(self) -> int:
        return len(self._pages)

    def clear(self) -> None:
        """Drop all of them."""
        self._profile = None
        self._is_wanted_again = False
        if self._timer is not None:
            self._timer.cancel()
        while self._pages:
            self._drop(self._pages.popleft())

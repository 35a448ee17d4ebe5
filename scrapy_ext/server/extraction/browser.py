"""The browser: one Chromium, a fresh context for each request.

* A context is a browser profile of its own: cookies, storage, cache and connections of one request are not
  there for another, and are gone when it is closed, which happens whatever became of the request.
* The browser starts with the first page, and is replaced after ``Limits.pages_per_browser`` pages, because
  what leaks in Chromium leaks slowly; pages that are open in the old one end in it.
* When Chromium is gone (crashed, killed), or the process of a page, the page is loaded once more, then answered
  with 520. A context that does not close takes its browser with it.
* Everything goes out through :mod:`~scrapy_ext.server.extraction.proxy`; Chromium itself can resolve no name.
* Chromium's sandbox is on, except as root, where Chromium refuses it, and where the system does not allow it;
  either is said once in the log. Its environment carries none of the server's keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Playwright, async_playwright
from yarl import URL

from scrapy_ext.server.extraction.errors import ExtractionError, internal, temporary
from scrapy_ext.server.extraction.executable import clean_environment, find_browser
from scrapy_ext.server.extraction.guard import Guard
from scrapy_ext.server.extraction.limits import Limits
from scrapy_ext.server.extraction.outgoing import Cookie, user_agent
from scrapy_ext.server.extraction.page import PageCrashedError, PageResult, load_page
from scrapy_ext.server.extraction.plan import PagePlan
from scrapy_ext.server.extraction.proxy import PageProxy
from scrapy_ext.server.extraction.turnstile import Turnstile

_log = logging.getLogger(__name__)

#: Nobody listens there: what belongs to no context (Chromium's own business) goes nowhere.
_NOWHERE: Final = "http://127.0.0.1:1"
_ARGUMENTS: Final = (
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--mute-audio",
    # Names are for the proxies to resolve; the rule takes the system's resolver from Chromium altogether.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


class _Gone(Exception):  # noqa: N818  (an event between two functions here, no error for anyone)
    """The browser went away while a page was in it."""


class _Generation:
    """One running Chromium and the pages in it."""

    def __init__(self, chromium: Chromium) -> None:
        self.chromium = chromium
        self.gone = asyncio.Event()
        self.served = 0
        self.open = 0
        self.retired = False
        chromium.on("disconnected", lambda _: self.gone.set())

    async def is_gone(self) -> bool:
        """Whether the browser went away; an error of a page can arrive a moment before that news."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.gone.wait(), 0.5)
        return self.gone.is_set()


class Browser:
    """Loads pages. Starts by itself with the first one; end it with :meth:`stop`.

    ``contexts_opened``, ``contexts_closed`` and ``launches`` count; the first two are equal whenever no page is
    being loaded. ``crashes`` counts pages that were lost with their browser, ``page_crashes`` those that crashed alone.
    """

    def __init__(
        self, guard: Guard, limits: Limits, *, path: str | None = None, pages: int = 4, verify_tls: bool = True
    ) -> None:
        self._guard = guard
        self._limits = limits
        self._path = path
        self._verify_tls = verify_tls
        self.pages = Turnstile("browser pages", pages, limits.pages_waiting, limits.page_patience)
        self._starting = asyncio.Lock()
        self._driver: Playwright | None = None
        self._current: _Generation | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._sandbox = os.name != "posix" or os.geteuid() != 0
        self.contexts_opened = 0
        self.contexts_closed = 0
        self.launches = 0
        self.crashes = 0
        self.page_crashes = 0

    async def load(self, plan: PagePlan) -> PageResult:
        """Load a page; raises :class:`ExtractionError`."""
        url = URL(plan.url, encoded=True)
        # A page that must be refused needs no browser.
        await self._guard.endpoints(url.raw_host or "", url.port or 0)
        async with self.pages.place():
            for _ in range(2):
                try:
                    return await self._attempt(plan)
                except _Gone:
                    self.crashes += 1
                    failure = temporary("The browser ended while it loaded this page, twice.")
                except PageCrashedError as crash:
                    self.page_crashes += 1
                    failure = crash
        raise failure

    async def stop(self) -> None:
        """End the browser and whatever belongs to it."""
        async with self._starting:
            if self._current is not None:
                self._retire(self._current, wait_for_pages=False)
                self._current = None
            if self._background:
                await asyncio.wait(self._background, timeout=2 * self._limits.close)
            await self._stop_driver()

    # ── one page ──

    async def _attempt(self, plan: PagePlan) -> PageResult:
        generation = await self._generation()
        async with PageProxy(self._guard, self._limits, plan.upstream) as proxy, self._count(generation):
            try:
                async with self._context(generation, proxy, plan) as context:
                    return await load_page(context, proxy, plan, self._limits)
            except Error as error:
                if await generation.is_gone():
                    raise _Gone from None
                _log.warning("A page failed in the browser: %s", error.message.partition("\n")[0])
                raise temporary("The page could not be read from the browser.") from None

    @asynccontextmanager
    async def _count(self, generation: _Generation) -> AsyncIterator[None]:
        generation.served += 1
        generation.open += 1
        try:
            yield
        finally:
            generation.open -= 1
            if generation.served >= self._limits.pages_per_browser and not generation.retired:
                self._retire(generation)
            elif generation.retired and not generation.open:
                self._close_soon(generation)

    @asynccontextmanager
    async def _context(
        self, generation: _Generation, proxy: PageProxy, plan: PagePlan
    ) -> AsyncIterator[BrowserContext]:
        opening = asyncio.ensure_future(self._open(generation, proxy, plan))
        try:
            async with asyncio.timeout(self._limits.close):
                context = await asyncio.shield(opening)
        except TimeoutError:
            _log.warning("The browser opens no page; it is ended.")
            self._in_background(self._close_late(opening, generation))
            self._retire(generation, wait_for_pages=False)
            raise _Gone from None
        except asyncio.CancelledError:
            # The browser opens it all the same, and nobody else would close it.
            self._in_background(self._close_late(opening, generation))
            raise
        try:
            if plan.cookies:
                cookies: Any = [_cookie(cookie, plan.url) for cookie in plan.cookies]
                await context.add_cookies(cookies)
            yield context
        finally:
            await asyncio.shield(self._in_background(self._close(context, generation)))

    async def _open(self, generation: _Generation, proxy: PageProxy, plan: PagePlan) -> BrowserContext:
        agent = next((header.value for header in plan.headers if header.name.lower() == "user-agent"), None)
        context = await generation.chromium.new_context(
            proxy={"server": proxy.url},
            user_agent=agent or user_agent(generation.chromium.version),
            viewport={"width": plan.viewport.width, "height": plan.viewport.height},
            locale=plan.language,
            timezone_id=plan.timezone,
            accept_downloads=False,
            service_workers="block",
            ignore_https_errors=not self._verify_tls,
        )
        self.contexts_opened += 1
        return context

    async def _close(self, context: BrowserContext, generation: _Generation) -> None:
        try:
            async with asyncio.timeout(self._limits.close):
                await context.close()
        except Error:
            pass  # It went with its browser.
        except TimeoutError:
            _log.warning("A page of the browser does not close; the browser is ended.")
            self._retire(generation, wait_for_pages=False)
        finally:
            self.contexts_closed += 1

    async def _close_late(self, opening: asyncio.Future[BrowserContext], generation: _Generation) -> None:
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(self._limits.close):
                context = await opening
            await self._close(context, generation)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # ── the browser ──

    async def _generation(self) -> _Generation:
        async with self._starting:
            current = self._current
            if current is None or current.retired or current.gone.is_set():
                if current is not None and not current.retired:
                    self._retire(current, wait_for_pages=False)
                current = self._current = await self._launch()
            return current

    def _retire(self, generation: _Generation, *, wait_for_pages: bool = True) -> None:
        """Take no more pages; end the browser when its last one is closed, or at once."""
        generation.retired = True
        if not generation.open or not wait_for_pages:
            self._close_soon(generation)

    def _close_soon(self, generation: _Generation) -> None:
        self._in_background(self._end(generation))

    async def _end(self, generation: _Generation) -> None:
        try:
            async with asyncio.timeout(self._limits.close):
                await generation.chromium.close()
        except Error:
            pass  # It is gone.
        except TimeoutError:
            # A browser that hangs is killed by its driver when that ends.
            await self._stop_driver()

    async def _launch(self) -> _Generation:
        failure = ""
        if not self._sandbox and not self.launches:
            _log.warning("Chromium runs without its sandbox, because this server runs as root. Use another user.")
        # A second driver for the case that the first one died; a second browser where the sandbox is not allowed.
        for _ in range(3):
            try:
                async with asyncio.timeout(self._limits.launch):
                    driver = await self._running_driver()
                    path = find_browser(self._path, os.environ, Path(driver.chromium.executable_path))
                    chromium = await self._launch_once(driver, path)
            except (Error, TimeoutError, OSError) as error:
                failure = str(error)
                if self._sandbox and "sandbox" in failure.lower():
                    _log.warning("This system does not allow Chromium's sandbox; it runs without. %s", _first(failure))
                    self._sandbox = False
                else:
                    await self._stop_driver()
                continue
            except ExtractionError as error:
                _log.error("%s", error)
                raise
            self.launches += 1
            _log.info("Started %s, version %s", path.name, chromium.version)
            return _Generation(chromium)
        _log.error("The browser does not start: %s", failure)
        raise internal("The server's browser does not start; the server's log says why.")

    async def _launch_once(self, driver: Playwright, path: Path) -> Chromium:
        return await driver.chromium.launch(
            executable_path=path,
            args=[*_ARGUMENTS, f"--js-flags=--max-old-space-size={self._limits.page_heap_mib}"],
            chromium_sandbox=self._sandbox,
            proxy={"server": _NOWHERE},
            env={**clean_environment(os.environ)},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=1000 * self._limits.launch,
        )

    async def _running_driver(self) -> Playwright:
        if self._driver is None:
            logging.getLogger("asyncio").addFilter(_is_not_the_drivers_end)
            self._driver = await async_playwright().start()
        return self._driver

    async def _stop_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            # A driver that died cannot say that it has stopped.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(self._limits.close):
                    await driver.stop()


def _cookie(cookie: Cookie, url: str) -> dict[str, Any]:
    """A cookie as Playwright takes it: for the host of a URL, or for a domain and a path."""
    param: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "expires": cookie.expires,
        "httpOnly": cookie.http_only,
        "secure": cookie.secure,
        "sameSite": cookie.same_site,
    }
    if cookie.domain is None:
        param["url"] = str(URL(url, encoded=True).with_path(cookie.path).with_user(None))
    else:
        param["domain"] = cookie.domain
        param["path"] = cookie.path
    return {name: value for name, value in param.items() if value is not None}


def _is_not_the_drivers_end(record: logging.LogRecord) -> bool:
    """Keep asyncio from reporting a future of Playwright's that nobody reads.

    It tells that the driver ended, which is as it should be when a signal reaches the whole process group, and
    which is otherwise noticed, and told, where it matters.
    """
    return "Connection closed while reading from the driver" not in record.getMessage()


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if "sandbox" in line.lower()), text.partition("\n")[0])[:200]

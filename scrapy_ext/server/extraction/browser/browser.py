"""The browser: a pool of pages in Chromium, with a fresh context for each request, some of them opened ahead of it
(:mod:`~scrapy_ext.server.extraction.browser.open_page`).

* A context is a browser profile of its own: cookies, storage, cache and connections of one request are not available to
  another, and are deleted when it is closed, which happens however the request ends.
* A browser starts with its first page. It is replaced regularly, and when it fails:
  :mod:`~scrapy_ext.server.extraction.browser.instance` has the rules. Open pages end in the old one.
* There are up to two: one that loads images and web fonts, for pages with a screenshot or actions, and one that does
  not, for all others. In that one an image gets neither ``load`` nor ``error``, and none delays the page's own
  ``load``. Style sheets, scripts, frames and requests of scripts are loaded in both, so that extraction has positions
  and sizes, except the sizes of images that the page does not state.
* When Chromium is lost (crashed, killed, hung), or the process of a page, the page is loaded once more, then answered
  with 520. A page whose actions may have begun is not: their requests are not sent twice. A context that does not close
  takes its browser with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from playwright.async_api import Error

from scrapy_ext.api.extraction.problems import temporary
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.browser.instance import CONNECTION_ERRORS, BrowserEndedError, BrowserInstance
from scrapy_ext.server.extraction.browser.launcher import Launcher
from scrapy_ext.server.extraction.browser.open_page import Opening, OpenPage, Profile, SparePages, open_page, profile_of
from scrapy_ext.server.extraction.browser.page import PageCrashedError, load_page
from scrapy_ext.server.extraction.browser.page_result import PageResult
from scrapy_ext.server.extraction.measures import BrowserFigures
from scrapy_ext.server.extraction.plan import PagePlan
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.net.guard import Guard, address_of
from scrapy_ext.server.net.proxy import PageProxy

_log = logging.getLogger(__name__)

T = TypeVar("T")


class _NotOpenedError(Exception):
    """The browser opened no context, so nothing was sent yet."""


class Browser:
    """Pool of pages. It starts with the first page; end it with :meth:`stop`.

    ``contexts_opened`` and ``contexts_closed`` are equal whenever no page is open. ``crashes`` counts pages
    that were lost with their browser, ``page_crashes`` those that crashed alone, ``retirements`` browsers that were
    replaced, by reason.
    """

    def __init__(
        self, guard: Guard, limits: ServiceLimits, *, path: str | None = None, pages: int = 6, verify_tls: bool = True
    ) -> None:
        self._guard = guard
        self._limits = limits
        self._verify_tls = verify_tls
        self.pages = FairSemaphore("browser pages", pages, limits.pages_waiting, limits.page_patience)
        self._launcher = Launcher(limits, path)
        self._starting = asyncio.Lock()
        # By whether it loads images.
        self._launching: dict[bool, asyncio.Task[BrowserInstance]] = {}
        self._current: dict[bool, BrowserInstance] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self.contexts_opened = 0
        self.contexts_closed = 0
        self.crashes = 0
        self.page_crashes = 0
        self.retirements: Counter[str] = Counter()

    @property
    def launches(self) -> int:
        """The number of browsers that were started."""
        return self._launcher.launches

    @property
    def memory(self) -> int:
        """The memory of the processes of the current browsers at their last check, in bytes."""
        return sum(instance.memory for instance in self._current.values())

    @property
    def spare_pages(self) -> int:
        """The number of pages that are open, or being opened, ahead of their requests."""
        return sum(len(instance.spares) for instance in self._current.values())

    def figures(self) -> BrowserFigures:
        return BrowserFigures(
            waiting=self.pages.waiting,
            inside=self.pages.inside,
            opened=self.contexts_opened,
            closed=self.contexts_closed,
            launches=self.launches,
            crashes=self.crashes,
            page_crashes=self.page_crashes,
            memory=self.memory,
            retirements=self.retirements,
        )

    async def load(self, plan: PagePlan) -> PageResult:
        """Load a page; raises :class:`ExtractionError`."""
        url = address_of(plan.url)
        # A refused page needs no browser.
        await self._guard.endpoints(url.raw_host or "", url.port or 0)
        async with AsyncExitStack() as held:
            await held.enter_async_context(self.pages.permit(url.raw_host or ""))
            for _ in range(2):
                try:
                    result = await self._attempt(plan, held)
                except _NotOpenedError:
                    self.crashes += 1
                    failure = temporary("The browser opened no page for this request, twice.")
                except BrowserEndedError:
                    self.crashes += 1
                    failure = temporary("The browser ended while it loaded this page.")
                    if plan.actions:
                        break
                except PageCrashedError as crash:
                    self.page_crashes += 1
                    failure = crash
                    if plan.actions:
                        break
                else:
                    # The page closes beside the answer, and has its permit until then.
                    self._in_background(held.pop_all().aclose())
                    return result
        raise failure

    async def stop(self) -> None:
        """End the browsers, the driver and all background tasks."""
        await asyncio.gather(*self._launching.values(), return_exceptions=True)
        while self._current:
            self._retire(self._current.popitem()[1], wait_for_pages=False)
        if self._background:
            await asyncio.wait(self._background, timeout=3 * self._limits.close)
        await self._launcher.stop()

    # ── one page ──

    async def _attempt(self, plan: PagePlan, held: AsyncExitStack) -> PageResult:
        """Load a page, which is added to what is ``held`` for the request."""
        instance = await self._instance(images=bool(plan.screenshot or plan.actions))
        async with AsyncExitStack() as opened:
            # Counted first: a browser without pages may be ended at any moment.
            await opened.enter_async_context(self._count(instance))
            profile = profile_of(plan)
            try:
                page = await opened.enter_async_context(self._page(instance, profile, plan))
                loading = load_page(page, plan, self._limits, partial(instance.spares.open_next, profile))
                result = await instance.run_inside(loading)
            except PageCrashedError:
                instance.spares.clear()  # Whatever ended its process may have ended theirs.
                raise
            except Error as error:
                _log.warning(
                    "A page failed in the browser: %s. Its caller may send the request again.",
                    error.message.partition("\n")[0],
                )
                raise temporary("The page could not be read from the browser.") from None
            await page.proxy.refuse()
            held.push_async_exit(opened.pop_all())
            return result

    @asynccontextmanager
    async def _count(self, instance: BrowserInstance) -> AsyncIterator[None]:
        instance.served += 1
        instance.open += 1
        try:
            yield
        finally:
            instance.open -= 1
            reason = instance.spent()
            if reason is not None and not instance.retired:
                self._retire(instance, reason)
            elif instance.retired and not instance.open:
                self._in_background(instance.end())

    @asynccontextmanager
    async def _page(self, instance: BrowserInstance, profile: Profile, plan: PagePlan) -> AsyncIterator[OpenPage]:
        opening = instance.spares.take(profile) if plan.state is None else None
        if opening is None:
            opening = self._start_opening(instance, profile, plan.state)
        try:
            # Of the context, then of the page in it: a browser that hangs is found by its check before.
            async with timeout_after(self._limits.respond + self._limits.read_page):
                opened = await asyncio.shield(opening)
        except CONNECTION_ERRORS:
            await instance.is_gone()  # If so, the next page must not use it.
            raise _NotOpenedError from None
        except TIMEOUT_ERRORS:
            self._give_up(instance, "The browser opens no page and is ended.")
            self._in_background(self._close_late(opening, instance))
            raise _NotOpenedError from None
        except asyncio.CancelledError:
            # The browser opens it nevertheless, and it must be closed.
            self._in_background(self._close_late(opening, instance))
            raise
        self.contexts_opened += 1
        opened.proxy.serve(plan.upstream)
        try:
            yield opened
        finally:
            await asyncio.shield(self._in_background(self._close_taken(opened, instance)))

    def _start_opening(self, instance: BrowserInstance, profile: Profile, state: SessionState | None = None) -> Opening:
        return self._in_background(self._open(instance, profile, state))

    async def _open(self, instance: BrowserInstance, profile: Profile, state: SessionState | None) -> OpenPage:
        proxy = PageProxy(self._guard, self._limits)
        await proxy.start()
        try:
            return await open_page(instance.chromium, proxy, profile, state, verify_tls=self._verify_tls)
        except BaseException:
            await proxy.close()
            raise

    async def _close_taken(self, opened: OpenPage, instance: BrowserInstance) -> None:
        try:
            await self._close(opened, instance)
        finally:
            self.contexts_closed += 1

    async def _close(self, opened: OpenPage, instance: BrowserInstance) -> None:
        try:
            async with timeout_after(self._limits.respond):
                await opened.context.close()
        except CONNECTION_ERRORS:
            pass  # It was closed with its browser.
        except TIMEOUT_ERRORS:
            self._give_up(instance, "A page does not close; its browser is ended.")
        finally:
            await opened.proxy.close()

    async def _close_late(self, opening: Opening, instance: BrowserInstance) -> None:
        await asyncio.wait((opening,), timeout=self._limits.respond + self._limits.read_page)
        if not opening.done():
            self._give_up(instance, "The browser opens no page and is ended.")
            await asyncio.wait((opening,), timeout=self._limits.close)
        if not opening.done():
            opening.cancel()
        elif opening.exception() is None:
            await self._close(opening.result(), instance)

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieved, as no caller may be left to do so.

    # ── the browser ──

    async def _instance(self, *, images: bool) -> BrowserInstance:
        """Return a browser that takes pages: the current one, or a new one that all callers wait for."""
        current = self._current.get(images)
        if current is not None and not current.retired and not current.gone.is_set():
            reason = current.spent()
            if reason is None:
                return current
            self._retire(current, reason)
        if images not in self._launching:
            self._launching[images] = self._in_background(self._launch(images))
        # A cancelled caller does not cancel the start for the others.
        return await asyncio.shield(self._launching[images])

    async def _launch(self, images: bool) -> BrowserInstance:
        try:
            current = self._current.pop(images, None)
            if current is not None and not current.retired:
                self._retire(current, wait_for_pages=False)
            async with self._starting:
                self._current[images] = instance = await self._launcher.launch(images=images)
            instance.spares = SparePages(
                min(self._limits.spare_pages, self.pages.permits),
                self._limits.spare_idle,
                partial(self._start_opening, instance),
                lambda opening: self._in_background(self._close_late(opening, instance)),
            )
        finally:
            del self._launching[images]
        self._in_background(self._watch(instance))
        return instance

    async def _watch(self, instance: BrowserInstance) -> None:
        reason = await instance.watch()
        if reason is None:
            return
        self._retire(instance, reason, wait_for_pages=False)
        if not instance.killed:
            return
        with contextlib.suppress(*TIMEOUT_ERRORS):
            await asyncio.wait_for(instance.gone.wait(), self._limits.close)
            return
        # The driver does not report its end, so the driver hangs as well.
        instance.gone.set()
        await self._launcher.stop()

    def _give_up(self, instance: BrowserInstance, message: str) -> None:
        _log.warning("%s", message)
        instance.kill()
        self._retire(instance, "hang", wait_for_pages=False)

    def _retire(self, instance: BrowserInstance, reason: str | None = None, *, wait_for_pages: bool = True) -> None:
        """Give a browser no more pages; end it when its last one is closed, or at once."""
        if reason is not None and not instance.retired:
            _log.info("A browser is replaced after %d pages: %s.", instance.served, reason)
            self.retirements[reason] += 1
        instance.retired = True
        instance.spares.clear()
        if not instance.open or not wait_for_pages:
            self._in_background(instance.end())

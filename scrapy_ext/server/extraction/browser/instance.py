"""One running Chromium, from its start to the end of its last process.

A browser is *retired* when it has served its share of pages, is old, or uses much memory, as memory leaks in Chromium
are slow. It takes no more pages then, the pages in it finish, and a fresh one takes over.

It is *killed* when it does not answer, or when it uses twice the memory at which it is retired, which only a hostile
page causes. The pages in it are lost.

Either way, all of its processes end: those that do not end by themselves are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from playwright.async_api import Browser as Chromium
from playwright.async_api import CDPSession, Error

from scrapy_ext.server.config.extraction_limits import MIB, Limits
from scrapy_ext.server.extraction.browser.processes import BrowserProcess, ProcessGroup, kill

_log = logging.getLogger(__name__)

T = TypeVar("T")


class BrowserEndedError(Exception):
    """The browser ended during an operation."""


class BrowserInstance:
    """One browser and the pages in it: how many it ``served``, how many are ``open``.

    ``memory`` is the memory of its processes at the last check, in bytes; ``killed_pages`` counts pages that were ended
    because they used too much.
    """

    def __init__(self, chromium: Chromium, session: CDPSession, group: ProcessGroup, limits: Limits) -> None:
        self.chromium = chromium
        self.gone = asyncio.Event()
        self.served = 0
        self.open = 0
        self.retired = False
        self.killed = False
        self.memory = 0
        self.killed_pages = 0
        self._ending = False
        self._session = session
        self._group = group
        self._limits = limits
        self._born = asyncio.get_running_loop().time()
        chromium.on("disconnected", lambda _: self.gone.set())

    async def run_inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work in this browser; raises :class:`BrowserEndedError` when it ended."""
        working = asyncio.ensure_future(work)
        going = asyncio.ensure_future(self.gone.wait())
        try:
            await asyncio.wait((working, going), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise BrowserEndedError
        except Error:
            if await self.is_gone():
                raise BrowserEndedError from None
            raise
        finally:
            going.cancel()
            working.cancel()
            await asyncio.wait((working,))

    async def is_gone(self) -> bool:
        """Return whether the browser ended.

        The error of a page arrives before that event, by seconds on a busy machine, so the browser is queried.
        """
        if not self.gone.is_set():
            try:
                async with asyncio.timeout(self._limits.close):
                    await self._session.send("Browser.getVersion")
            except TimeoutError:
                pass  # It hangs; :meth:`watch` ends it.
            except Error:
                self.gone.set()
        return self.gone.is_set()

    def spent(self) -> str | None:
        """Return why it takes no more pages: ``pages``, ``age`` or ``memory``; None while it does."""
        limits = self._limits
        if self.served >= limits.pages_per_browser:
            return "pages"
        if asyncio.get_running_loop().time() - self._born >= limits.browser_age:
            return "age"
        return "memory" if self.memory >= limits.browser_memory_mib * MIB else None

    async def watch(self) -> str | None:
        """Keep its pages within their memory; return why it must end, or None when it ended by itself.

        A browser without pages is not checked until it is old.
        """
        loop = asyncio.get_running_loop()
        last_query = loop.time()
        while not self.gone.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.gone.wait(), self._limits.look)
            if self.gone.is_set():
                return None
            if not self.open:
                if not self.retired and (reason := self.spent()):
                    return reason
                continue
            self._judge(await asyncio.to_thread(self._group.processes))
            if self.memory >= 2 * self._limits.browser_memory_mib * MIB:
                return self._kill("memory", f"uses {self.memory // MIB} MiB of memory")
            if loop.time() - last_query >= self._limits.ask:
                if not await self._answers():
                    return self._kill("hang", "does not answer")
                last_query = loop.time()
        return None

    def _judge(self, processes: list[BrowserProcess]) -> None:
        for process in processes:
            if process.is_renderer and process.memory >= self._limits.page_memory_mib * MIB:
                _log.warning("A page used %d MiB of memory and is ended.", process.memory // MIB)
                self.killed_pages += 1
                kill(process.pid)
        self.memory = sum(process.memory for process in processes)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(self._limits.respond):
                await self._session.send("Browser.getVersion")
        except TimeoutError:
            return False
        except Error:
            pass  # It ended, which is reported elsewhere.
        return True

    def _kill(self, reason: str, fault: str) -> str:
        _log.warning("The browser %s. It is ended, and the pages in it are loaded once more.", fault)
        self.kill()
        return reason

    def kill(self) -> None:
        """End its processes at once."""
        self.killed = True
        self._group.kill()

    async def end(self) -> None:
        """End it; when the first call returns, none of its processes is left."""
        if self._ending:
            return
        self._ending = True
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(self._limits.close):
                await self.chromium.close()
        # Processes that hang, or whose parent ended.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.close):
                while not await asyncio.to_thread(self._group.is_empty):
                    self._group.kill()
                    await asyncio.sleep(0.02)
                return
        _log.error("Processes of a browser do not end although they were killed.")

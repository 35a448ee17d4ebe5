"""One running Chromium, from its start to the end of its last process.

A browser is *retired* when it has served its share of pages, is old, or holds much memory: what leaks in Chromium
leaks slowly. It takes no more pages then, the pages in it finish, and a fresh one takes over.

It is *killed* when it does not answer any more, or when it holds twice the memory at which it is retired, which
nothing but a page that means harm makes it do. That costs the pages that are in it.

Ended either way, its processes are gone: those that do not go by themselves are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from playwright.async_api import Browser as Chromium
from playwright.async_api import CDPSession, Error

from scrapy_ext.server.config.extraction_limits import MIB, ServiceLimits
from scrapy_ext.server.extraction.browser.processes import BrowserProcess, ProcessGroup, kill

_log = logging.getLogger(__name__)

T = TypeVar("T")


class GoneError(Exception):
    """The browser went away while something was done in it."""


class BrowserInstance:
    """One browser and the pages in it: how many it ``served``, how many are ``open``.

    ``memory`` is what its processes held together when they were last looked at, in bytes; ``killed_pages`` counts
    pages that were ended because they held too much.
    """

    def __init__(self, chromium: Chromium, session: CDPSession, group: ProcessGroup, limits: ServiceLimits) -> None:
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

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of something done in this browser; raises :class:`GoneError` when it went away."""
        working = asyncio.ensure_future(work)
        going = asyncio.ensure_future(self.gone.wait())
        try:
            await asyncio.wait((working, going), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise GoneError
        except Error:
            if await self.is_gone():
                raise GoneError from None
            raise
        finally:
            going.cancel()
            working.cancel()
            await asyncio.wait((working,))

    async def is_gone(self) -> bool:
        """Whether the browser went away.

        The error of a page arrives before that news, by seconds where the machine is busy, so that it is asked.
        """
        if not self.gone.is_set():
            try:
                async with asyncio.timeout(self._limits.close):
                    await self._session.send("Browser.getVersion")
            except TimeoutError:
                pass  # It hangs, which is noticed otherwise.
            except Error:
                self.gone.set()
        return self.gone.is_set()

    def spent(self) -> str | None:
        """Why it should take no more pages: ``pages``, ``age`` or ``memory``; None when it should."""
        limits = self._limits
        if self.served >= limits.pages_per_browser:
            return "pages"
        if asyncio.get_running_loop().time() - self._born >= limits.browser_age:
            return "age"
        return "memory" if self.memory >= limits.browser_memory_mib * MIB else None

    async def watch(self) -> str | None:
        """Keep its pages within their memory; returns why it must end, or None when it went by itself.

        A browser without pages changes nothing, and is left alone until it is old.
        """
        loop = asyncio.get_running_loop()
        asked = loop.time()
        while not self.gone.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.gone.wait(), self._limits.look)
            if self.gone.is_set():
                return None
            if not self.open:
                if not self.retired and (why := self.spent()):
                    return why
                continue
            self._judge(await asyncio.to_thread(self._group.processes))
            if self.memory >= 2 * self._limits.browser_memory_mib * MIB:
                return self._kill("memory", f"holds {self.memory // MIB} MiB of memory")
            if loop.time() - asked >= self._limits.ask:
                if not await self._answers():
                    return self._kill("hang", "does not answer")
                asked = loop.time()
        return None

    def _judge(self, processes: list[BrowserProcess]) -> None:
        for process in processes:
            if process.is_renderer and process.memory >= self._limits.page_memory_mib * MIB:
                _log.warning("A page held %d MiB of memory; it is ended.", process.memory // MIB)
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
            pass  # It is gone, which is told otherwise.
        return True

    def _kill(self, why: str, words: str) -> str:
        _log.warning("The browser %s; it is ended, and the pages in it are loaded once more.", words)
        self.kill()
        return why

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
        # What hangs, and what lost the process that it belongs to.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.close):
                while not await asyncio.to_thread(self._group.is_empty):
                    self._group.kill()
                    await asyncio.sleep(0.02)
                return
        _log.error("Processes of a browser do not end, although they were killed.")

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
import os
import signal
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from playwright.async_api import Browser as Chromium
from playwright.async_api import CDPSession, Error

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.jobprocess import proc
from scrapy_ext.server.config.extraction_limits import MIB, ServiceLimits
from scrapy_ext.server.extraction.browser.open_page import SparePages


class BrowserProcess(NamedTuple):
    """One process of a browser. A renderer has pages in it, usually one.

    ``memory`` is private memory in bytes: pages of the program's file, which all of its processes share, would be
    counted once for each of them. Without ``/proc`` no process is found, and no memory limit applies.
    """

    pid: int
    is_renderer: bool
    memory: int


class ProcessGroup:
    """The processes of one browser, by the identifier of one of them.

    A browser is started as the leader of a process group, and its children stay in that group, so the group is the
    browser, also when its first process ended and its children cannot be listed any more. ``leader`` is that process;
    0 where there are no groups. Raises :class:`ProcessLookupError` when the given process ended.
    """

    def __init__(self, pid: int) -> None:
        # On Windows there are no groups, and Playwright ends the browser's processes by their tree.
        self.leader = os.getpgid(pid) if hasattr(os, "getpgid") else 0
        if self.leader and self.leader == os.getpgrp():
            self.leader = 0  # It would end the server itself.

    def processes(self) -> list[BrowserProcess]:
        """Return the processes that live. This reads some hundred small files: call it in a thread."""
        return [
            BrowserProcess(pid, b"--type=renderer" in proc.command_line(pid), proc.own_memory(pid))
            for pid in self._members()
        ]

    def is_empty(self) -> bool:
        return not self._members()

    def kill(self) -> None:
        """End all of them at once, also those that hang or are stopped."""
        if self.leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)

    def _members(self) -> list[int]:
        if not self.leader:
            return []
        return [process.pid for process in proc.table().values() if process.group == self.leader]


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None when it is unknown."""
    process = proc.of_pid(pid)
    return None if process is None else process.parent


def kill(pid: int) -> None:
    """End one process, if it still runs."""
    proc.send([pid], getattr(signal, "SIGKILL", signal.SIGTERM))


_log = logging.getLogger(__name__)

T = TypeVar("T")


#: Errors of a browser whose driver may have ended: uvloop has its own where the pipe to it is closed.
CONNECTION_ERRORS: Final = (Error, RuntimeError)


class BrowserEndedError(Exception):
    """The browser ended during an operation."""


async def run_unless(event: asyncio.Event, failure: Exception, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work; cancels it and raises ``failure`` when the event is set before."""
    working = asyncio.ensure_future(work)
    coming = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((working, coming), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise failure
    finally:
        coming.cancel()
        working.cancel()
        await asyncio.wait((working,))


class BrowserInstance:
    """One browser and the pages in it: how many it ``served``, how many are ``open``.

    ``memory`` is the memory of its processes at the last check, in bytes; ``killed_pages`` counts pages that were ended
    because they used too much.
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
        self.spares: SparePages
        self._ending = False
        self._session = session
        self._group = group
        self._limits = limits
        self._born = asyncio.get_running_loop().time()
        chromium.on("disconnected", lambda _: self.gone.set())

    async def run_inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work in this browser; raises :class:`BrowserEndedError` when it ended."""
        try:
            return await run_unless(self.gone, BrowserEndedError(), work)
        except CONNECTION_ERRORS:
            if await self.is_gone():
                raise BrowserEndedError from None
            raise

    async def is_gone(self) -> bool:
        """Return whether the browser ended.

        The error of a page arrives before that event, by seconds on a busy machine, so the browser is queried.
        """
        if not self.gone.is_set():
            try:
                async with timeout_after(self._limits.close):
                    await self._session.send("Browser.getVersion")
            except TIMEOUT_ERRORS:
                pass  # It hangs; :meth:`watch` ends it.
            except CONNECTION_ERRORS:
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
            with contextlib.suppress(*TIMEOUT_ERRORS):
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
            async with timeout_after(self._limits.respond):
                await self._session.send("Browser.getVersion")
        except TIMEOUT_ERRORS:
            return False
        except CONNECTION_ERRORS:
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
        with contextlib.suppress(Error, *TIMEOUT_ERRORS):
            async with timeout_after(self._limits.close):
                await self.chromium.close()
        # Processes that hang, or whose parent ended.
        with contextlib.suppress(*TIMEOUT_ERRORS):
            async with timeout_after(self._limits.close):
                while not await asyncio.to_thread(self._group.is_empty):
                    self._group.kill()
                    await asyncio.sleep(0.02)
                return
        _log.error(
            "Processes of a browser do not end although they were killed. Stop them by hand, or restart the machine."
        )

"""The clock of a page, which can be set forward: timers that are due soon run at once, and need not be waited for.

DevTools calls it virtual time. From the first :meth:`PageClock.forward` on, the page's clock stands still but for what
is granted to it here: it jumps from timer to timer while the page has nothing else to do, and waits for the network.
That cannot be undone, so a page that needs the real clock after all is loaded once more
(:class:`RealClockNeededError`).

What does not depend on that clock (databases, cryptography, compilation, drawing) takes real time. So the clock is
set forward only for a page that does nothing, which is measured, and when timers ran meanwhile, :meth:`PageClock.pace`
gives the page real time for what they began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, NamedTuple, TypeVar

from playwright.async_api import CDPSession

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

T = TypeVar("T")

#: Steps in which :meth:`PageClock.pace` grants time.
_STEPS: Final = 5
#: Seconds without the end of a grant after which the page is queried, and until its answer. A script that waits in a
#: loop for the clock, which stands still meanwhile, never gives one.
_QUERY: Final = 3.0
#: Tasks without a delay after which the clock goes on nevertheless, for pages that have one after another without end.
_MOST_TASKS: Final = 1000
#: Processor seconds of threads beside that of the scripts from which on a page does something: two ticks of Linux.
_BESIDE: Final = 0.02
#: Metrics of what has a clock of its own, and all that are read.
_OTHERS: Final = ("WorkerGlobalScopes", "RTCPeerConnections")
_REPORTED: Final = frozenset({*_OTHERS, "ScriptDuration", "ProcessTime", "ThreadTime"})


class RealClockNeededError(Exception):
    """The page cannot do with a clock that was set forward."""


class _Work(NamedTuple):
    """Processor seconds of a page: of its scripts, and of threads beside theirs."""

    scripts: float = 0.0
    beside: float = 0.0


class PageClock:
    """Create it before the page is navigated. DevTools must count the time of the page's threads."""

    def __init__(self, devtools: CDPSession) -> None:
        self._devtools = devtools
        self._expired = asyncio.Event()
        self._work = _Work()
        #: Whether all threads with scripts were the page's own, at the last query.
        self._is_alone = False
        #: Whether the page's clock is not the real one any more.
        self.is_set = False
        devtools.on("Emulation.virtualTimeBudgetExpired", lambda _: self._expired.set())

    async def query(self) -> bool:
        """Return whether the page did anything since the last query."""
        answer = await self._devtools.send("Performance.getMetrics")
        metrics = {each["name"]: each["value"] for each in answer["metrics"]}
        # A browser that does not report one of them has pages with the real clock.
        self._is_alone = metrics.keys() >= _REPORTED and not any(metrics[name] for name in _OTHERS)
        beside = metrics.get("ProcessTime", 0.0) - metrics.get("ThreadTime", 0.0)
        before, now = self._work, _Work(metrics.get("ScriptDuration", 0.0), beside)
        self._work = now
        return now.scripts != before.scripts or now.beside - before.beside >= _BESIDE

    async def governs(self, frames: int) -> bool:
        """Return whether all that the page has depends on this clock: at the last query it had no workers, and none of
        its frames is of another process.
        """
        if not self._is_alone or frames == 1:
            return self._is_alone
        tree = await self._devtools.send("Page.getFrameTree")
        return _size(tree["frameTree"]) == frames

    async def forward(self, seconds: float, at_most: float) -> bool:
        """Set the clock forward, within ``at_most`` seconds; return whether the page did anything meanwhile."""
        await self._grant(seconds, at_most)
        return await self._within(self.query())

    async def pace(self, seconds: float, at_most: float) -> bool:
        """Let the clock go on for some seconds, at its usual speed; return whether the page did anything meanwhile."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + at_most
        step = seconds / _STEPS
        for _ in range(_STEPS):
            begun = loop.time()
            await self._grant(step, ends - begun)
            await asyncio.sleep(begun + step - loop.time())
        return await self._within(self.query())

    async def _grant(self, seconds: float, at_most: float) -> None:
        ends = asyncio.get_running_loop().time() + at_most
        self.is_set = True
        self._expired.clear()
        granting = {
            "policy": "pauseIfNetworkFetchesPending",
            "budget": 1000 * seconds,
            "maxVirtualTimeTaskStarvationCount": _MOST_TASKS,
        }
        await self._within(self._devtools.send("Emulation.setVirtualTimePolicy", granting))
        while not self._expired.is_set() and (left := ends - asyncio.get_running_loop().time()) > 0:
            try:
                async with timeout_after(min(_QUERY, left)):
                    await self._expired.wait()
            except TIMEOUT_ERRORS:
                # Raises when the page does not answer; its answer is of the clock only later.
                await self._within(self._devtools.send("Performance.getMetrics"))

    async def _within(self, answer: Awaitable[T]) -> T:
        try:
            async with timeout_after(_QUERY):
                return await answer
        except TIMEOUT_ERRORS:
            raise RealClockNeededError from None


def _size(tree: dict[str, Any]) -> int:
    return 1 + sum(map(_size, tree.get("childFrames", ())))

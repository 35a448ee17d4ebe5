"""Extensions that measure their own process. The results are in :data:`OBSERVED`."""

from __future__ import annotations

import asyncio
import resource
import time
from pathlib import Path
from typing import Any, Final

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ext.compatibility.python import Self

#: Results, serializable as JSON.
OBSERVED: Final[dict[str, Any]] = {}
_TICK: Final = 0.001
_WORTH_TELLING: Final = 0.005


class LoopTicker:
    """Records stalls of the event loop with a ticker of a millisecond: ``stalls``, pairs of the monotonic time of a
    stall's end and its seconds."""

    def __init__(self, crawler: Crawler) -> None:
        self._stalls: list[tuple[float, float]] = []
        self._handle: asyncio.TimerHandle | None = None
        OBSERVED["stalls"] = self._stalls
        crawler.signals.connect(self._start, signal=signals.spider_opened)
        crawler.signals.connect(self._stop, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = time.monotonic()
        self._handle = self._loop.call_later(_TICK, self._tick)

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _tick(self) -> None:
        now = time.monotonic()
        stalled = now - self._last - _TICK
        if stalled > _WORTH_TELLING:
            self._stalls.append((now, stalled))
        self._last = now
        self._handle = self._loop.call_later(_TICK, self._tick)


class MemorySampler:
    """Records the resident memory after every ``BENCH_MEMORY_EVERY`` responses: ``memory``, a list of bytes."""

    def __init__(self, crawler: Crawler) -> None:
        self._every = crawler.settings.getint("BENCH_MEMORY_EVERY")
        self._responses = 0
        self._samples: list[int] = []
        OBSERVED["memory"] = self._samples
        crawler.signals.connect(self._response_received, signal=signals.response_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _response_received(self) -> None:
        self._responses += 1
        if self._responses % self._every == 0:
            self._samples.append(resident_bytes())


class Times:
    """Records the monotonic times ``opened`` and ``closed``."""

    def __init__(self, crawler: Crawler) -> None:
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _opened(self) -> None:
        OBSERVED["opened"] = time.monotonic()

    def _closed(self) -> None:
        OBSERVED["closed"] = time.monotonic()


def resident_bytes() -> int:
    """Return the resident memory of this process; needs Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Return the peak resident memory of this process; 0 without ``/proc``."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM:"))

"""The memory that requests and answers may hold: one bound for the process, counted before it is taken.

Invariants:

- ``Memory.held`` is never below what bodies, what they decode to, and answers hold, apart from a constant: one block of
  a body at a time is decoded without being counted (:mod:`scrapy_ext.server.http.bodies`), and no connection has
  more than :data:`limits.UNCOUNTED` in its buffers before they count.
- Whoever finds no room is refused and holds nothing. What was counted is released when its request ends, at the latest.
- Above :data:`PRESSURE` of the bound, clients that read nothing lose their connections, the slowest first, so that
  those who read find room.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import time
from collections.abc import AsyncIterator
from typing import Final, Protocol

from scrapy_ext.jobprocess.proc import machine_memory
from scrapy_ext.server.http import limits

#: The part of the machine's memory that requests may hold by default, but never less than :data:`limits.MEMORY`.
SHARE: Final = 32
#: The part of the bound above which slow readers are cut off.
PRESSURE: Final = 0.75
#: Seconds for which a client may read nothing although memory is short.
_SHORT_PAUSE: Final = 1.0
#: Seconds of long work, of all requests together, in one round of the event loop.
_TURN: Final = 0.002
#: Streams that make a piece at the same time where memory is short: what they read is not counted before it is there.
_MAKING: Final = 8
#: Bytes that were released before the allocator is asked to return free pages to the system, and how long after.
_TRIM: Final = 64 * limits.MIB
_TRIM_AFTER: Final = 3.0


class Reader(Protocol):
    """A connection whose client does not read its answer."""

    def cut_off(self, reason: str) -> None:
        """End it at once."""


class Memory:
    """The count of what requests hold together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        #: Requests that found no room.
        self.refused = 0
        #: Connections whose clients read nothing, and since when; those that have waited longest come first.
        self.stalled: dict[Reader, float] = {}
        self._turn = asyncio.Lock()
        #: Taken by streams while they make a piece, where memory is short.
        self.making = asyncio.Semaphore(_MAKING)
        #: When such work began in this round of the event loop.
        self._worked: float | None = None
        self._released = 0
        self._trims = False

    def hold(self, size: int) -> bool:
        """Count bytes; False when there is no room for them now."""
        if self.held + size > self.limit * PRESSURE and self.stalled:
            self._cut_off()
        if not self.fits(size):
            return False
        self.held += size
        return True

    def fits(self, size: int) -> bool:
        """Return whether there is room for so many bytes now; counted as refused if not."""
        if self.held + size <= self.limit:
            return True
        self.refused += 1
        return False

    def add(self, size: int) -> None:
        """Count bytes that are there already."""
        self.held += size
        if self.held > self.limit * PRESSURE and self.stalled:
            self._cut_off()

    def release(self, size: int) -> None:
        """Count bytes no longer."""
        self.held -= size
        self._released += size
        if self._released >= _TRIM and not self._trims:
            with contextlib.suppress(RuntimeError):  # no loop runs: a test
                asyncio.get_running_loop().call_later(_TRIM_AFTER, self._trim)
                self._trims = True

    def _trim(self) -> None:
        self._released, self._trims = 0, False
        trim()

    def _cut_off(self) -> None:
        """End the connections that have read nothing for longest; their requests release what they hold as they end."""
        latest = time.monotonic() - _SHORT_PAUSE
        for reader, since in list(self.stalled.items())[: 1 + len(self.stalled) // 8]:
            if since > latest:
                return
            self.stalled.pop(reader, None)
            reader.cut_off("memory")

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Do some milliseconds of work in the event loop, one caller after the other: all others run in between."""
        async with self._turn:
            if self._worked is not None and time.monotonic() - self._worked > _TURN:
                await asyncio.sleep(0)
            if self._worked is None:
                self._worked = time.monotonic()
                asyncio.get_running_loop().call_soon(self._next_round)
            yield

    def _next_round(self) -> None:
        self._worked = None


def default_limit() -> int:
    """Bytes that requests may hold where no option says: a share of the memory that this process may use."""
    total = machine_memory()
    return max(min(limits.MEMORY, total // 2), total // SHARE)


def trim() -> None:
    """Return free memory to the system, where the C library can: glibc keeps it otherwise.

    What was held by streams that broke off is mostly in cycles of exceptions and their frames, and would stay until the
    next full collection.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)

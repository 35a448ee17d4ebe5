"""The memory that requests and answers may hold: one bound for the process, counted before allocation.

Invariants:

- ``RequestMemory.held`` is never below the bytes of bodies, of their decoded values and of answers, apart from a
  constant: one block of a body at a time is decoded uncounted (:mod:`scrapy_ext.server.http.bodies`), and the buffers
  of a connection count from :data:`limits.UNCOUNTED` bytes on.
- A request without room is refused and holds nothing. Counted bytes are released at the latest with their request.
- Above :data:`PRESSURE` of the bound, clients that read nothing are disconnected, the slowest first, in favour of those
  that read.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import time
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Protocol

from scrapy_ext.jobprocess.proc import machine_memory
from scrapy_ext.server.http import limits

#: The part of the machine's memory that requests may hold by default, but never less than :data:`limits.MEMORY`.
SHARE: Final = 32
#: The part of the bound above which slow readers are disconnected.
PRESSURE: Final = 0.75
#: Seconds for which a client may read nothing although memory is short.
_SHORT_PAUSE: Final = 1.0
#: Seconds of long work, of all requests together, in one round of the event loop.
_TURN: Final = 0.002
#: Streams that prepare a piece at the same time when memory is short: their reads are not counted beforehand.
_PREPARING: Final = 8
#: Released bytes after which the allocator returns free pages to the system, and the delay (seconds).
_TRIM: Final = 64 * limits.MIB
_TRIM_AFTER: Final = 3.0
#: Parameters of glibc's allocator: bytes of free memory at the end of a heap that it keeps, and bytes of an allocation
#: that gets pages of its own from the system. With its own values, reading chunks of records spends a fifth of its time
#: on new pages, which the system clears.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT: Final = 4 * limits.MIB
_OWN_PAGES: Final = 2 * limits.MIB


class Reader(Protocol):
    """A connection whose client does not read its answer."""

    def cut_off(self, reason: str) -> None:
        """Disconnect at once."""


class RequestMemory:
    """The count of bytes that all requests hold."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        #: Requests without room so far.
        self.refused = 0
        #: Connections whose clients read nothing, with the time of the stall, oldest first.
        self.stalled: dict[Reader, float] = {}
        self._turns = _Turns()
        #: Permits of streams that prepare a piece while memory is short.
        self.preparing = asyncio.Semaphore(_PREPARING)
        self._released = 0
        self._trims = False

    def hold(self, size: int) -> bool:
        """Count bytes; return false without room for them now."""
        if self.held + size > self.limit * PRESSURE and self.stalled:
            self._cut_off()
        if not self.fits(size):
            return False
        self.held += size
        return True

    def fits(self, size: int) -> bool:
        """Return true when there is room for so many bytes now; count a refusal if not."""
        if self.held + size <= self.limit:
            return True
        self.refused += 1
        return False

    def add(self, size: int) -> None:
        """Count bytes that are in memory already."""
        self.held += size
        if self.held > self.limit * PRESSURE and self.stalled:
            self._cut_off()

    def release(self, size: int) -> None:
        """Stop counting bytes."""
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
        """Disconnect the clients that have read nothing for longest; their requests release their bytes as they end."""
        latest = time.monotonic() - _SHORT_PAUSE
        for reader, since in list(self.stalled.items())[: 1 + len(self.stalled) // 8]:
            if since > latest:
                return
            self.stalled.pop(reader, None)
            reader.cut_off("memory")

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Serialize work of some milliseconds in the event loop, so that other tasks run in between."""
        return self._turns


class _Turns(AbstractAsyncContextManager[None]):
    """The lock of long work, which leaves the loop to other tasks after some milliseconds of one round."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        #: The start of long work in this round of the event loop.
        self._worked: float | None = None

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        if self._worked is not None and time.monotonic() - self._worked > _TURN:
            try:
                await asyncio.sleep(0)
            except BaseException:
                self._lock.release()
                raise
        if self._worked is None:
            self._worked = time.monotonic()
            asyncio.get_running_loop().call_soon(self._next_round)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def _next_round(self) -> None:
        self._worked = None


def default_limit() -> int:
    """Return the default bound: a share of the memory that this process may use."""
    total = machine_memory()
    return max(min(limits.MEMORY, total // 2), total // SHARE)


def keep_freed() -> None:
    """Let the allocator reuse the memory of large blocks, where the C library is glibc."""
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)


def trim() -> None:
    """Return free memory to the system where the C library supports that: glibc keeps it otherwise.

    Interrupted streams leave most of their memory in cycles of exceptions and frames, until the next full collection.
    """
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)

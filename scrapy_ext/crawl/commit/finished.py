"""Finished requests, from when the engine has let go of them until they are committed.

They are committed in the order in which they finished, so that items are stored in the order of the crawl. A direct
request (:mod:`scrapy_ext.crawl.frontier.sent`) can be committed only when its batch was read (*placed*). Batches are
read when enough requests wait for theirs, when nothing else is left to do, or after a while.

A request without a place does not hold up the others for ever: a platform may bound what one read returns, so that its
batch comes only when those of the others are acknowledged. When a read brings no place, they pass (:meth:`release`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final

from scrapy_ext.crawl.commit.tracking import Entry

#: Requests without a place for which batches are read: so many, and this part of what is in memory, for each read
#: brings all that is not acknowledged.
_ENOUGH: Final = 100
_PART: Final = 1 / 50
#: The same by the bytes of their items.
_ENOUGH_BYTES: Final = 1024 * 1024


class FinishedRequests:
    """``commit`` is called for each request whose turn it is; ``read`` has batches read now. A request waits for its
    place for ``interval`` seconds at most before ``read`` is called."""

    def __init__(self, commit: Callable[[Entry], None], read: Callable[[], None], interval: float) -> None:
        self._commit = commit
        self._read = read
        self._interval = interval
        self._entries: deque[Entry] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._released = asyncio.Event()
        #: Bytes of the items of those that wait.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry, unfinished: int) -> None:
        """Take a request that is finished; ``unfinished`` is how many are not."""
        if not self._entries and not _lacks_place(entry):
            self._commit(entry)
            return
        self._entries.append(entry)
        self.bytes += entry.bytes
        enough = max(_ENOUGH, _PART * unfinished)
        if not unfinished or len(self._entries) >= enough or self.bytes >= _ENOUGH_BYTES:
            self._read()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._read_now)

    def release(self, *, in_vain: bool) -> None:
        """Commit those whose turn it is. ``in_vain``: a read brought no place, so whoever has one passes."""
        waiting = deque[Entry]()
        while self._entries and (in_vain or not _lacks_place(self._entries[0])):
            entry = self._entries.popleft()
            if _lacks_place(entry):
                waiting.append(entry)
            else:
                self.bytes -= entry.bytes
                self._commit(entry)
        self._entries.extendleft(reversed(waiting))
        self._released.set()

    async def wait(self) -> None:
        """Wait until a read has brought places, or for ``interval`` seconds."""
        self._released.clear()
        self._read()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._interval):
                await self._released.wait()

    def close(self) -> None:
        """Ask for no more reads."""
        if self._timer is not None:
            self._timer.cancel()

    def _read_now(self) -> None:
        self._timer = None
        if self._entries:
            self._read()


def _lacks_place(entry: Entry) -> bool:
    return entry.stored is None and not entry.is_local

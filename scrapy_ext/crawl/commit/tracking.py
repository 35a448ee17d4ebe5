"""Entries of requests: the end of each request, and its results.

The rules that hold here:

- A request is finished when the engine has released it (see :mod:`scrapy_ext.crawl.session.scrapy_engine`), unless a
  downloader middleware has replaced it: then the replacement continues its entry.
- A request that this process sent can run before it is read back (*direct*, see :mod:`scrapy_ext.crawl.frontier.sent`):
  its slot is known, its batch is not. It is committed when its batch is known.
- A request that cannot be stored exists in this process only. Such a *local* request belongs to the stored request that
  led to it, its *holder*. The holder is finished when its local requests are finished, too, for a successor that runs
  the holder again makes them again. The results and failures of a local request are the holder's.
- The results of a request are collected in its entry. :data:`current` has the entry of the running code: the engine's
  tasks for a request inherit it when the request is handed out, and with them callback, errback, pipelines and
  ``enqueue_request``.

No I/O and no Scrapy engine: the tracker is called for each request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from scrapy import Request

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.crawl.commit.events import Payload, Stored

#: Requests without a place after which batches are read: this number, and this share of the requests in memory, since
#: each read returns all unacknowledged batches.
_ENOUGH: Final = 100
_PART: Final = 1 / 50
#: Bytes of their items after which batches are read.
_ENOUGH_BYTES: Final = 1024 * 1024
#: Meta key of a request that was not sent because the crawl is closing, and returns to its queue. It is in the meta for
#: disk queues, and removed before a callback or errback gets the request.
RETURNED_KEY: Final = "_returned"


@dataclass(slots=True, eq=False)
class Entry:
    """One request, with everything that it leads to in this process."""

    fp: str
    #: Current request of the entry: the one that was read or sent, or its replacement.
    request: Request
    host: str
    #: Its batch and position; None for a local request, and for a direct one until its batch is read.
    stored: Stored | None
    holder: Entry | None
    #: Its slot; None for a local request.
    slot: int | None = None
    #: Bytes of the request in memory, estimated, if it is or was direct.
    request_bytes: int = 0
    #: Local requests that it holds: number of unfinished ones, fingerprints of all.
    locals: int = 0
    local_fps: list[str] = field(default_factory=list)
    #: Number of equal children without a fingerprint of their own, by Scrapy's fingerprint.
    children: dict[str, int] = field(default_factory=dict)
    #: Its items, as JSON, their size in bytes, and the items that are staged already.
    items: list[bytes] = field(default_factory=list)
    size: int = 0
    payloads: list[Payload] = field(default_factory=list)
    #: Whether it has an item that is or will be stored.
    has_items: bool = False
    #: Number of the attempt, and error of its callback.
    attempt: int = 1
    error: str | None = None
    #: Whether the engine has released it.
    is_finished: bool = False
    #: Whether a part of it did not run because the crawl is closing, so that it runs again.
    is_interrupted: bool = False
    #: Keys of the paid answers that it has used.
    answers: list[bytes] = field(default_factory=list)

    @property
    def is_local(self) -> bool:
        """Return true if the request is in no slot of the frontier."""
        return self.slot is None

    @property
    def is_complete(self) -> bool:
        """Return true if the request and the local requests that it holds are finished."""
        return self.is_finished and not self.locals

    def add_item(self, record: bytes) -> None:
        self.has_items = True
        self.items.append(record)
        self.size += len(record)

    def take_items(self) -> list[bytes]:
        items, self.items, self.size = self.items, [], 0
        return items

    def inherit(self, local: Entry) -> None:
        """Take over the results of a local request."""
        for record in local.take_items():
            self.add_item(record)
        self.payloads += local.payloads
        local.payloads = []
        self.answers += local.answers
        self.is_interrupted |= local.is_interrupted


class Start:
    """Type of :data:`START`, which stands for ``start()`` where requests have an entry."""


START: Final = Start()

#: Entry of the running code, :data:`START` for ``start()``, None for other code.
current: ContextVar[Entry | Start | None] = ContextVar("current", default=None)


class Tracker:
    """Entries of a crawl.

    ``on_complete``: called for each complete entry that is not local, and for each local one without a holder.
    ``on_inherited``: called for a holder that has received the results of a local entry.
    """

    def __init__(self, on_complete: Callable[[Entry], None], on_inherited: Callable[[Entry], None]) -> None:
        self._on_complete = on_complete
        self._on_inherited = on_inherited
        self._unfinished: set[Entry] = set()
        #: Finished entries that hold unfinished local ones.
        self._holding: set[Entry] = set()
        #: Entries by the request that the engine has.
        self._by_request: dict[Request, Entry] = {}
        #: Requests that stand for entries, until the engine has released them.
        self._in_use: set[Request] = set()

    def __contains__(self, request: Request) -> bool:
        """Return true if a request object stands for an unfinished entry."""
        return request in self._in_use

    @property
    def unfinished(self) -> int:
        """Number of unfinished requests, waiting or in the engine."""
        return len(self._unfinished)

    def stored_requests(self) -> Iterable[Request]:
        """Return the unfinished requests that another process could run."""
        return (entry.request for entry in self._unfinished if not entry.is_local)

    def entries_of(self, slots: set[int]) -> Iterable[Entry]:
        return [entry for entry in chain(self._unfinished, self._holding) if entry.slot in slots]

    def sent(self, slot: int, fp: str, request: Request, host: str, request_bytes: int = 0) -> Entry:
        """Add the entry of a request that was sent to its slot and runs before it is read back."""
        return self._enter(Entry(fp, request, host, None, None, slot, request_bytes))

    def read(self, stored: Stored, request: Request, host: str) -> Entry:
        """Add the entry of a request that was read from the frontier."""
        return self._enter(Entry(stored.fp, request, host, stored, None, stored.batch.slot))

    def local(self, fp: str, request: Request, host: str, parent: Entry | None) -> Entry:
        """Add the entry of a request that cannot be stored."""
        holder = None if parent is None else parent.holder or (None if parent.is_local else parent)
        if holder is not None:
            holder.locals += 1
            holder.local_fps.append(fp)
        return self._enter(Entry(fp, request, host, None, holder))

    def handed_out(self, entry: Entry) -> Request:
        """Return the request of an entry, which goes to the engine now."""
        self._by_request[entry.request] = entry
        self._in_use.add(entry.request)
        return entry.request

    def is_open(self, entry: Entry) -> bool:
        """Return true if the entry is incomplete, so that it may still lead to something."""
        return entry in self._unfinished or entry in self._holding

    def finished(self, request: Request) -> None:
        """Record that the engine has released a request."""
        entry = self._by_request.pop(request, None)
        if entry is None:
            return
        self._in_use.discard(request)
        if entry.request is not request:
            return
        self._unfinished.remove(entry)
        entry.is_finished = True
        self._settle(entry)

    def again(self, entry: Entry, request: Request) -> None:
        """Run a complete entry once more."""
        entry.request = request
        entry.attempt += 1
        entry.error = None
        entry.is_finished = False
        entry.children.clear()
        self._enter(entry)

    def drop(self, entry: Entry) -> None:
        """Remove an entry that is not in the engine."""
        self._unfinished.discard(entry)
        self._in_use.discard(entry.request)

    def _enter(self, entry: Entry) -> Entry:
        self._unfinished.add(entry)
        self._in_use.add(entry.request)
        return entry

    def _settle(self, entry: Entry) -> None:
        if not entry.is_local:
            if entry.is_complete:
                self._on_complete(entry)
            else:
                self._holding.add(entry)
            return
        holder = entry.holder
        if holder is None:
            self._on_complete(entry)
            return
        holder.inherit(entry)
        holder.error = holder.error or entry.error
        holder.locals -= 1
        if holder.is_complete:
            self._holding.discard(holder)
            self._on_complete(holder)
        else:
            self._on_inherited(holder)


class FinishedRequests:
    """Finished requests that wait for their commit.

    They are committed in the order in which they finished, so that items are stored in the order of the crawl. A direct
    request (:mod:`scrapy_ext.crawl.frontier.sent`) can be committed only after its batch was read, which gives it its
    place. Batches are read when many requests wait for theirs, when nothing else is left to do, or after ``interval``
    seconds. A read and the commit after it take calls for each slot, so in a fast crawl the reads for many requests are
    at least half an ``interval`` apart.

    A request without a place does not block the others for ever. A platform may limit the size of a read, so that the
    batch of the request comes only after those of the others are acknowledged. After a read without a place, the others
    are committed first (:meth:`release`).

    ``commit`` is called for each request in turn; ``read`` reads batches now.
    """

    def __init__(self, commit: Callable[[Entry], None], read: Callable[[], None], interval: float) -> None:
        self._commit = commit
        self._read = read
        self._interval = interval
        self._entries: deque[Entry] = deque()
        self._timer: asyncio.TimerHandle | None = None
        #: Time before which no read begins for the number of requests.
        self._not_before = 0.0
        self._is_closed = False
        self._released = asyncio.Event()
        #: Bytes of their items.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry, unfinished: int) -> None:
        """Add a finished request; ``unfinished`` is the number of requests that are not."""
        if not self._entries and not _lacks_place(entry):
            self._commit(entry)
            return
        self._entries.append(entry)
        self.bytes += entry.size
        now = asyncio.get_running_loop().time()
        if not unfinished or self.bytes >= _ENOUGH_BYTES:
            self._read()
        elif len(self._entries) < max(_ENOUGH, _PART * unfinished):
            self._read_at(now + self._interval)
        elif now < self._not_before:
            self._read_at(self._not_before)
        else:
            self._not_before = now + self._interval / 2
            self._read()

    def release(self, *, in_vain: bool) -> None:
        """Commit the requests whose turn it is. ``in_vain``: a read returned no place, so requests with a place need
        not wait for those without."""
        waiting = deque[Entry]()
        while self._entries and (in_vain or not _lacks_place(self._entries[0])):
            entry = self._entries.popleft()
            if _lacks_place(entry):
                waiting.append(entry)
            else:
                self.bytes -= entry.size
                self._commit(entry)
        self._entries.extendleft(reversed(waiting))
        self._released.set()
        if self._entries:
            self._read_at(asyncio.get_running_loop().time() + self._interval)

    async def wait(self) -> None:
        """Wait until a read has returned places, or for ``interval`` seconds."""
        self._released.clear()
        self._read()
        with contextlib.suppress(*TIMEOUT_ERRORS):
            async with timeout_after(self._interval):
                await self._released.wait()

    def close(self) -> None:
        """Cancel the timer of the next read, and set no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _read_at(self, when: float) -> None:
        """Read batches at a time of the loop's clock, or at the earlier time that is set."""
        if self._is_closed:
            return
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._read_now)

    def _read_now(self) -> None:
        self._timer = None
        if self._entries:
            self._not_before = asyncio.get_running_loop().time() + self._interval / 2
            self._read()


def _lacks_place(entry: Entry) -> bool:
    return entry.stored is None and not entry.is_local

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

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from scrapy import Request

from scrapy_ext.crawl.commit.events import Payload, Stored

#: Meta key of a request that was not sent because the crawl is closing, and returns to its queue. It is in the meta for
#: disk queues, and removed before a callback or errback gets the request.
RETURNED_KEY: Final = "_returned"


#: Stands for the request of an entry that was released.
_RELEASED: Final = Request("data:,")


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

    @property
    def is_released(self) -> bool:
        return self.request is _RELEASED

    def release(self) -> None:
        """Drop the request and its JSON form, whose body, ``meta`` and ``cb_kwargs`` may hold pages, once nothing needs
        them: hundreds of entries wait for their commit, and the event loop keeps the contexts in which entries were
        current until it forgets their cancelled timers.
        """
        self.request = _RELEASED
        if self.stored is not None:
            self.stored = self.stored._replace(form={})

    def inherit(self, local: Entry) -> None:
        """Take over the results of a local request."""
        for record in local.take_items():
            self.add_item(record)
        self.payloads += local.payloads
        local.payloads = []
        self.answers += local.answers
        self.is_interrupted |= local.is_interrupted
        self.error = self.error or local.error


class Start:
    """Type of :data:`START`, which stands for ``start()`` where requests have an entry."""


START: Final = Start()

#: Entry of the running code, :data:`START` for ``start()``, None for other code.
current: ContextVar[Entry | Start | None] = ContextVar("current", default=None)


class Tracker:
    """Entries of a crawl."""

    def __init__(self) -> None:
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

    @property
    def has_own(self) -> bool:
        """Return true if requests that no stored one would make again are unfinished: ``start()`` has made them."""
        return any(entry.is_local and entry.holder is None for entry in self._unfinished)

    @property
    def unstored_items(self) -> int:
        """Number of items in memory that unfinished requests have led to."""
        return sum(len(entry.items) for entry in chain(self._unfinished, self._holding))

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

    def finished(self, request: Request) -> Entry | None:
        """Record that the engine has released a request. Return the entry that has its results, if it is complete now
        or the results are those of a local request: they go to its holder, if it has one."""
        entry = self._by_request.pop(request, None)
        if entry is None:
            return None
        self._in_use.discard(request)
        if entry.request is not request:
            return None
        self._unfinished.remove(entry)
        entry.is_finished = True
        if entry.holder is not None:
            return self._inherited(entry.holder, entry)
        if not entry.is_complete:
            self._holding.add(entry)
            return None
        return entry

    def again(self, entry: Entry, request: Request) -> Entry:
        """Return the entry of the next attempt of a complete one: tasks that a callback left behind keep the former
        entry, so that nothing of them counts for the next attempt."""
        following = Entry(entry.fp, request, entry.host, entry.stored, None, entry.slot, entry.request_bytes)
        following.attempt = entry.attempt + 1
        following.answers = entry.answers
        return self._enter(following)

    def drop(self, entry: Entry) -> None:
        """Remove an entry that is not in the engine."""
        self._unfinished.discard(entry)
        self._in_use.discard(entry.request)

    def _enter(self, entry: Entry) -> Entry:
        self._unfinished.add(entry)
        self._in_use.add(entry.request)
        return entry

    def _inherited(self, holder: Entry, local: Entry) -> Entry:
        holder.inherit(local)
        local.release()
        holder.locals -= 1
        if holder.is_complete:
            self._holding.discard(holder)
        return holder

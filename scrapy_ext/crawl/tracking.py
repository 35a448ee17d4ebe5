"""When a request of a batch is really done, and a batch with it.

The rules that hold here:

- A batch is finished when each of its requests is. It is finished once, and never before.
- A request is finished when the engine has let go of it (see :mod:`scrapy_ext.crawl.engine`), unless a
  downloader middleware put another request in its place: then that one carries on for it.
- A request which cannot be stored and so lives in this process only (a *local* request) holds back every
  batch that was open when it was made: any of them may be its parent.

No I/O, no Scrapy engine: requests are told of by calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from scrapy import Request

#: Meta key of the entry that a request belongs to, as a token and the fingerprint. A child that copies its
#: parent's meta has it too, so it alone does not tell that a request carries on for the entry.
ENTRY_KEY: Final = "_frontier_entry"
#: Meta key of a request that was not sent because the crawl is closing, and goes back to its queue.
RETURNED_KEY: Final = "_returned"


class OpenBatch:
    """A batch that was read and not acknowledged."""

    __slots__ = ("id", "size", "slot", "unfinished")

    def __init__(self, slot: int, id: str, size: int) -> None:
        self.slot = slot
        self.id = id
        self.size = size
        self.unfinished: set[Entry] = set()


class Entry:
    """One request of the frontier, through all that is done for it in this process."""

    __slots__ = ("batches", "fp", "host", "is_local", "orphans", "request", "token")

    def __init__(
        self, token: int, fp: str, request: Request, host: str, batches: tuple[OpenBatch, ...], *, is_local: bool
    ) -> None:
        self.token = token
        #: In the slot. No two entries have the same.
        self.fp = fp
        self.is_local = is_local
        #: How many children without a parent's mark it has made (its errback yields such).
        self.orphans = 0
        #: The request that stands for the entry now: the one that was read, or what replaced it.
        self.request = request
        self.host = host
        self.batches = batches


class Tracker:
    """Entries and open batches; calls ``on_batch_finished`` for each batch when it is finished."""

    def __init__(self, on_batch_finished: Callable[[OpenBatch], None]) -> None:
        self._on_batch_finished = on_batch_finished
        self._by_token: dict[int, Entry] = {}
        self._by_request: dict[Request, Entry] = {}
        self._open: dict[tuple[int, str], OpenBatch] = {}
        self._tokens = 0

    @property
    def open_batches(self) -> Iterable[OpenBatch]:
        """Batches with unfinished requests."""
        return self._open.values()

    @property
    def unfinished(self) -> int:
        """How many requests are not finished, waiting or out."""
        return len(self._by_token)

    def open_batch(self, slot: int, id: str, requests: Iterable[tuple[str, Request, str]]) -> list[Entry]:
        """A batch was read: ``(fp, request, host)`` for each of its requests that can be run."""
        listed = list(requests)
        batch = OpenBatch(slot, id, len(listed))
        self._open[slot, id] = batch
        entries = [self._enter(fp, request, host, (batch,), False) for fp, request, host in listed]
        if not entries:
            self._finish(batch)
        return entries

    def local(self, fp: str, request: Request, host: str) -> Entry:
        """A request that cannot be stored; it holds back every open batch."""
        return self._enter(fp, request, host, tuple(self._open.values()), True)

    def handed_out(self, entry: Entry) -> Request:
        """The entry's request goes to the engine."""
        request = entry.request
        request.meta[ENTRY_KEY] = (entry.token, entry.fp)
        self._by_request[request] = entry
        return request

    def entry_of(self, request: Request) -> Entry | None:
        """The unfinished entry whose mark a request has: its own, or its parent's where meta was copied."""
        mark: Any = request.meta.get(ENTRY_KEY)
        return self._by_token.get(mark[0]) if isinstance(mark, tuple) else None

    def carry_on(self, entry: Entry, request: Request) -> None:
        """From now on this request stands for the entry (a downloader middleware put it in its place)."""
        entry.request = request

    def finished(self, request: Request) -> Entry | None:
        """The engine let go of a request; returns the entry if it is finished by that."""
        entry = self._by_request.pop(request, None)
        if entry is None or entry.request is not request:
            return None
        self._leave(entry)
        return entry

    def drop(self, entry: Entry) -> None:
        """Give an entry up that is not out: it was put back."""
        self._leave(entry)

    def _enter(self, fp: str, request: Request, host: str, batches: tuple[OpenBatch, ...], is_local: bool) -> Entry:
        self._tokens += 1
        entry = Entry(self._tokens, fp, request, host, batches, is_local=is_local)
        self._by_token[entry.token] = entry
        for batch in batches:
            batch.unfinished.add(entry)
        return entry

    def _leave(self, entry: Entry) -> None:
        del self._by_token[entry.token]
        for batch in entry.batches:
            batch.unfinished.discard(entry)
            if not batch.unfinished:
                self._finish(batch)

    def _finish(self, batch: OpenBatch) -> None:
        del self._open[batch.slot, batch.id]
        self._on_batch_finished(batch)

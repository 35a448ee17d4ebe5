"""Commits what finished requests have led to, so that each of it happens once, whatever dies when.

A commit takes all requests that have finished since the last one:

1. their children are made durable in the frontier, and their items laid down as a payload;
2. the journal gets a record: which requests are finished, which items go where, which batches are done. This is the
   moment from which the commit counts;
3. the items are stored, at the places that the record gives;
4. the batches of which every request is finished are acknowledged, for an acknowledged batch is never read again.

A process that dies before 2 has done nothing that shows: its successor runs the requests again, and the children that
they send again have known fingerprints. One that dies after 2 has its successor do 3 and 4 again
(:mod:`~scrapy_ext.crawl.commit.redo`). One that has been replaced cannot do 2 any more
(:mod:`~scrapy_ext.crawl.commit.journal`).

Commits follow each other one by one. A request that leads to many items has them laid down as they come
(:meth:`Committer.spill`), so that they do not fill the memory until it is finished.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.http import gzipped
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.checkpoint import Chunk, Redo
from scrapy_ext.crawl.commit.commitlog import CommitLog
from scrapy_ext.crawl.commit.redo import Finisher
from scrapy_ext.crawl.commit.tracking import Entry, OpenBatch, Spill

#: A commit is due when so many requests, items or bytes of items wait, and takes about so many at once.
_REQUESTS: Final = 100
_ITEMS: Final = 1000
_BYTES: Final = 1024 * 1024
#: Payloads that are removed together.
_GARBAGE: Final = 30


class Lot(NamedTuple):
    """Something to commit: a request that is complete, or items of none. ``is_start``: of ``start()``."""

    entry: Entry | None
    items: list[bytes]
    is_start: bool = False


class Committed(NamedTuple):
    """What a commit was of."""

    lots: Sequence[Lot]
    batches: Sequence[OpenBatch]


class Committer:
    """Commits lots, in a task of its own.

    ``owner`` is this process's name for payloads. ``flush_children`` makes durable what was sent to the frontier.
    ``on_committed`` hears of each commit, ``on_failure`` of the error that ends the task: all calls are repeated, so
    an error is final. ``start`` is the index of the job's next item; ``interval`` the seconds that a lot waits at most.
    """

    def __init__(
        self,
        log: CommitLog,
        finisher: Finisher,
        job: JobKey,
        *,
        owner: str,
        start: int,
        interval: float,
        flush_children: Callable[[], Awaitable[None]],
        on_committed: Callable[[Committed], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._log = log
        self._finisher = finisher
        self._job = job
        self._owner = owner
        self._next = start
        self._interval = interval
        self._flush_children = flush_children
        self._on_committed = on_committed
        self._on_failure = on_failure
        self._lots: deque[Lot] = deque()
        #: How many lots were added, and committed.
        self._added = 0
        self._committed = 0
        self._items = 0
        #: Bytes of items that wait, those of the commit that is under way included.
        self.pending_bytes = 0
        self._number = 0
        #: Numbers of payloads that nothing names any more.
        self._garbage: list[int] = []
        self._hurried = False
        self._idle = True
        self._due = asyncio.Event()
        self._settled = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.failure: Exception | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything is committed."""
        return self._idle

    def start(self) -> None:
        """Start the task, in the running loop."""
        self._task = asyncio.ensure_future(self._run())

    def add(self, lot: Lot) -> None:
        """Take something to commit."""
        self._lots.append(lot)
        self._added += 1
        self._idle = False
        self._items += len(lot.items)
        self.pending_bytes += sum(map(len, lot.items))
        if self._hurried or len(self._lots) >= _REQUESTS or self._items >= _ITEMS or self.pending_bytes >= _BYTES:
            self._due.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._due.set)

    def hurry(self) -> None:
        """Commit what is here: nothing else is left to do."""
        if self._lots:
            self._due.set()

    def spill(self, entry: Entry) -> None:
        """Lay the items of an unfinished request down, to have them out of memory."""
        items = entry.take_items()
        size = sum(map(len, items))
        self.pending_bytes += size
        written = asyncio.ensure_future(self._spill(number := self._new_number(), items, size))
        entry.spills.append(Spill(number, len(items), written))

    async def _spill(self, number: int, items: list[bytes], size: int) -> None:
        try:
            await self._finisher.lay_down(self._owner, number, await gzipped(b"\n".join(items) + b"\n"))
        finally:
            self.pending_bytes -= size
            self._settle()

    def discard(self, entry: Entry) -> None:
        """What a request has led to is not to be stored: it is tried again."""
        entry.take_items()
        self._garbage += [spill.number for spill in entry.spills]
        entry.spills = []

    async def wait_for_progress(self) -> None:
        """Wait until something is stored; returns at once when nothing waits or the task has ended."""
        if self.failure is None and (self.pending_bytes or not self._idle):
            self.hurry()
            await self._settled.wait()

    async def flush(self) -> None:
        """Wait until everything is committed that was added so far; returns early when the task has ended."""
        mark = self._added
        while self._committed < mark and self.failure is None:
            self._due.set()
            await self._settled.wait()

    async def close(self) -> None:
        """Commit everything that was added, and end the task."""
        if self._task is None:
            return
        self._hurried = True
        while not self._idle and self.failure is None and not self._task.done():
            self._due.set()
            waiter = asyncio.ensure_future(self._settled.wait())
            await asyncio.wait({waiter, self._task}, return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._cancel_timer()

    # ── the task ──

    async def _run(self) -> None:
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                self._cancel_timer()
                while self._lots:
                    await self._commit(self._take())
                self._idle = True
                self._settle()
        except Exception as error:
            self.failure = error
            self._settle()
            self._on_failure(error)

    def _take(self) -> list[Lot]:
        taken: list[Lot] = []
        items = size = 0
        while self._lots and len(taken) < 10 * _REQUESTS and items < _ITEMS and size < _BYTES:
            lot = self._lots.popleft()
            taken.append(lot)
            items += len(lot.items)
            size += sum(map(len, lot.items))
        self._items -= items
        return taken

    async def _commit(self, lots: list[Lot]) -> None:
        records = [record for lot in lots for record in lot.items]
        spills = [spill for lot in lots if lot.entry is not None for spill in lot.entry.spills]
        packed = await gzipped(b"\n".join(records) + b"\n") if records else b""
        fresh = self._new_number() if records else 0
        await asyncio.gather(
            self._flush_children(),
            *([self._finisher.lay_down(self._owner, fresh, packed)] if records else []),
            *(spill.written for spill in spills),
        )
        laid_down = [(spill.number, spill.count) for spill in spills] + ([(fresh, len(records))] if records else [])
        before = self._log.checkpoint.redo
        batches, redo = self._record(lots, laid_down)
        await self._log.write()
        for chunk in redo.chunks:
            if chunk.number == fresh:
                await self._finisher.store(self._job, chunk.start, packed)
            else:
                await self._finisher.store_chunk(self._job, self._owner, chunk)
        await self._finisher.acknowledge(redo.acknowledge)
        self.pending_bytes -= sum(map(len, records))
        self._committed += len(lots)
        self._on_committed(Committed(lots, batches))
        self._settle()
        if before is not None and before.owner == self._owner:
            await self._forget(chunk.number for chunk in before.chunks)

    def _record(self, lots: list[Lot], laid_down: Sequence[tuple[int, int]]) -> tuple[list[OpenBatch], Redo]:
        """Put a commit into the checkpoint, without waiting; returns the batches that are done by it."""
        checkpoint = self._log.checkpoint
        touched: dict[OpenBatch, None] = {}
        for lot in lots:
            if lot.is_start:
                checkpoint.start_items += len(lot.items)
            if lot.entry is not None and lot.entry.stored is not None:
                batch = lot.entry.stored.batch
                batch.done |= 1 << lot.entry.stored.position
                touched[batch] = None
        done = [batch for batch in touched if batch.is_done]
        for batch in touched:
            if batch.is_done:
                checkpoint.progress.forget(batch.slot, batch.id)
            else:
                checkpoint.progress.done.setdefault(batch.slot, {})[batch.id] = f"{batch.done:x}"
        chunks = []
        for number, count in laid_down:
            chunks.append(Chunk(number, self._next, count))
            self._next += count
        checkpoint.redo = Redo(str(self._job), self._owner, chunks, _by_slot(done))
        return done, checkpoint.redo

    # ── what is laid down ──

    def _new_number(self) -> int:
        self._number += 1
        return self._number

    async def _forget(self, numbers: Iterable[int]) -> None:
        """Remove payloads that no record names any more, some at a time."""
        self._garbage += numbers
        if len(self._garbage) >= _GARBAGE:
            garbage, self._garbage = self._garbage, []
            with contextlib.suppress(PlatformError):  # Only room, and the end of the job removes them too.
                await self._finisher.payloads.delete(self._owner, garbage)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _settle(self) -> None:
        self._settled.set()
        self._settled.clear()


def _by_slot(batches: Sequence[OpenBatch]) -> dict[int, list[str]]:
    by_slot: dict[int, list[str]] = {}
    for batch in batches:
        by_slot.setdefault(batch.slot, []).append(batch.id)
    return by_slot

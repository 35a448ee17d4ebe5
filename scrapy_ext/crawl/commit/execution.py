"""Execution of the commit protocol's actions (:mod:`~scrapy_ext.crawl.commit.protocol`): items are staged, stored, and
batches acknowledged, by the process that commits, or by one that takes over.

Items are staged for the successor of a process. Otherwise, after a death between two steps, it would be unknown whether
the items are stored or may still arrive, since a call of a dead process can be delayed in a socket. A successor stores
the same bytes at the same indexes, so that it does not matter which of the two calls comes first.

A payload is one or more records of a collection. Its key consists of the name of its process and a number that the
process uses once, so that a late write changes nothing. It is deleted when no record of a journal names it any more.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Final

import msgspec

from scrapy_ext.api import compression
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.job_data import COMMITS_COLLECTION as COLLECTION
from scrapy_ext.client.http import gzipped
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.collections import Collections
from scrapy_ext.client.platform.errors import Gone, NotFound, PlatformError, TooLarge
from scrapy_ext.client.platform.slots import SlotCalls
from scrapy_ext.client.retry import Retry
from scrapy_ext.compatibility.python import create_task_in
from scrapy_ext.crawl.commit import events
from scrapy_ext.crawl.commit.journal import CommitLog, Fenced, Journal, to_data
from scrapy_ext.crawl.commit.protocol import Commits, Takeover
from scrapy_ext.crawl.commit.target import Target
from scrapy_ext.crawl.commit.tracking import Entry

logger = logging.getLogger(__name__)

_TYPE: Final = CollectionType.STORE.value
#: Characters of one record, below the platform's limit to leave room for its other members.
_PART: Final = 900_000


class Payloads:
    """Payloads of staged items in the collection of a project."""

    def __init__(self, client: Collections, project: int) -> None:
        self._client = client
        self._project = project

    async def write(self, owner: str, number: int, packed: bytes) -> None:
        """Write items, as compressed JSON lines."""
        text = base64.b64encode(packed).decode()
        pieces = [text[first : first + _PART] for first in range(0, len(text), _PART)]
        # The first piece is written last: a reader that finds it finds the others.
        for place, piece in reversed(list(enumerate(pieces))):
            record = {"_key": _key(owner, number, place), "pieces": len(pieces), "items": piece}
            line = msgspec.json.encode(record) + b"\n"
            await self._client.write(self._project, _TYPE, COLLECTION, line, attempts=1, encoding="identity")

    async def read(self, owner: str, number: int) -> bytes | None:
        """Return the items as they were written, None if they do not exist."""
        pieces: list[str] = []
        total = 1
        while len(pieces) < total:
            key = _key(owner, number, len(pieces))
            record: dict[str, Any] | None = await self._client.get(self._project, _TYPE, COLLECTION, key)
            if record is None:
                return None
            pieces.append(record["items"])
            total = record["pieces"]
        return base64.b64decode("".join(pieces))

    async def delete(self, owner: str, numbers: Iterable[int]) -> None:
        prefixes = [f"{owner}/{number}." for number in numbers]
        await self._client.delete(self._project, _TYPE, COLLECTION, prefix=prefixes)

    async def delete_all(self, prefix: str | Sequence[str]) -> None:
        """Delete the payloads of every owner whose name has such a prefix."""
        await self._client.delete(self._project, _TYPE, COLLECTION, prefix=prefix)


class Finisher:
    """Stages items, and completes commits to the frontier of these calls."""

    def __init__(self, client: PlatformClient, project: int, calls: SlotCalls, retry: Retry) -> None:
        self._client = client
        self._calls = calls
        self._retry = retry
        self.payloads = Payloads(client.collections, project)

    async def stage(self, owner: str, number: int, packed: bytes) -> None:
        """Stage items, for this process or its successor to store."""
        await self._retry.until_done(lambda: self.payloads.write(owner, number, packed), "stage the items of a commit")

    async def store_chunk(self, redo: events.Redo, chunk: events.Chunk, packed: bytes | None = None) -> None:
        """Store the items of a chunk. ``packed``: these items; without them, the staged ones are read."""
        target = Target(JobKey.parse(redo.job), redo.writer)
        if packed:
            await self.store(target, chunk.start, packed)
            return
        try:
            packed = await self._retry.until_done(
                lambda: self.payloads.read(redo.owner, chunk.number), "read the items of a commit"
            )
            if packed is None:
                logger.error(
                    "%d items of job %s, from index %d on, cannot be stored again: they are missing in collection "
                    "%s. To have them, run their requests in a new job",
                    *(chunk.count, target.job, chunk.start, COLLECTION),
                )
                return
            await self.store(target, chunk.start, packed)
        except (Gone, NotFound):
            logger.warning(
                "%d items are not stored: job %s was deleted. To store them, start a new job", chunk.count, target.job
            )

    async def store(self, target: Target, start: int, packed: bytes) -> None:
        """Store compressed JSON lines, the first of them at index ``start``."""
        write = partial(target.write, self._client.items, packed, start, encoding="gzip")
        try:
            await self._retry.until_done(write, "store items")
        except TooLarge:
            # Some proxies accept smaller bodies than the platform. A single item that is too large ends the crawl.
            lines = b"".join(compression.unpack(packed)).rstrip(b"\n").split(b"\n")
            if len(lines) < 2:
                raise
            middle = len(lines) // 2
            for first, some in ((start, lines[:middle]), (start + middle, lines[middle:])):
                await self.store(target, first, await gzipped(b"\n".join(some) + b"\n"))

    async def acknowledge(self, batches: Mapping[int, list[str]]) -> None:
        def delete(slot: int, ids: list[str]) -> Awaitable[None]:
            return self._calls.delete_batches(str(slot), ids)

        deletions = [partial(delete, slot, ids) for slot, ids in batches.items()]
        await asyncio.gather(*(self._retry.until_done(each, "acknowledge batches") for each in deletions))


async def take_over(
    journal: Journal, finisher: Finisher, heir: events.Checkpoint, *, is_new: bool = False
) -> tuple[int, events.Checkpoint]:
    """Take over a journal (:class:`Takeover`); return the number of its last record, and the checkpoint."""
    takeover = Takeover(heir)
    actions = takeover.begin(is_new=is_new)
    while actions:
        event: events.Event
        match actions[0]:
            case events.ReadHead():
                head = await journal.head()
                event = (
                    events.Read(0, events.Checkpoint())
                    if head is None
                    else events.Read(head.number, head.read(events.Checkpoint))
                )
            case events.Append(checkpoint, int(number)):
                event = await _append(journal.append(number, to_data(checkpoint)))
            case events.StoreChunk(redo, chunk):
                await finisher.store_chunk(redo, chunk)
                event = events.ChunkStored()
            case events.Acknowledge(batches):
                await finisher.acknowledge(batches)
                event = events.Acknowledged()
            case action:
                raise ValueError(f"a takeover does not {type(action).__name__}")
        actions = takeover.receive(event)
    return takeover.number, takeover.checkpoint


async def _append(writing: Awaitable[None]) -> events.Appended | events.Refused:
    """Execute an :class:`Append`, by one of the ways to write to a journal."""
    try:
        await writing
    except Fenced as error:
        return events.Refused(error)
    return events.Appended()


class Committer:
    """Commits lots, in tasks of its own.

    ``interval``: seconds that a lot waits at most.
    ``flush_children``: makes the requests that were sent to the frontier durable.
    ``on_committed``: called after each commit.
    ``on_failure``: called with a final error, since every call is retried.
    """

    def __init__(
        self,
        commits: Commits,
        log: CommitLog,
        finisher: Finisher,
        *,
        interval: float,
        flush_children: Callable[[], Awaitable[None]],
        on_committed: Callable[[events.Report], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.commits = commits
        self._log = log
        self._finisher = finisher
        self._interval = interval
        self._flush_children = flush_children
        self._on_committed = on_committed
        self._on_failure = on_failure
        #: Compressed items of the running commit, by number of their payload.
        self._packed: dict[int, bytes] = {}
        self._loop = asyncio.get_running_loop()
        # The context without a current request, whatever code begins a commit.
        self._context = copy_context()
        self._tasks: set[asyncio.Task[None]] = set()
        self._begin: asyncio.Handle | None = None
        self._is_timer = False
        self._settled = asyncio.Event()

    def add(self, lot: events.Lot) -> None:
        """Add a lot, to be committed soon."""
        commits = self.commits
        commits.add(lot)
        if commits.is_due:
            self._begin_soon()
        else:
            self._begin_in_time()

    def hurry(self) -> None:
        """Commit without waiting for more lots: the crawl has nothing else to do."""
        if self.commits.is_waiting:
            self._begin_soon()

    def spill(self, entry: Entry) -> None:
        """Stage the items of an unfinished request and free their memory."""
        stage = self.commits.stage_early(entry.take_items())
        entry.payloads.append(stage.payload)
        self._start([stage])

    def discard(self, entry: Entry) -> None:
        """Discard the items of a request that will run again."""
        entry.take_items()
        self.commits.discard(entry.payloads)
        entry.payloads = []

    async def wait_for_progress(self) -> None:
        """Wait until something is stored; return at once if nothing waits or the commits have ended."""
        if self.commits.failure is None and (self.commits.pending_bytes or not self.commits.is_idle):
            self.hurry()
            await self._settled.wait()

    async def flush(self) -> None:
        """Wait until every lot added so far is committed, or until a failure."""
        mark = self.commits.added
        while self.commits.committed < mark and self.commits.failure is None:
            self.hurry()
            await self._settled.wait()

    async def close(self) -> None:
        """Commit every lot and end."""
        await self.flush()
        if self._begin is not None:
            self._begin.cancel()
        if self.commits.failure is not None:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ── execution ──

    def _begin_in_time(self) -> None:
        if self._begin is None:
            self._is_timer = True
            self._begin = self._loop.call_later(self._interval, self._feed_due, context=self._context)

    def _begin_soon(self) -> None:
        """Begin a commit with all lots that are added in this step of the event loop."""
        if self._begin is not None:
            if not self._is_timer:
                return
            self._begin.cancel()
        self._is_timer = False
        self._begin = self._loop.call_soon(self._feed_due, context=self._context)

    def _feed_due(self) -> None:
        self._begin = None
        self._feed(events.Due())

    def _feed(self, event: events.Event) -> None:
        self._start(self.commits.receive(event))
        if isinstance(event, events.Acknowledged) and self.commits.is_waiting:
            self._begin_in_time()
        if isinstance(event, events.Staged | events.Acknowledged):
            self._settle()

    def _start(self, actions: Iterable[events.Action]) -> None:
        for action in actions:
            match action:
                case events.Report():
                    self._on_committed(action)
                case events.Stop(error):
                    for task in self._tasks - {asyncio.current_task()}:
                        task.cancel()
                    self._settle()
                    self._on_failure(error)
                case _:
                    task = create_task_in(self._context, self._loop, self._execute(action))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _execute(self, action: events.Action) -> None:
        try:
            event = await self._event_of(action)
            if event is not None:
                self._feed(event)
        except Exception as error:
            self._feed(events.Failed(error))

    async def _event_of(self, action: events.Action) -> events.Event | None:
        match action:
            case events.FlushChildren():
                await self._flush_children()
                return events.Flushed()
            case events.Stage(number, items, is_early):
                packed = await gzipped(b"\n".join(items) + b"\n")
                if not is_early:
                    self._packed[number] = packed
                await self._finisher.stage(self.commits.owner, number, packed)
                return events.Staged(number)
            case events.Append():
                return await _append(self._log.write())
            case events.StoreChunk(redo, chunk):
                await self._finisher.store_chunk(redo, chunk, self._packed.pop(chunk.number, b""))
                return events.ChunkStored()
            case events.Acknowledge(batches):
                await self._finisher.acknowledge(batches)
                return events.Acknowledged()
            case events.Forget(numbers):
                with contextlib.suppress(PlatformError):  # They only waste space, until the end of the job.
                    await self._finisher.payloads.delete(self.commits.owner, numbers)
        return None

    def _settle(self) -> None:
        self._settled.set()
        self._settled.clear()


def _key(owner: str, number: int, place: int) -> str:
    return f"{owner}/{number}.{place}"

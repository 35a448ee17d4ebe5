"""Execution of a process's commits (:mod:`~scrapy_ext.crawl.commit.protocol`): when they begin, and their actions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.http import gzipped
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.compatibility.python import create_task_in
from scrapy_ext.crawl.commit import events
from scrapy_ext.crawl.commit.journal import CommitLog
from scrapy_ext.crawl.commit.protocol import Commits
from scrapy_ext.crawl.commit.staging import Finisher, append
from scrapy_ext.crawl.commit.tracking import Entry


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
        elif self._begin is None:
            self._is_timer = True
            self._begin = self._loop.call_later(self._interval, self._feed_due, context=self._context)

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
                return await append(self._log.write())
            case events.StoreChunk(redo, chunk):
                packed = self._packed.pop(chunk.number, b"")
                if packed:
                    await self._finisher.store(JobKey.parse(redo.job), chunk.start, packed)
                else:
                    await self._finisher.store_chunk(JobKey.parse(redo.job), redo.owner, chunk)
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

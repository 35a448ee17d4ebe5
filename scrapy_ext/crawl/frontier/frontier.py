"""The frontier of one crawl: requests go to the platform's queue, come back in batches, and are committed.

The path of a request: :class:`~scrapy_ext.crawl.frontier.enqueuing.Enqueuing` serialises it for the feeder, which sends
it to its slot. The feeder reads the slots; :class:`Reading` puts the requests that were read into
:class:`~scrapy_ext.crawl.frontier.memory.Memory`, from which :meth:`CrawlFrontier.next` takes them. While memory has
every request of the frontier, a new request goes to memory at once, and its batch is read later
(:mod:`scrapy_ext.crawl.frontier.sent`). When the engine has released a request whose batch is known, its results go to
the committer (:mod:`scrapy_ext.crawl.frontier.results`).

Invariants:

- ``Enqueuing.add``, ``PendingItems.add_item`` and ``next`` never wait, and never raise for the content of a request or
  an error of storage: an exception there ends the engine's workers.
- The crawl is over when nothing is in memory, unsent or uncommitted, the slots are empty, and no other worker has work
  (:attr:`Reading.is_drained`). The slots are empty if a read of each after the last write to it returned nothing, or if
  each request that was sent was a direct one (:mod:`scrapy_ext.crawl.frontier.sent`), and all are committed.
- A final error of storage closes the spider, which never waits for it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Any, Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.frontier import DEAD_LETTERS, Batch
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.crawl.commit.committer import Committer
from scrapy_ext.crawl.commit.events import OpenBatch, Report, Stored
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.ownership import REPLACED, Ownership
from scrapy_ext.crawl.commit.protocol import Commits
from scrapy_ext.crawl.commit.tracking import Entry, Tracker, current
from scrapy_ext.crawl.frontier.enqueuing import Enqueuing
from scrapy_ext.crawl.frontier.feeder import Feeder, SlotReader
from scrapy_ext.crawl.frontier.filtering import Filtering, Skipping
from scrapy_ext.crawl.frontier.hosts import Order
from scrapy_ext.crawl.frontier.identity import host_of
from scrapy_ext.crawl.frontier.keep_alive import KeepAlive
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.results import PendingItems, Results
from scrapy_ext.crawl.frontier.sent import SentRequests
from scrapy_ext.crawl.frontier.serialize import UnreadableRequestError, request_from_json
from scrapy_ext.crawl.frontier.workers import Ending
from scrapy_ext.crawl.frontier.writers import FrontierWriters
from scrapy_ext.crawl.session.scrapy_engine import start_is_exhausted
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Slots that are deleted at once.
_DELETED_AT_ONCE: Final = 4
#: A crawl that waits polls every five seconds, and looks for a process that has replaced it at each third poll.
_POLLS_PER_CHECK: Final = 3


class Options(msgspec.Struct, frozen=True):
    """Options of a frontier.

    ``slots``: number of slots.
    ``alone``: whether no other worker works on it.
    ``exclusive``: whether it is empty, and no other process will send to it.
    ``order``: order of requests of one priority.
    ``first_item``: index of the job's next item.
    ``keep_alive``: wait for requests that others push, None: the crawl ends without work.
    ``takes_over``: whether this worker takes the slots of others that have ended.
    """

    slots: int
    alone: bool
    exclusive: bool
    order: Order
    first_item: int
    keep_alive: KeepAlive | None = None
    takes_over: bool = False


class CrawlFrontier:
    """Parts of a frontier, and its life. ``filtering`` finds duplicates; ``may_work`` returns whether this worker may
    hand out requests."""

    def __init__(
        self, crawler: Crawler, session: Session, ownership: Ownership, filtering: Filtering, options: Options
    ) -> None:
        self._crawler = crawler
        #: Bound once, since the look-up takes as long as the count.
        self._count = crawler.stats.inc_value
        self._session = session
        self._ownership = ownership
        self.may_work: Callable[[], bool] = lambda: True
        skipping = filtering.skipping
        # Lambdas, because some parts are made later than others that call them.
        tracker = Tracker(
            lambda entry: results.complete(entry),  # noqa: PLW0108
            lambda entry: results.stage_if_large(entry),  # noqa: PLW0108
        )
        sent = SentRequests(
            # Skipped requests are looked up when their batch is read.
            exclusive=options.exclusive and not skipping.is_used,
            on_copied=lambda request, made_by: self.enqueuing.copied(request, made_by),  # noqa: PLW0108
        )
        self.memory = memory = Memory(crawler, session, tracker, sent, options.order)
        writers = FrontierWriters(crawler, session, self.name, lambda slot: feeder.added(slot))  # noqa: PLW0108
        self._feeder = feeder = Feeder(
            writers.writer_of,
            self._read_slot,
            prefetch=names.FRONTIER_PREFETCH.read(crawler.settings),
            retry=Retry(names.PLATFORM_RETRY_TIME.read(crawler.settings), Backoff(), session.outage),
            wake=lambda: memory.wake(),  # noqa: PLW0108
            on_failure=self.give_up,
        )

        async def flush_children() -> None:
            await asyncio.gather(feeder.flush(), writers.flush_others())

        committer = Committer(
            Commits(
                ownership.log.checkpoint,
                str(session.job.key),
                f"{self.name}/{ownership.name}/{ownership.writer}",
                options.first_item,
            ),
            ownership.log,
            ownership.finisher,
            interval=names.PLATFORM_FLUSH_INTERVAL.read(crawler.settings),
            flush_children=flush_children,
            on_committed=self._committed,
            on_failure=self.give_up,
        )
        self.enqueuing = Enqueuing(crawler, memory, feeder, filtering, options.slots)
        results = Results(crawler, memory, feeder, writers, committer)
        self.items = PendingItems(crawler, results, ownership)
        self.reading = Reading(
            crawler,
            memory,
            feeder,
            results,
            skipping,
            ending=None
            if options.alone
            else Ending(
                ownership, options.slots, leaves_rest=options.keep_alive is not None and not options.takes_over
            ),
            keep_alive=options.keep_alive,
            check_owner=self._check_owner,
        )

    def next(self) -> Request | None:
        entry = self.memory.pop() if self.may_work() else None
        self._feeder.hunger(starved=entry is None)
        if entry is None:
            self.memory.none_left()
            return None
        self._count("scheduler/dequeued")
        self._count("scheduler/dequeued/frontier")
        # The engine starts the tasks for this request now, and they inherit it.
        current.set(entry)
        return entry.request

    def park(self, request: Request, seconds: float) -> None:
        """Send nothing more to the host of a request for some seconds."""
        self._crawler.stats.inc_value("frontier/parked_hosts")
        self.memory.park_host(host_of(request), seconds)

    @property
    def name(self) -> str:
        return self._ownership.frontier

    def start(self, slots: set[int]) -> None:
        """Start the tasks, in the running loop."""
        self._feeder.start(self.reading, slots, are_empty=self.memory.sent.only_direct)
        self.reading.start(names.FRONTIER_POLL_INTERVAL.read(self._crawler.settings))

    async def own(self, slots: set[int]) -> None:
        """Work on exactly these slots; return when no request of other slots runs and their results are committed."""
        given_up = self._feeder.owned - slots
        self._feeder.own(slots)
        await self.memory.give_up(given_up)
        await self.reading.committer.flush()
        self.reading.is_over = False

    async def close(self, *, is_left: bool = True) -> None:
        """Commit finished requests and end; the others stay in the frontier. A failure has closed the spider before.

        ``is_left``: whether another process may work on the frontier later.
        """
        log, committer = self._ownership.log, self.reading.committer
        self.memory.close()
        self.reading.close()
        if self.reading.keep_alive is not None and not log.is_fenced:
            await self.reading.keep_alive.close()
        await self._feeder.close()
        if not log.is_fenced and committer.commits.failure is None:
            await self.reading.place_all()
            self.enqueuing.warn_of_shared()
        await committer.close()
        try:
            if is_left and committer.commits.failure is None and not log.is_fenced:
                await self._ownership.close()
            if log.is_fenced:
                self._session.is_replaced = await self._ownership.has_successor()
        except (PlatformError, Fenced) as error:
            logger.warning("The end of this worker could not be recorded: %s", error)

    async def _check_owner(self) -> None:
        """Close the spider if another process has taken over."""
        try:
            await self._ownership.log.check()
        except Fenced as fenced:
            self.give_up(fenced)
        except PlatformError as error:
            logger.debug("The journal of this worker cannot be read, trying again: %s", error)

    def give_up(self, error: Exception) -> None:
        """Close the spider: the frontier is unusable."""
        if isinstance(error, Fenced):
            self._session.fail(error, REPLACED)
        elif isinstance(error, PlatformError) and not error.path.startswith("/hcf"):
            self._session.fail(error, "platform_unavailable")
        else:
            self._session.fail(error, "frontier_unavailable")

    async def delete(self) -> None:
        """Remove the frontier from the platform, unless it has dead letters, which need it to run again."""
        frontier, project = self._session.client.frontier, self._ownership.project
        slots = await frontier.slots(project, self.name)
        if DEAD_LETTERS in slots and await frontier.read(project, self.name, DEAD_LETTERS, 1):
            logger.warning(
                "Frontier %s is kept for the requests whose callbacks failed. To see them: scrapy platform frontier "
                "show %s dead-letters. To run them again: scrapy platform frontier requeue %s, and a crawl with "
                "FRONTIER_NAME=%s",
                *(self.name,) * 4,
            )
            return
        at_once = asyncio.Semaphore(_DELETED_AT_ONCE)

        async def delete(slot: str) -> None:
            async with at_once:
                await frontier.delete_slot(project, self.name, slot)

        await asyncio.gather(*map(delete, slots))

    async def forget_payloads(self) -> None:
        """Delete the payloads of the processes of this job."""
        await self._ownership.finisher.payloads.delete_all(f"{self.name}/{self._ownership.name}/")

    def _read_slot(self, slot: int) -> SlotReader:
        async def read(mincount: int, known: Container[str]) -> list[Batch]:
            frontier = self._session.client.frontier
            return await frontier.read(self._ownership.project, self.name, str(slot), mincount, known=known)

        return SlotReader(slot, read)

    def _committed(self, report: Report) -> None:
        entries = [lot.origin for lot in report.lots if isinstance(lot.origin, Entry)]
        if self._session.answers is not None:
            for entry in entries:
                for key in entry.answers:
                    self._session.answers.finished(key)
        count = self._crawler.stats.inc_value
        if requests := sum(lot.stored is not None or lot.origin is not None for lot in report.lots):
            count("frontier/committed", requests)
        for batch in report.batches:
            count("frontier/acknowledged/batches")
            count("frontier/acknowledged/requests", batch.size)
            self._feeder.acknowledged(batch.slot, batch.id)
        self.reading.committed(entries)


class Reading:
    """Requests that are read, on their way into memory: the :class:`~scrapy_ext.crawl.frontier.feeder.Consumer` of the
    feeder. It also finds the end of the crawl.

    ``ending`` finds out about the work of other workers; None: there are none. ``keep_alive`` waits for requests that
    others push; None: the crawl does not wait. ``check_owner`` ends a crawl that another process has replaced.
    """

    def __init__(
        self,
        crawler: Crawler,
        memory: Memory,
        feeder: Feeder,
        results: Results,
        skipping: Skipping,
        *,
        ending: Ending | None,
        keep_alive: KeepAlive | None,
        check_owner: Callable[[], Awaitable[None]],
    ) -> None:
        self._check_owner = check_owner
        self.committer = results.committer
        self._crawler = crawler
        self._memory = memory
        self._feeder = feeder
        self._results = results
        self._skipping = skipping
        self._ending = ending
        self.keep_alive = keep_alive
        self._poller: asyncio.Task[None] | None = None
        #: Whether no other worker has work, and nothing is waited for.
        self.is_over = False

    @property
    def waiting(self) -> int:
        return self._memory.waiting

    @property
    def parked(self) -> int:
        return self._memory.parked

    @property
    def expects_requests(self) -> bool:
        sent = self._memory.sent
        if self._memory.tracker.unfinished:
            return not sent.in_memory
        return not sent.only_direct or sent.has_direct

    @property
    def unplaced(self) -> int:
        return len(self._results.finished)

    async def look_up(self, batches: Sequence[Batch]) -> None:
        await self._skipping.look_up(batches)

    def take(self, slot: int, batch: Batch) -> None:
        """Take a batch that was read, except requests that a former process has finished."""
        done = self.committer.commits.checkpoint.progress.finished(slot, batch.id)
        opened = OpenBatch(slot, batch.id, len(batch.requests), done)
        count = self._crawler.stats.inc_value
        count("frontier/read/batches")
        if fresh := opened.size - done.bit_count():
            count("frontier/read/requests", fresh)
        for position, (fp, form) in enumerate(batch.requests):
            if not done >> position & 1:
                self._take(Stored(fp, form, opened, position))
        if opened.is_done:
            # Several processes finished parts of it, each without knowing of the others at its end.
            self._results.nothing_of(opened)

    def _take(self, stored: Stored) -> None:
        memory, key = self._memory, (stored.batch.slot, stored.fp)
        direct = memory.sent.take_direct(key)
        if direct is not None:
            direct.stored = stored
            return
        kept = memory.sent.take_kept(key, stored.form)
        try:
            spider: Any = self._crawler.spider
            request = request_from_json(stored.form, spider) if kept is None else memory.own(kept)
            host = host_of(request)
        except (UnreadableRequestError, ValueError) as error:
            self._results.refuse(stored, error)
            return
        if self._skipping.skips(stored, request):
            self._results.nothing_of(stored.batch, stored.position)
        else:
            memory.push(memory.tracker.read(stored, request, host))

    def after_read(self, *, in_vain: bool) -> None:
        """Commit the requests that have their place now."""
        self._results.finished.release(in_vain=in_vain)

    async def place_all(self) -> None:
        """Read the batches of finished requests, as far as the platform returns them."""
        left = 0
        while self.unplaced != left:
            left = self.unplaced
            try:
                await self._feeder.place_once()
            except PlatformError as error:
                logger.warning("%d finished requests will run again: their batches cannot be read: %s", left, error)
                return

    # ── the end ──

    @property
    def is_drained(self) -> bool:
        return not self._has_work() and (self.is_over or (self._ending is None and self.keep_alive is None))

    async def before_work(self) -> None:
        """Record that this worker has work, before requests are sent or taken."""
        self.is_over = False
        if self.keep_alive is not None:
            await self.keep_alive.begin_work()
        if self._ending is not None:
            await self._ending.be(idle=False)

    async def when_empty(self) -> None:
        """Find out whether the crawl is over, after a read without requests."""
        self._memory.sent.nothing_is_behind()
        if self._memory.tracker.unfinished:
            return
        self.committer.hurry()
        if self.committer.commits.is_idle and start_is_exhausted(self._crawler):
            self.is_over = await self._may_end() and not self._has_work()
        self._wake_if_drained()

    async def _may_end(self) -> bool:
        """Return true if nothing is waited for, neither pushes nor the work of others."""
        if self.keep_alive is not None and not await self.keep_alive.is_over():
            if self.keep_alive.is_closed:
                self._feeder.poll()
            return False
        return self._ending is None or await self._ending.is_over()

    def committed(self, entries: Sequence[Entry]) -> None:
        self._skipping.committed(entries)
        asyncio.get_running_loop().call_soon(self._wake_if_drained)

    def start(self, poll_interval: float) -> None:
        """Read the slots regularly if others send to them, in the running loop."""
        if self.keep_alive is not None:
            self._poller = asyncio.ensure_future(self._wait(self.keep_alive))
        elif self._ending is not None:
            self._poller = asyncio.ensure_future(self._poll(poll_interval))

    def close(self) -> None:
        """Cancel the task and the timer."""
        if self._poller is not None:
            self._poller.cancel()
        self._results.finished.close()

    async def _poll(self, interval: float) -> None:
        """Read the slots every ``interval`` seconds: the platform does not notify of requests by other workers."""
        while True:
            await asyncio.sleep(interval)
            if not self.is_over:
                self._feeder.poll()

    async def _wait(self, keep_alive: KeepAlive) -> None:
        """Read the slots to which others have pushed requests, and end the wait in time. A crawl that waits commits
        nothing, so it looks here whether another has taken over its slots."""
        for number in itertools.count(1):
            await asyncio.sleep(keep_alive.pause)
            if number % _POLLS_PER_CHECK == 0:
                await self._check_owner()
            if self.is_over:
                continue
            if self._memory.tracker.unfinished or not self.committer.commits.is_idle:
                keep_alive.works()
            elif start_is_exhausted(self._crawler):
                keep_alive.waits()
            changed = await keep_alive.poll()
            self._feeder.poll(None if keep_alive.is_due else changed)
            await keep_alive.report()

    def _wake_if_drained(self) -> None:
        """Wake the engine, which calls has_pending_requests only after some event."""
        if self.is_drained:
            self._memory.wake()

    def _has_work(self) -> bool:
        sent = self._memory.sent
        return (
            bool(self._memory.tracker.unfinished)
            or sent.has_direct
            or not self.committer.commits.is_idle
            or (not sent.only_direct and self._feeder.has_work)
        )

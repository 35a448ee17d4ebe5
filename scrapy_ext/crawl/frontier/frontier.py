"""The frontier of one crawl: its parts, made in the order in which they know each other, and its life."""

from __future__ import annotations

import asyncio
import atexit
import logging
from typing import Final

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.frontier import DEAD_LETTERS
from scrapy_ext.api.platform.job_data import payload_prefixes
from scrapy_ext.api.platform.workers import Queue
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.crawl.commit.execution import Committer, Payloads
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.leases import REPLACED, Liveness, Ownership
from scrapy_ext.crawl.commit.protocol import Commits
from scrapy_ext.crawl.commit.tracking import Tracker
from scrapy_ext.crawl.frontier.end_of_crawl import EndOfCrawl, OtherWorkers
from scrapy_ext.crawl.frontier.end_of_start import EndOfStart
from scrapy_ext.crawl.frontier.enqueuing import Enqueuing
from scrapy_ext.crawl.frontier.filtering import Filtering, Skipping
from scrapy_ext.crawl.frontier.hosts import Order
from scrapy_ext.crawl.frontier.keep_alive import KeepAlive
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.reading import Arrivals, Feeder
from scrapy_ext.crawl.frontier.results import Committed, PendingItems, Results
from scrapy_ext.crawl.frontier.running import Running
from scrapy_ext.crawl.frontier.sent import SentRequests
from scrapy_ext.crawl.frontier.slots import Slots
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)

#: Slots that are deleted at once.
_DELETED_AT_ONCE: Final = 4


class Options(msgspec.Struct, frozen=True):
    """Options of a frontier.

    ``slots``: number of slots.
    ``spreads``: whether the requests of a host have different slots.
    ``alone``: whether no other worker works on it.
    ``exclusive``: whether it is empty, and no other process will send to it.
    ``order``: order of requests of one priority.
    ``first_item``: index of the job's next item.
    ``keep_alive``: wait for requests that others push, None: the crawl ends without work.
    ``liveness``: that of workers with leases, which take over the slots of dead ones; None: each has fixed slots.
    """

    slots: int
    alone: bool
    exclusive: bool
    order: Order
    first_item: int
    keep_alive: KeepAlive | None = None
    liveness: Liveness | None = None
    spreads: bool = False


class CrawlFrontier:
    """Parts of a frontier, and its life. ``filtering`` finds duplicates."""

    def __init__(
        self, crawler: Crawler, session: Session, ownership: Ownership, filtering: Filtering, options: Options
    ) -> None:
        self._crawler = crawler
        self._session = session
        self._ownership = ownership
        skipping = filtering.skipping
        # The two stores.
        self._slots = slots = Slots(crawler, session, self.name, ownership.calls)
        # Skipped requests are looked up when their batch is read.
        sent = SentRequests(exclusive=options.exclusive and not skipping.is_used)
        self.memory = memory = Memory(crawler, session, Tracker(), sent, options.order)
        # Commit.
        self._committer = committer = self._new_committer(skipping, options.first_item)
        self._results = results = Results(crawler, memory, slots, committer, keeps_requests=skipping.is_used)
        self.items = PendingItems(crawler, results, committer, ownership)
        # Send and read.
        self._end = self._new_end(options)
        group = session.group
        self._end_of_start = None if group is None else EndOfStart(crawler, memory, slots, committer, group.start)
        self._feeder = feeder = self._new_feeder(skipping)
        # Run, and enqueue what that yields.
        self.running = Running(crawler, memory, feeder, results, log=ownership.log, liveness=options.liveness)
        self._enqueuing = Enqueuing(crawler, memory, slots, filtering, options.slots, spreads=options.spreads)

    def _new_committer(self, skipping: Skipping, first_item: int) -> Committer:
        session, ownership, slots = self._session, self._ownership, self._slots
        owner = f"{self.name}/{ownership.name}/{ownership.writer}"
        commits = Commits(ownership.log.checkpoint, str(session.job.key), owner, first_item, session.job.attempt)
        committed = Committed(self._crawler, session, self.memory, slots, skipping=skipping, commits=commits)
        return Committer(
            commits,
            ownership.log,
            ownership.finisher,
            interval=names.PLATFORM_FLUSH_INTERVAL.read(self._crawler.settings),
            flush_children=slots.flush_all,
            on_committed=committed.report,
            on_failure=self.give_up,
        )

    def _new_end(self, options: Options) -> EndOfCrawl:
        leaves_rest = options.keep_alive is not None and options.liveness is None
        on_turn = self._session.group.reports.hurry if self._session.group is not None else None
        others = (
            None
            if options.alone
            else OtherWorkers(self._ownership, options.slots, leaves_rest=leaves_rest, on_turn=on_turn)
        )
        return EndOfCrawl(
            self._crawler,
            self.memory,
            self._slots,
            self._committer,
            self._ownership.log,
            others=others,
            keep_alive=options.keep_alive,
            group=self._session.group,
            poll_interval=names.FRONTIER_POLL_INTERVAL.read(self._crawler.settings),
            on_failure=self.give_up,
        )

    def _new_feeder(self, skipping: Skipping) -> Feeder:
        settings, progress = self._crawler.settings, self._ownership.log.checkpoint.progress
        return Feeder(
            self._slots,
            self.memory,
            Arrivals(self._crawler, self.memory, self._results, skipping, progress),
            self._results,
            self._end,
            prefetch=names.FRONTIER_PREFETCH.read(settings),
            retry=Retry(names.PLATFORM_RETRY_TIME.read(settings), Backoff(), self._session.writers.outage),
            on_failure=self.give_up,
        )

    @property
    def name(self) -> str:
        return self._ownership.frontier

    @property
    def is_drained(self) -> bool:
        """Return true if the crawl is over."""
        return self._end.is_drained

    def add(self, request: Request) -> bool:
        """Enqueue a request (:meth:`Enqueuing.add`)."""
        return self._enqueuing.add(request)

    def next(self) -> Request | None:
        """Hand out the next request (:meth:`Running.next`)."""
        return self.running.next()

    def start(self, slots: set[int]) -> None:
        """Start the tasks, in the running loop."""
        atexit.register(self._report_unstored)
        if (group := self._session.group) is not None:
            group.numbers.watch(self._queue)
            group.start.prepare_with(self._before_start)
            group.end.look_with(self._end.is_over_for_others)
        self._slots.own(slots, are_empty=self.memory.sent.only_direct)
        self._feeder.start()
        self._end.start()

    def _report_unstored(self) -> None:
        """Log how many items the unfinished requests have led to. Also called at the end of a process that was stopped
        twice (Ctrl-C), which closes nothing."""
        items = self._results.left_items + self.memory.tracker.unstored_items
        if items:
            logger.warning(
                "%d items were not stored, since their requests were not finished. When the job is resumed, these run "
                "again and make them (PLATFORM_ITEMS_MODE = 'exact')",
                items,
            )

    def _queue(self) -> Queue:
        """Return the requests of this worker, for its report."""
        unfinished, waiting = self.memory.tracker.unfinished, len(self.memory)
        return Queue(waiting, self._end.may_have_work, max(unfinished - waiting, 0))

    async def _before_start(self) -> bool:
        """Continue ``start()`` of a dead worker of the group, which has stored some of its items. Return false if that
        is not possible: then the crawl closes with the error."""
        try:
            self.items.skip_start_items(await self._ownership.start_items_of_others(self._session.job.key))
        except Exception as error:
            if not isinstance(error, PlatformError):
                logger.exception("Unexpected error before start()")
            self.give_up(error)
            return False
        if self._end_of_start is not None:
            self._end_of_start.begin()
        return True

    async def own(self, slots: set[int]) -> None:
        """Work on exactly these slots; return when no request of other slots runs and their results are committed."""
        given_up = self._slots.owned - slots
        self._slots.own(slots)
        await self.memory.give_up(given_up)
        await self._committer.flush()
        self._end.slots_changed()

    async def close(self, *, is_left: bool = True) -> None:
        """Commit finished requests and end; the others stay in the frontier. A failure has closed the spider before.

        ``is_left``: whether another process may work on the frontier later.
        """
        log, committer = self._ownership.log, self._committer
        atexit.unregister(self._report_unstored)
        self.memory.close()
        self._results.close()
        if self._end_of_start is not None:
            await self._end_of_start.close()
        await self._end.close()
        await self._feeder.close()
        if not log.is_fenced and committer.commits.failure is None:
            await self._feeder.place_all()
            self._enqueuing.warn_of_shared()
        await committer.close()
        self._report_unstored()
        try:
            if is_left and committer.commits.failure is None and not log.is_fenced:
                await self._ownership.close()
                if self._session.group is not None:
                    self._session.group.liveness.close_journal()
            if log.is_fenced:
                self._session.ending.note_successor(exists=await self._ownership.has_successor())
        except (PlatformError, Fenced) as error:
            logger.warning("The end of this worker could not be recorded: %s", error)

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
        key = self._session.job.key
        await Payloads(self._session.client.collections, key.project).delete_all(payload_prefixes(self.name, key))

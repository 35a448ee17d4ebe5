"""The frontier of one crawl: requests go out to the platform's queue, come back in batches, are committed.

The way of a request: :class:`~scrapy_ext.crawl.frontier.intake.Intake` serialises it and hands it to the feeder, which
sends it to its slot. The feeder reads the slots; :class:`Reading` takes what it reads into
:class:`~scrapy_ext.crawl.frontier.memory.Memory`, from which :meth:`Frontier.next` takes. While all that is in the
frontier is in memory too, a new request goes to memory at once, and its batch is read later
(:mod:`scrapy_ext.crawl.frontier.sent`). When the engine has let go of a request whose batch is known, what it led to
goes to the committer (:mod:`scrapy_ext.crawl.frontier.results`).

Invariants:

- ``Intake.add``, ``Items.add_item`` and ``next`` never wait, and never raise for what a request holds or storage does:
  an exception there ends the engine's workers.
- The crawl is over when nothing is in memory, nothing is unsent, nothing is uncommitted, a read of each slot after
  the last write to it brought nothing, and no other worker has anything to do (:class:`Drain`).
- What storage refuses for good closes the spider; it never leaves it waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence
from typing import Any

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.api.platform.dead_letters import DEAD_LETTERS
from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.crawl.commit.committer import Committer
from scrapy_ext.crawl.commit.events import OpenBatch, Report, Stored
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.ownership import REPLACED, Ownership
from scrapy_ext.crawl.commit.protocol import Commits
from scrapy_ext.crawl.commit.tracking import Entry, Tracker, current
from scrapy_ext.crawl.frontier.feeder import Feeder, SlotReader
from scrapy_ext.crawl.frontier.filtering import Filtering, Skipping
from scrapy_ext.crawl.frontier.intake import Intake
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.order import Order
from scrapy_ext.crawl.frontier.outgoing import Outgoing
from scrapy_ext.crawl.frontier.results import Items, Results
from scrapy_ext.crawl.frontier.sent import SentRequests
from scrapy_ext.crawl.frontier.serialize import UnreadableRequestError, request_from_json
from scrapy_ext.crawl.frontier.slots import host_of
from scrapy_ext.crawl.frontier.workers import Ending
from scrapy_ext.crawl.session.scrapy_engine import start_is_exhausted
from scrapy_ext.crawl.session.session import Session

logger = logging.getLogger(__name__)


class Options(msgspec.Struct, frozen=True):
    """Options of a frontier.

    ``slots``: number of slots.
    ``alone``: whether no other worker works on it.
    ``exclusive``: whether it is empty, and nobody else will send to it.
    ``order``: how requests of one priority follow each other.
    ``first_item``: index of the job's next item.
    """

    slots: int
    alone: bool
    exclusive: bool
    order: Order
    first_item: int


class Frontier:
    """The parts of a frontier, and its life. ``filtering`` finds duplicates."""

    def __init__(
        self, crawler: Crawler, session: Session, ownership: Ownership, filtering: Filtering, options: Options
    ) -> None:
        self._crawler = crawler
        self._session = session
        self._ownership = ownership
        self._skipping = filtering.skipping
        #: Whether this worker may hand out requests.
        self.may_work: Callable[[], bool] = lambda: True
        tracker = Tracker(self._complete, self._inherited)
        sent = SentRequests(
            # A page that is skipped because some crawl has stored it is looked up when its batch is read.
            exclusive=options.exclusive and not self._skipping.is_used,
            on_copied=self._copied,
        )
        self.memory = memory = Memory(crawler, session, tracker, sent, options.order)
        outgoing = Outgoing(crawler, session, ownership.frontier, self._added)
        self._feeder = feeder = Feeder(
            outgoing.writer_of,
            self._read_slot,
            prefetch=names.FRONTIER_PREFETCH.read(crawler.settings),
            retry=Retry(names.PLATFORM_RETRY_TIME.read(crawler.settings), Backoff(), session.outage),
            wake=self._wake,
            on_failure=self.give_up,
        )
        committer = self._new_committer(options.first_item, outgoing)
        self.intake = Intake(crawler, memory, feeder, filtering, options.slots)
        self._results = results = Results(crawler, memory, feeder, outgoing, committer)
        self.items = Items(crawler, memory, committer, results.finished, ownership)
        ending = None if options.alone else Ending(ownership, options.slots)
        self.drain = Drain(memory, feeder, committer, ending)
        self._reading = Reading(crawler, memory, results, self._skipping, self.drain)

    # ── from the engine ──

    def next(self) -> Request | None:
        """The next request to download, or None when there is none for now."""
        entry = self.memory.pop() if self.may_work() else None
        self._feeder.hunger(starved=entry is None)
        if entry is None:
            self.memory.none_left()
            return None
        count = self._crawler.stats.inc_value
        count("scheduler/dequeued")
        count("scheduler/dequeued/frontier")
        # The engine starts the tasks for this request now, and they inherit it.
        current.set(entry)
        return entry.request

    def park(self, request: Request, seconds: float) -> None:
        """Send nothing more to the host of a request for so long."""
        self._crawler.stats.inc_value("frontier/parked_hosts")
        self.memory.park_host(host_of(request), seconds)

    # ── life ──

    @property
    def name(self) -> str:
        """The name of the frontier."""
        return self._ownership.frontier

    def start(self, slots: set[int]) -> None:
        """Start the tasks, in the running loop."""
        self._feeder.start(self._reading, slots)
        self.drain.start(names.FRONTIER_POLL_INTERVAL.read(self._crawler.settings))

    async def own(self, slots: set[int]) -> None:
        """Work on these slots, and no others: returns when nothing of the others is under way."""
        given_up = self._feeder.owned - slots
        self._feeder.own(slots)
        await self.memory.give_up(given_up)
        await self.drain.committer.flush()
        self.drain.is_over = False

    async def close(self) -> None:
        """Commit what is finished and end; what is not stays in the frontier. Failure has closed the spider before."""
        log, committer = self._ownership.log, self.drain.committer
        self.memory.close()
        self.drain.close()
        self._reading.close()
        await self._feeder.close()
        if not log.is_fenced and committer.failure is None:
            await self._reading.place_all(self._feeder)
            self.intake.warn_of_shared()
        await committer.close()
        try:
            if committer.failure is None and not log.is_fenced:
                await self._ownership.close()
            if log.is_fenced:
                self._session.is_replaced = await self._ownership.has_successor()
        except (PlatformError, Fenced) as error:
            logger.warning("The end of this worker could not be written down: %s", error)

    def give_up(self, error: Exception) -> None:
        """Close the spider: the frontier cannot be used any more."""
        if isinstance(error, Fenced):
            self._session.fail(error, REPLACED)
        elif isinstance(error, PlatformError) and not error.path.startswith("/hcf"):
            self._session.fail(error, "platform_unavailable")
        else:
            self._session.fail(error, "frontier_unavailable")

    async def delete(self) -> None:
        """Remove the frontier from the platform, unless it has dead letters: it takes the frontier to run them."""
        frontier, project = self._session.client.frontier, self._ownership.project
        if await frontier.read(project, self.name, DEAD_LETTERS, 1):
            logger.warning(
                "Frontier %s is kept for the requests whose callbacks failed. To see them: scrapy platform frontier "
                "show %s dead-letters. To run them again: scrapy platform frontier requeue %s, and a crawl with "
                "FRONTIER_NAME=%s",
                *(self.name,) * 4,
            )
            return
        for slot in await frontier.slots(project, self.name):
            await frontier.delete_slot(project, self.name, slot)

    async def forget_payloads(self) -> None:
        """Remove the payloads of the processes of this job."""
        await self._ownership.finisher.payloads.delete_all(f"{self.name}/{self._ownership.name}/")

    # ── between the parts, some of which are made later than others ──

    def _complete(self, entry: Entry) -> None:
        self._results.complete(entry)

    def _inherited(self, entry: Entry) -> None:
        self.items.stage_if_large(entry)

    def _copied(self, request: Request, made_by: Callable[..., Any] | None) -> None:
        self.intake.copied(request, made_by)

    def _added(self, slot: int) -> None:
        self._feeder.added(slot)

    def _wake(self) -> None:
        self.memory.wake()

    def _new_committer(self, first_item: int, outgoing: Outgoing) -> Committer:
        ownership = self._ownership
        owner = f"{self.name}/{ownership.name}/{ownership.writer}"

        async def flush_children() -> None:
            await asyncio.gather(self._feeder.flush(), outgoing.flush_others())

        return Committer(
            Commits(ownership.log.checkpoint, str(self._session.job.key), owner, first_item),
            ownership.log,
            ownership.finisher,
            interval=names.PLATFORM_FLUSH_INTERVAL.read(self._crawler.settings),
            flush_children=flush_children,
            on_committed=self._committed,
            on_failure=self.give_up,
        )

    def _read_slot(self, slot: int) -> SlotReader:
        async def read(mincount: int, known: Container[str]) -> list[Batch]:
            frontier = self._session.client.frontier
            return await frontier.read(self._ownership.project, self.name, str(slot), mincount, known=known)

        return SlotReader(slot, read)

    def _committed(self, report: Report) -> None:
        entries = [lot.origin for lot in report.lots if isinstance(lot.origin, Entry)]
        self._skipping.committed(entries)
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
        asyncio.get_running_loop().call_soon(self.drain.wake_if_drained)


class Drain:
    """Whether a crawl is over: nothing is left to do, here or in the slots of this worker, or for others. ``ending``
    finds out about the others; None: there are none."""

    def __init__(self, memory: Memory, feeder: Feeder, committer: Committer, ending: Ending | None) -> None:
        self.committer = committer
        self._memory = memory
        self._feeder = feeder
        self._ending = ending
        self._poller: asyncio.Task[None] | None = None
        #: Whether no other worker has anything to do, either.
        self.is_over = False

    @property
    def is_drained(self) -> bool:
        """Whether the crawl is over."""
        return not self._has_work() and (self._ending is None or self.is_over)

    async def before_work(self) -> None:
        """Something will be sent, or was read: this worker is no longer idle."""
        self.is_over = False
        if self._ending is not None:
            await self._ending.be(idle=False)

    async def when_empty(self, *, start_is_exhausted: bool) -> None:
        """Nothing came, and nothing is left to send or to read."""
        self._memory.sent.nothing_is_behind()
        if self._memory.tracker.unfinished:
            return
        self.committer.hurry()
        if self._ending is not None and self.committer.is_idle and start_is_exhausted:
            self.is_over = await self._ending.is_over() and not self._has_work()
        self.wake_if_drained()

    def wake_if_drained(self) -> None:
        """Wake the engine, which asks has_pending_requests, and asks again only when something happened."""
        if self.is_drained:
            self._memory.wake()

    def start(self, poll_interval: float) -> None:
        """Read the slots again from time to time if others send to them, in the running loop."""
        if self._ending is not None:
            self._poller = asyncio.ensure_future(self._poll(poll_interval))

    def close(self) -> None:
        """End the task."""
        if self._poller is not None:
            self._poller.cancel()

    async def _poll(self, interval: float) -> None:
        """Others send requests to the slots of this worker, and nothing reports it."""
        while True:
            await asyncio.sleep(interval)
            if not self.is_over:
                self._feeder.poll()

    def _has_work(self) -> bool:
        return (
            bool(self._memory.tracker.unfinished)
            or self._memory.sent.has_direct
            or not self.committer.is_idle
            or self._feeder.has_work
        )


class Reading:
    """What is read from the slots, on its way into memory: the consumer of the feeder."""

    def __init__(self, crawler: Crawler, memory: Memory, results: Results, skipping: Skipping, drain: Drain) -> None:
        self._crawler = crawler
        self._memory = memory
        self._results = results
        self._skipping = skipping
        self._drain = drain

    @property
    def waiting(self) -> int:
        """How many requests are in memory and could go out, now or when their host has room."""
        return self._memory.waiting

    @property
    def parked(self) -> int:
        """How many requests are in memory and must wait for a time."""
        return self._memory.parked

    @property
    def expects_requests(self) -> bool:
        """Whether a read may bring requests that are not in memory, or show that nothing is left."""
        return not self._memory.sent.in_memory or not self._memory.tracker.unfinished

    @property
    def unplaced(self) -> int:
        """How many finished requests wait for their batch to be read."""
        return len(self._results.finished)

    async def before_work(self) -> None:
        """Something will be sent, or was read."""
        await self._drain.before_work()

    async def look_at(self, batches: Sequence[Batch]) -> None:
        """Find out which pages of these batches some crawl has stored."""
        await self._skipping.look_up(batches)

    def take(self, slot: int, batch: Batch) -> None:
        """A batch was read; what of it a former process has done is not done again."""
        done = self._drain.committer.done(slot, batch.id)
        opened = OpenBatch(slot, batch.id, len(batch.requests), done)
        count = self._crawler.stats.inc_value
        count("frontier/read/batches")
        if fresh := opened.size - done.bit_count():
            count("frontier/read/requests", fresh)
        for position, (fp, form) in enumerate(batch.requests):
            if not done >> position & 1:
                self._take(Stored(fp, form, opened, position))
        if opened.is_done:
            # Several processes had a part in it, and none knew of the others' when it ended.
            self._results.nothing_of(opened)

    def after_read(self, *, in_vain: bool) -> None:
        """What was read was taken. ``in_vain``: batches were wanted, and there are no more for now."""
        self._results.finished.release(in_vain=in_vain)

    async def when_empty(self) -> None:
        """Nothing came, and nothing is left to send or to read."""
        await self._drain.when_empty(start_is_exhausted=start_is_exhausted(self._crawler))

    async def place_all(self, feeder: Feeder) -> None:
        """Read the batches of what is finished, as far as the platform has them."""
        left = 0
        while self.unplaced != left:
            left = self.unplaced
            try:
                await feeder.place_once()
            except PlatformError as error:
                logger.warning("%d finished requests will run again: their batches cannot be read: %s", left, error)
                return

    def close(self) -> None:
        """Ask for no more reads."""
        self._results.finished.close()

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

"""``FrontierScheduler``: a scheduler with the platform's frontier as queue."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sized
from functools import partial
from typing import Any, Final

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir
from scrapy.utils.misc import load_object
from scrapy.utils.request import RequestFingerprinter

from scrapy_ext import settings as names
from scrapy_ext.api.platform.feeding import Feed
from scrapy_ext.api.platform.frontier import check_name
from scrapy_ext.api.platform.job_data import frontier_of, journal_of
from scrapy_ext.api.platform.jobs import FINISHED
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.errors import NotFound, PlatformError
from scrapy_ext.client.retry import Retry
from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.commit.assignment import Worker
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.leases import Leases, Liveness, Ownership
from scrapy_ext.crawl.commit.liveness import JournalLiveness
from scrapy_ext.crawl.extraction.fingerprint import ExtractRequestFingerprinter
from scrapy_ext.crawl.frontier.filtering import Filtering
from scrapy_ext.crawl.frontier.frontier import CrawlFrontier, Options
from scrapy_ext.crawl.frontier.hosts import Order, warn_of_own_queues
from scrapy_ext.crawl.frontier.identity import FingerprintError
from scrapy_ext.crawl.frontier.keep_alive import KeepAlive, PushedFrontier
from scrapy_ext.crawl.session.group import group_of, workers_of
from scrapy_ext.crawl.session.job import JobFile, cannot_be_resumed, is_over
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.dupefilters import CollectionDupeFilter
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: The value of ``FRONTIER_WORKER`` for a changing set of workers.
AUTO: Final = "auto"
#: Slots for each worker of a job, so that they can be divided when the number of workers changes.
_SLOTS_OF_WORKER: Final = 4
#: Close reason for a setting with an unusable value.
_BAD_SETTING: Final = "bad_setting"


class FrontierScheduler(BaseScheduler):
    """A scheduler whose queue and fingerprints are in the platform's frontier (platform-api.md, Frontier).

    Requests are acknowledged only when they are finished: callback exhausted, items stored, children in the frontier. A
    crawl that dies continues with ``PLATFORM_JOB`` and repeats no finished request: each item is stored once.

    Several workers share a frontier by ``FRONTIER_NAME``, and its slots by ``FRONTIER_WORKER``.

    Settings: ``FRONTIER_NAME``, ``FRONTIER_SLOTS``, ``FRONTIER_WORKER``, ``FRONTIER_LEASE_TIME``,
    ``FRONTIER_POLL_INTERVAL``, ``FRONTIER_MAX_ATTEMPTS``, ``FRONTIER_PREFETCH``, ``FRONTIER_ORDER``; meta keys
    ``frontier_slot``, ``frontier_not_before`` and ``frontier_max_attempts``. A filter in ``DUPEFILTER_CLASS`` is
    consulted before the frontier. Needs the asyncio event loop, Scrapy's default, or its reactorless mode.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._dupefilter: CollectionDupeFilter | None = None
        self._frontier: CrawlFrontier | None = None
        self._ownership: Ownership | None = None
        self._leases: Leases | None = None
        self._filtering = Filtering(crawler)
        try:
            self._configure(crawler)
        except SettingError as error:
            # Scrapy builds its scheduler while it opens the spider, and does not close a half-open one properly.
            self._session.refuse(error)

    def _configure(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._name: str | None = names.FRONTIER_NAME.read(settings)
        if self._name is not None:
            try:
                check_name(self._name, "FRONTIER_NAME")
            except ContractError as error:
                raise SettingError("FRONTIER_NAME", "cannot be used", str(error)) from None
        if directory := job_dir(settings):
            job_file = JobFile(directory)
            job_file.warn_of_other_queue()
            self._session.require(job_file=job_file)
        self._retry = Retry(names.PLATFORM_RETRY_TIME.read(settings), outage=self._session.writers.outage)
        self._slots: int = names.FRONTIER_SLOTS.read(settings)
        self._spreads = False
        text: str = names.FRONTIER_WORKER.read(settings).strip()
        self._worker = Worker.parse(text)
        if self._worker is None and text != AUTO:
            raise SettingError(
                "FRONTIER_WORKER",
                f"must be 'index/count', with an index from 0 to below the count, or 'auto', got {text!r}",
                "Write 0/1 for one worker, and 0/3, 1/3 and 2/3 for three.",
            )
        self._is_shared = group_of(settings) is not None
        if self._is_shared:
            if self._worker is None or self._worker.count > 1:
                rule = f"is {text!r}, but the workers of this job share its slots"
                raise SettingError("FRONTIER_WORKER", rule, "Remove it.")
            self._worker = None
        self._alone = self._worker is not None and self._worker.count == 1
        self._keep_alive: bool | int = names.FRONTIER_KEEP_ALIVE.read(settings)
        if not self._alone and self._name is None and not self._is_shared:
            raise SettingError(
                "FRONTIER_NAME", f"must be set when FRONTIER_WORKER is {text!r}", "Give all workers the same name."
            )
        self._order = Order.of(settings)
        warn_of_own_queues(settings)
        dupefilter = load_object(settings["DUPEFILTER_CLASS"])
        if isinstance(dupefilter, type) and issubclass(dupefilter, CollectionDupeFilter):
            self._dupefilter, own = dupefilter.from_crawler(crawler), None
        else:
            self._dupefilter = CollectionDupeFilter.for_frontier(crawler)
            own = dupefilter if dupefilter is not RFPDupeFilter else None
        self._filtering = Filtering(crawler, own, self._dupefilter)

    @property
    def df(self) -> Any:
        """The dupefilter, under the attribute name of Scrapy's scheduler."""
        return self._filtering.filter

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy; raises :class:`SettingError`."""
        return cls(crawler)

    def open(self, spider: Spider) -> Any:
        """Open the session and the frontier; returns a Deferred."""
        return deferred_from_coro(self._open())

    def close(self, reason: str) -> Any:
        """Commit finished requests and leave the rest for the next run; returns a Deferred."""
        return deferred_from_coro(self._close(reason))

    def has_pending_requests(self) -> bool:
        """Return true while there are requests here or in the frontier, or uncommitted results."""
        return self._frontier is not None and not self._frontier.is_drained

    def __len__(self) -> int:
        """Return the number of requests in the memory of this process."""
        return len(self.mqs)

    def __bool__(self) -> bool:
        return True

    def enqueue_request(self, request: Request) -> bool:
        """Send a request to the frontier. False for a duplicate of a request of this process, and for a request that is
        not taken: its error is logged, or the spider is about to be closed."""
        if self._frontier is None:
            # The session could not be opened: the spider is about to be closed, and nothing was started.
            return False
        self._session.unknown_names.check_meta(request.meta)
        try:
            return self._frontier.add(request)
        except FingerprintError as error:  # Of a request of start(): no other one would have a fingerprint.
            self._session.fail(error, _BAD_SETTING)
            return False

    def next_request(self) -> Request | None:
        """Return the next request to download, or None; the engine is woken for a later one."""
        return self._frontier.next() if self._frontier is not None else None

    # The queues of Scrapy's scheduler, whose lengths est() of the telnet console shows (scrapy.utils.engine).

    @property
    def dqs(self) -> None:
        """None: the frontier on the platform replaces the disk queue."""

    @property
    def mqs(self) -> Sized:
        """The requests in the memory of this process, as a queue with a length."""
        return self._frontier.memory if self._frontier is not None else ()

    async def _open(self) -> None:
        if not await self._session.open():
            return
        if self._dupefilter is not None:
            await self._dupefilter.connect()
        await self._filtering.open()
        try:
            frontier = await self._open_frontier()
        except Fenced as error:
            await self._replaced_while_opening(error)
            return
        except (PlatformError, SettingError) as error:
            self._session.refuse(error)
            return
        settings = self._crawler.settings
        exact = names.PLATFORM_ITEMS_MODE.read(settings) == "exact" and names.PLATFORM_ENABLED.read(settings)
        frontier.running.connect(
            self._session.limiter, self._session.permits, notes_items=self._dupefilter is not None and not exact
        )
        self._session.writers.send_items_to(frontier.items)
        self._frontier = frontier
        logger.info("Frontier %s, %d slots", frontier.name, self._slots)

    async def _open_frontier(self) -> CrawlFrontier:
        session, job = self._session, self._session.job
        name = self._name or frontier_of(job.key)
        # Nothing is pushed into the own frontier of a job before its crawl.
        is_known = self._name is not None or (job.resumed and not (self._alone and job.begun))
        if is_known or session.group is not None:
            await self._read_slots(name)
        foreign = await self._foreign_slots(name) if is_known else []
        if foreign:
            raise SettingError(
                "FRONTIER_SLOTS",
                f"is {self._slots}, but frontier {name} has slot {max(foreign)}",
                "Use the number that the frontier was created with: its requests are spread over that many slots.",
            )
        self._ownership = ownership = Ownership(
            session.client,
            self._retry,
            project=job.key.project,
            frontier=name,
            name=journal_of(job.key, job.attempt),
            worker=str(job.worker) if session.group else names.FRONTIER_WORKER.read(self._crawler.settings).strip(),
            together=session.group is not None,
        )
        return await self._open_owned(ownership)

    async def _read_slots(self, name: str) -> None:
        """Keep the slots of a frontier that exists, as its requests have them."""
        settings = self._crawler.settings
        is_chosen = (settings.getpriority("FRONTIER_SLOTS") or 0) > 0
        feed = await self._feed(name)
        if self._session.group is not None and (feed is None or feed.slots is None):
            feed = await self._first_feed(name, is_chosen=is_chosen)
        self._spreads = feed is not None and feed.spread
        if feed is None or feed.slots is None or is_chosen:
            return
        if feed.spread or self._session.group is not None:
            self._slots = feed.slots

    async def _first_feed(self, name: str, *, is_chosen: bool) -> Feed | None:
        """Return the feed of a frontier without requests, as the first worker of this group has declared it."""
        settings, group_size = self._crawler.settings, workers_of(self._crawler.settings)
        slots = self._slots if is_chosen else max(_SLOTS_OF_WORKER * group_size, self._slots)
        feed = Feed(
            slots,
            open=bool(self._keep_alive) or self._name is not None,
            own_fingerprints=has_own_fingerprints(self._crawler),
            spread=names.CRAWL_SPREAD.read(settings),
        )
        frontier, project = self._session.client.frontier, self._session.job.key.project
        declare = partial(frontier.declare, project, name, feed, keep=True, attempts=1)
        await self._retry.until_done(declare, "store the slots of the frontier")
        return await self._feed(name)

    async def _feed(self, name: str) -> Feed | None:
        try:
            return await self._session.client.frontier.feed(self._session.job.key.project, name)
        except NotFound:
            return None

    async def _open_owned(self, ownership: Ownership) -> CrawlFrontier:
        session = self._session
        mine = {slot for slot in range(self._slots) if self._worker is not None and self._worker.owns(slot)}
        is_new = self._alone and self._name is None and session.job.begun
        # Records of an attempt that is over are refused.
        is_over = self._job_is_over if self._name is None and session.group is None else None
        await ownership.open(mine, is_over, is_new=is_new)
        if self._worker is not None:
            await ownership.claim_all(mine)
        ownership.stores_start_items |= self._alone
        liveness = self._liveness(ownership)
        first_item = 0
        if session.job.may_have_records:
            # Read after the unfinished commits of a former process, which ``open`` has completed.
            first_item = (await session.client.items.stats(session.job.key)).totals.input_values
        options = Options(
            slots=self._slots,
            spreads=self._spreads,
            alone=self._alone,
            exclusive=is_new and ownership.is_first and not self._keep_alive,
            order=self._order,
            first_item=first_item,
            keep_alive=await self._open_for_pushes(ownership, is_new=is_new),
            liveness=liveness,
        )
        frontier = CrawlFrontier(self._crawler, session, ownership, self._filtering, options)
        frontier.start(mine)
        if liveness is not None:
            self._leases = Leases(ownership, self._slots, liveness, on_change=frontier.own, on_lost=frontier.give_up)
            await self._leases.join()
            self._leases.start()
        return frontier

    def _liveness(self, ownership: Ownership) -> Liveness | None:
        """Return the liveness of a worker with leases, None for one with fixed slots."""
        if self._session.group is not None:
            return self._session.group.liveness
        if self._worker is not None:
            return None
        return JournalLiveness(ownership, names.FRONTIER_LEASE_TIME.read(self._crawler.settings))

    async def _open_for_pushes(self, ownership: Ownership, *, is_new: bool) -> KeepAlive | None:
        """Declare the frontier to those who push into it; return the wait of a crawl that is kept alive."""
        session, is_own = self._session, self._name is None
        if is_new and not self._keep_alive:
            return None
        declared = Feed(self._slots, own_fingerprints=has_own_fingerprints(self._crawler), spread=self._spreads)
        pushed = PushedFrontier(session.client, session.job.key, ownership.frontier, declared, is_own=is_own)
        if self._spreads:
            # A later run must spread in the same way.
            declare = partial(pushed.declare, is_open=bool(self._keep_alive) or not is_own)
            await self._retry.until_done(declare, "store the slots of the frontier")
        if not self._keep_alive:
            # The crawl itself does not need it: whoever pushes learns the number of slots.
            with contextlib.suppress(PlatformError):
                await pushed.declare(is_open=not is_own)
            return None
        await pushed.declare()
        if not pushed.is_known:
            logger.warning("This platform takes no pushes: write new requests to the slots of the frontier")
        return KeepAlive(
            pushed,
            None if self._keep_alive is True else float(self._keep_alive),
            names.FRONTIER_POLL_INTERVAL.read(self._crawler.settings),
            self._crawler.stats.inc_value,
        )

    async def _replaced_while_opening(self, error: Fenced) -> None:
        self._session.refuse(error)
        if self._ownership is not None:
            # The job's record may then contain the new close reason already.
            with contextlib.suppress(PlatformError):
                self._session.ending.note_successor(exists=await self._ownership.has_successor())

    async def _job_is_over(self) -> bool:
        session = self._session
        return await self._retry.until_done(lambda: is_over(session.client, session.job), "read the job")

    async def _cannot_be_resumed(self) -> bool:
        session = self._session
        return await self._retry.until_done(lambda: cannot_be_resumed(session.client, session.job), "read the job")

    async def _foreign_slots(self, name: str) -> list[int]:
        """Return the slots of the frontier that another ``FRONTIER_SLOTS`` has made and that would not be read."""
        slots = await self._session.client.frontier.slots(self._session.job.key.project, name)
        return [int(slot) for slot in slots if slot.isdigit() and int(slot) >= self._slots]

    async def _close(self, reason: str) -> None:
        if self._frontier is None:
            return
        complete = reason == FINISHED and self._frontier.is_drained
        if self._leases is not None:
            await self._leases.close()
        # Of a new frontier that will be deleted at once, nobody reads that this process has ended.
        is_own = self._name is None and self._session.group is None
        is_deleted = complete and is_own and self._ownership is not None and self._ownership.is_first
        has_dead_letters = bool(self._crawler.stats.get_value("frontier/dead_letters", 0))
        await self._frontier.close(is_left=has_dead_letters or not is_deleted)
        await self._filtering.close(reason)
        if self._session.ending.is_replaced and is_own and await self._cannot_be_resumed():
            # Requests sent since by this process have created a new frontier of the same name.
            await self._frontier.delete()
        if complete and self._ownership is not None:
            # Only for a finished job: an unfinished one can be resumed and needs its frontier.
            self._session.ending.after_finish.append(self._frontier.forget_payloads)
            if self._name is None:
                self._session.ending.after_finish.append(self._frontier.delete)
            elif self._session.group is None:
                self._session.ending.after_finish.append(self._ownership.forget)


def has_own_fingerprints(crawler: Crawler) -> bool:
    """Return true if the fingerprint of a plain request may differ from the one that Scrapy computes by default."""
    fingerprinter = crawler.request_fingerprinter
    if isinstance(fingerprinter, ExtractRequestFingerprinter):
        return not fingerprinter.is_plain
    return type(fingerprinter) is not RequestFingerprinter

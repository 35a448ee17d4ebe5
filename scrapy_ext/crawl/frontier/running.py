"""Requests in the engine: handed out, downloaded, finished."""

from __future__ import annotations

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ext.client.extraction import Limiter
from scrapy_ext.crawl.commit.journal import CommitLog
from scrapy_ext.crawl.commit.leases import Liveness
from scrapy_ext.crawl.commit.tracking import Entry, current
from scrapy_ext.crawl.frontier.hosts import retry_after
from scrapy_ext.crawl.frontier.identity import host_of
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.reading import Feeder
from scrapy_ext.crawl.frontier.results import Results
from scrapy_ext.crawl.session.permits import Permits
from scrapy_ext.crawl.session.scrapy_engine import on_fetched, watch


class Running:
    """Hands out the requests of ``memory``, which ``feeder`` refills, and passes the finished ones to ``results``.

    ``log``: commit journal of this process. ``liveness``: that of a worker with leases; None: its slots are its own
    until another process takes them.
    """

    def __init__(
        self,
        crawler: Crawler,
        memory: Memory,
        feeder: Feeder,
        results: Results,
        *,
        log: CommitLog,
        liveness: Liveness | None,
    ) -> None:
        self._crawler = crawler
        #: Bound once, since the look-up takes as long as the count.
        self._count = crawler.stats.inc_value
        self._memory = memory
        self._feeder = feeder
        self._results = results
        self._log = log
        self._liveness = liveness
        self._permits: Permits | None = None

    def connect(self, limiter: Limiter | None, permits: Permits | None, *, notes_items: bool) -> None:
        """Follow the requests through Scrapy's engine. ``limiter``: that of routed requests. ``permits``: those of a
        worker of a group. ``notes_items``: whether items count when they have passed the pipelines."""
        memory, connect = self._memory, self._crawler.signals.connect
        watch(self._crawler, self._finished)
        on_fetched(self._crawler, self._fetched)
        connect(self._downloaded, signal=signals.response_downloaded)
        connect(self._callback_failed, signal=signals.spider_error)
        if notes_items:
            connect(self._item_scraped, signal=signals.item_scraped)
        if limiter is not None:
            limiter.on_pause.append(memory.park_host)
            limiter.on_sleep.append(memory.asleep)
            limiter.on_room.append(memory.has_room_again)
        if permits is not None:
            self._permits = permits
            permits.sources.append(memory.demand)
            permits.on_room.append(memory.has_room_again)
            permits.on_pause.append(memory.park_host)
            if limiter is not None:
                limiter.on_pause.append(permits.pause)
        # Not before the scraper is open, which Scrapy opens after the scheduler.
        connect(memory.open, signal=signals.spider_opened)

    def next(self) -> Request | None:
        entry = self._memory.pop() if self._may_work else None
        self._feeder.hunger(starved=entry is None)
        if entry is None:
            self._memory.none_left()
            return None
        self._count("scheduler/dequeued")
        self._count("scheduler/dequeued/frontier")
        # The engine starts the tasks for this request now, and they inherit it.
        current.set(entry)
        return entry.request

    @property
    def _may_work(self) -> bool:
        return self._liveness is None or not (self._log.is_fenced or self._liveness.has_lapsed())

    def _fetched(self, request: Request, _result: object) -> None:
        self._memory.downloaded(request)

    def _finished(self, request: Request) -> None:
        entry = self._memory.finished(request)
        if entry is not None:
            self._results.take(entry)

    def _downloaded(self, response: Response, request: Request) -> None:
        seconds = retry_after(response)
        if seconds is not None:
            self._count("frontier/parked_hosts")
            self._memory.park_host(host_of(request), seconds)
            if self._permits is not None:
                self._permits.pause(host_of(request), seconds)

    def _item_scraped(self) -> None:
        entry = current.get()
        if isinstance(entry, Entry):
            entry.has_items = True

    def _callback_failed(self, failure: Failure) -> None:
        entry = current.get()
        # A task that a callback has left behind may fail after the end of its request, which is decided then.
        if isinstance(entry, Entry) and self._memory.tracker.is_open(entry):
            entry.error = f"{type(failure.value).__name__}: {failure.getErrorMessage()}"

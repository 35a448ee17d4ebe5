"""``FrontierScheduler``: the crawl's queue is the platform's frontier."""

from __future__ import annotations

import logging
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from scrapy_ext import settings as names
from scrapy_ext.api.platform.frontier import check_name
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.engine import watch
from scrapy_ext.crawl.frontier import Frontier
from scrapy_ext.crawl.session import Session
from scrapy_ext.crawl.slots import Worker
from scrapy_ext.dupefilters import CollectionDupeFilter
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)


class FrontierScheduler(BaseScheduler):
    """A scheduler whose queue and fingerprints are in the platform's frontier (platform-api.md, Frontier).

    Requests that the crawl has read are acknowledged only when they are finished: callback exhausted, items
    stored, children in the frontier. A crawl that dies goes on with ``PLATFORM_JOB`` where it was.

    Settings: ``FRONTIER_NAME``, ``FRONTIER_SLOTS``, ``FRONTIER_WORKER``, ``FRONTIER_PREFETCH``; meta key
    ``frontier_slot``. Needs the asyncio event loop, Scrapy's default.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._dupefilter: CollectionDupeFilter | None = None
        self._frontier: Frontier | None = None
        try:
            self._configure(crawler)
        except SettingError as error:
            # Scrapy builds its scheduler while it opens the spider, and closes a half-open one badly.
            self._session.refuse(error)

    def _configure(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._name: str | None = names.FRONTIER_NAME.read(settings)
        if self._name is not None:
            try:
                check_name(self._name, "FRONTIER_NAME")
            except ContractError as error:
                raise SettingError("FRONTIER_NAME", "cannot be used", str(error)) from None
        self._slots: int = names.FRONTIER_SLOTS.read(settings)
        self._prefetch: int = names.FRONTIER_PREFETCH.read(settings)
        text: str = names.FRONTIER_WORKER.read(settings)
        worker = Worker.parse(text)
        if worker is None:
            raise SettingError("FRONTIER_WORKER", f"must be 'index/count', got {text!r}", "Write 0/1 for one worker.")
        if worker.count > 1:
            raise SettingError("FRONTIER_WORKER", f"is {text!r}: several workers are not supported yet", "Write 0/1.")
        self._worker = worker
        self._dupefilter = CollectionDupeFilter.for_frontier(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy; raises :class:`SettingError`."""
        return cls(crawler)

    def open(self, spider: Spider) -> Any:
        """Open the session and the frontier; returns a Deferred."""
        return deferred_from_coro(self._open())

    def close(self, reason: str) -> Any:
        """Commit what is finished, leave the rest for the next run; returns a Deferred."""
        return deferred_from_coro(self._close(reason))

    def has_pending_requests(self) -> bool:
        """Whether the crawl must go on: requests here or in the frontier, or something not yet durable."""
        return self._frontier is not None and not self._frontier.is_drained

    def enqueue_request(self, request: Request) -> bool:
        """Send a request to the frontier. False if the dupefilter's collection has its page."""
        if self._frontier is None:
            # The session could not be opened: the spider is about to be closed and nothing was started.
            return False
        if self._dupefilter is not None and not request.dont_filter and self._dupefilter.is_stored(request):
            self._dupefilter.log(request, self._crawler.spider)
            return False
        return self._frontier.add(request)

    def next_request(self) -> Request | None:
        """The next request to download, or None for now: the engine is woken when there is one."""
        if self._frontier is None:
            return None
        request = self._frontier.next()
        if request is not None:
            self._crawler.stats.inc_value("scheduler/dequeued")
            self._crawler.stats.inc_value("scheduler/dequeued/frontier")
        return request

    async def _open(self) -> None:
        if not await self._session.open():
            return
        if self._dupefilter is not None:
            await self._dupefilter.load()
        try:
            frontier = await self._open_frontier()
        except (PlatformError, SettingError) as error:
            self._session.refuse(error)
            return
        frontier.wake = watch(self._crawler, frontier.finished)
        self._crawler.signals.connect(self._left_downloader, signal=signals.request_left_downloader)
        self._crawler.signals.connect(self._left_downloader, signal=signals.response_received)
        frontier.start()
        self._frontier = frontier
        logger.info("Frontier %s, %d slots", frontier.name, self._slots)

    async def _open_frontier(self) -> Frontier:
        job = self._session.job
        frontier = Frontier(
            self._crawler,
            self._session,
            self._name or f"job-{job.key.spider}-{job.key.job}",
            slots=self._slots,
            worker=self._worker,
            prefetch=self._prefetch,
        )
        foreign = await frontier.foreign_slots() if job.resumed or self._name is not None else []
        if foreign:
            raise SettingError(
                "FRONTIER_SLOTS",
                f"is {self._slots}, but frontier {frontier.name} has slot {max(map(int, foreign))}",
                "Use the number that the frontier was made with: its requests are spread over so many slots.",
            )
        return frontier

    def _left_downloader(self, request: Request) -> None:
        if self._frontier is not None:
            self._frontier.downloaded(request)

    async def _close(self, reason: str) -> None:
        if self._frontier is None:
            return
        complete = reason == "finished" and self._frontier.is_drained
        await self._frontier.close()
        if complete and self._name is None:
            # Only when the job is finished: a job that is not can be resumed, and must find its fingerprints.
            self._session.after_finish.append(self._frontier.delete)

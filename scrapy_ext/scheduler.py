"""``FrontierScheduler``: the crawl's queue is the platform's frontier."""

from __future__ import annotations

import logging
from typing import Any, Final, Self

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from scrapy_ext import settings as names
from scrapy_ext.crawl.engine import watch
from scrapy_ext.crawl.frontier import Frontier
from scrapy_ext.crawl.session import Session
from scrapy_ext.crawl.slots import Worker
from scrapy_ext.dupefilters import CollectionDupeFilter
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: More slots than this would mean as many queue reads each time the crawl starts.
_MAX_SLOTS: Final = 1024


class FrontierScheduler(BaseScheduler):
    """A scheduler whose queue and fingerprints are in the platform's frontier (platform-api.md, Frontier).

    Requests that the crawl has read are acknowledged only when they are finished: callback exhausted, items
    stored, children in the frontier. A crawl that dies goes on with ``PLATFORM_JOB`` where it was.

    Settings: ``FRONTIER_NAME``, ``FRONTIER_SLOTS``, ``FRONTIER_WORKER``, ``FRONTIER_PREFETCH``; meta key
    ``frontier_slot``. Needs the asyncio event loop, Scrapy's default.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._name: str | None = names.FRONTIER_NAME.read(settings)
        self._slots: int = names.FRONTIER_SLOTS.read(settings)
        self._prefetch: int = names.FRONTIER_PREFETCH.read(settings)
        if not 1 <= self._slots <= _MAX_SLOTS:
            raise SettingError("FRONTIER_SLOTS", f"must be 1 to {_MAX_SLOTS}, got {self._slots}", "Correct it.")
        if self._prefetch < 1:
            raise SettingError("FRONTIER_PREFETCH", f"must be at least 1, got {self._prefetch}", "Correct it.")
        text: str = names.FRONTIER_WORKER.read(settings)
        worker = Worker.parse(text)
        if worker is None:
            raise SettingError("FRONTIER_WORKER", f"must be 'index/count', got {text!r}", "Write 0/1 for one worker.")
        if worker.count > 1:
            raise SettingError("FRONTIER_WORKER", f"is {text!r}: several workers are not supported yet", "Write 0/1.")
        self._worker = worker
        self._dupefilter = CollectionDupeFilter.for_frontier(crawler)
        self._frontier: Frontier | None = None

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
        self._frontier.add(request)
        return True

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
        job = self._session.job
        frontier = Frontier(
            self._crawler,
            self._session,
            self._name or f"job-{job.key.spider}-{job.key.job}",
            slots=self._slots,
            worker=self._worker,
            prefetch=self._prefetch,
        )
        frontier.wake = watch(self._crawler, frontier.finished)
        frontier.start()
        self._frontier = frontier
        logger.info("Frontier %s, %d slots", frontier.name, self._slots)

    async def _close(self, reason: str) -> None:
        if self._frontier is None:
            return
        complete = reason == "finished" and self._frontier.is_drained
        await self._frontier.close()
        if complete and self._name is None:
            await self._frontier.delete()

"""``ParentMiddleware``: records the parent of each request, and applies back-pressure of a full buffer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.job import job_dir

from scrapy_ext.compatibility.python import Self
from scrapy_ext.crawl.commit.tracking import START, current
from scrapy_ext.crawl.frontier.marks import Parent, from_meta, hand_on, mark, record_of, to_meta
from scrapy_ext.crawl.session.scrapy_engine import on_fetched
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.settings import SettingError

#: Outputs of ``start()`` between two turns of the event loop. Scrapy takes no turn if ``start()`` never waits; a turn
#: after each output would change the order of requests.
_PAUSE_EVERY: Final = 100


class ParentMiddleware:
    """Marks the requests of a callback with their parent, for the request records.

    It also applies back-pressure: between two outputs of a callback or of ``start()``, the crawl waits while more than
    ``PLATFORM_BUFFER_BYTES`` are unsent. It belongs nearest to the engine, where the add-on puts it.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler)
        self._has_job_dir = bool(job_dir(crawler.settings))
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Apply back-pressure to start requests, and let the crawl run between many of them."""
        current.set(START)
        group = self._session.group
        if group is not None and not await group.start.may_run():
            return
        since_pause = 0
        async for output in start:
            yield output
            if self._session.writers.is_full:
                await self._session.writers.wait_for_room()
            since_pause += 1
            if since_pause >= _PAUSE_EVERY:
                since_pause = 0
                await asyncio.sleep(0)

    def process_start_requests(self, start: Iterable[Any], spider: Spider) -> Iterator[Any]:
        """Stand in for :meth:`process_start` beside a middleware that has this method alone, on versions of Scrapy that
        call it (before 2.16): they refuse a chain in which another middleware has only ``process_start``."""
        current.set(START)
        if self._session.group is not None:
            rule = "has a middleware with process_start_requests() alone, which cannot wait for another worker"
            self._session.fail(SettingError("SPIDER_MIDDLEWARES", rule, "Give it process_start()."), "bad_setting")
            return
        yield from start

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Mark requests; pass everything on."""
        writers, parent = self._session.writers, self._parent(response.request)
        async for output in result:
            if parent is not None and isinstance(output, Request):
                mark(output, parent)
                if self._is_queued_on_disk:
                    to_meta(output)
            yield output
            if writers.is_full:
                await writers.wait_for_room()

    def _spider_opened(self) -> None:
        on_fetched(self._crawler, self._fetched)

    def _fetched(self, request: Request, result: object) -> None:
        """Copy the parent to the request that replaces another one, and hide it from callbacks."""
        from_meta(request)
        other = result if isinstance(result, Request) else getattr(result, "request", None)
        if other is None:
            return
        if other is not request:
            from_meta(other)
            hand_on(request, other)
        if self._is_queued_on_disk and isinstance(result, Request):
            to_meta(result)

    @property
    def _is_queued_on_disk(self) -> bool:
        """Return true when requests pass through disk queues, those of Scrapy's own scheduler."""
        return self._has_job_dir and self._session.items is None

    def _parent(self, request: Request | None) -> Parent | None:
        record = record_of(request) if request is not None else None
        return None if record is None else Parent(record, str(self._session.job_key), self._session.writer)

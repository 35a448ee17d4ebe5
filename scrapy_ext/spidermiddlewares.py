"""``ParentMiddleware``: tells which request each request was made by, and lets a full buffer slow the spider.
``RequestsFirstMiddleware``: keeps the order of requests with fewer tasks than Scrapy's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.job import job_dir

from scrapy_ext.crawl.commit.tracking import START, current
from scrapy_ext.crawl.frontier.marks import Parent, from_meta, hand_on, mark, record_of, to_meta
from scrapy_ext.crawl.session.scrapy_engine import keep_waiting_outputs, on_fetched
from scrapy_ext.crawl.session.session import Session

#: Outputs of ``start()`` between two turns of the event loop. Scrapy itself takes none while ``start()`` never waits; a
#: turn after each would change which request goes first.
_PAUSE_EVERY: Final = 100
#: Outputs of a callback that Scrapy takes before it looks for the next request: two for each of its 100 tasks.
_AT_ONCE: Final = 200


class ParentMiddleware:
    """Marks the requests that a callback yields with their parent, for the request records.

    It is also where a crawl waits for the platform: between two outputs of a callback or of ``start()``, while
    more is unsent than ``PLATFORM_BUFFER_BYTES``. Put it nearest to the engine; the add-on does.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler)
        self._has_job_dir = bool(job_dir(crawler.settings))
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Let start requests wait for the platform too, and the crawl go on between many of them."""
        current.set(START)
        since_pause = 0
        async for output in start:
            yield output
            if self._session.is_full:
                await self._session.wait_for_room()
            since_pause += 1
            if since_pause >= _PAUSE_EVERY:
                since_pause = 0
                await asyncio.sleep(0)

    def process_start_requests(self, start: Iterable[Any], spider: Spider) -> Iterator[Any]:
        """Stand in for :meth:`process_start` beside a middleware that has this method alone, on versions of Scrapy that
        call it (before 2.16): they refuse a chain in which another middleware has only ``process_start``."""
        current.set(START)
        yield from start

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Mark requests; everything is passed on."""
        session, parent = self._session, self._parent(response.request)
        async for output in result:
            if parent is not None and isinstance(output, Request):
                mark(output, parent)
                if self._is_queued_on_disk:
                    to_meta(output)
            yield output
            if session.is_full:
                await session.wait_for_room()

    def _spider_opened(self) -> None:
        on_fetched(self._crawler, self._fetched)

    def _fetched(self, request: Request, result: object) -> None:
        """Hand what is known of a request on to what stands in its place, and hide it from callbacks."""
        from_meta(request)
        other = result if isinstance(result, Request) else getattr(result, "request", None)
        if other is None:
            return
        from_meta(other)
        hand_on(request, other)
        if self._is_queued_on_disk and isinstance(result, Request):
            to_meta(result)

    @property
    def _is_queued_on_disk(self) -> bool:
        """Return whether requests go through queues on disk, those of Scrapy's own scheduler."""
        return self._has_job_dir and self._session.items is None

    def _parent(self, request: Request | None) -> Parent | None:
        record = record_of(request) if request is not None else None
        return None if record is None else Parent(record, str(self._session.job_key))


class RequestsFirstMiddleware:
    """Has the scheduler get the requests of a callback before a task is free for its items.

    With Scrapy's 100 tasks for each response all its requests are scheduled before the next one is sent, so that the
    newest goes first. With the fewer tasks of the add-on's ``CONCURRENT_ITEMS`` they would come in small groups. Put it
    nearest to the engine of all; the add-on does.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl: Callable[[Request], None] | None = None
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    def _spider_opened(self) -> None:
        self._crawl = self._crawler.engine.crawl
        keep_waiting_outputs(self._crawler)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Schedule requests; pass on the rest. Without a crawl, all is passed on."""
        crawl = self._crawl
        count = 0
        async for output in result:
            if count == _AT_ONCE:
                count = 0
                # One turn of the event loop for those before to be scheduled, one for the engine to send some.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            count += 1
            if crawl is None or not isinstance(output, Request):
                yield output
                continue
            try:
                crawl(output)
            except Exception as error:
                # In Scrapy it ends a task: it is no error of the callback.
                self._failed = asyncio.ensure_future(_raise(error))


async def _raise(error: Exception) -> None:
    raise error

"""Requests under way when a crawl is stopped from outside (Ctrl-C, SIGTERM, ``crawler.stop()``) have a grace time.

When the spider closes by itself they have as long as any request: what they lead to belongs to the crawl. A person who
presses Ctrl-C, and a runner with a grace of its own, must not wait for a service that does not answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scrapy.crawler import Crawler

from scrapy_ext.client.extraction.limiter import Closing

logger = logging.getLogger(__name__)


class StopGrace:
    """The grace time of one crawl, in seconds."""

    def __init__(self, crawler: Crawler, seconds: float) -> None:
        self._crawler = crawler
        self._seconds = seconds
        self._under_way: set[asyncio.Timeout] = set()
        self._ends_at: float | None = None
        self._is_reported = False

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Run a request; raises :class:`Closing` when the grace time is over before it has ended."""
        deadline = asyncio.timeout_at(self._ends_at)
        self._under_way.add(deadline)
        try:
            async with deadline:
                yield
        except TimeoutError:
            if not deadline.expired():
                raise
            self._report()
            raise Closing("the grace time is over") from None
        finally:
            self._under_way.discard(deadline)

    def begin(self) -> None:
        """The spider closes: if it was stopped from outside, the grace time begins."""
        if self._crawler.crawling or self._ends_at is not None:
            return
        loop = asyncio.get_running_loop()
        self._ends_at = loop.time() + self._seconds
        for deadline in self._under_way:
            deadline.reschedule(self._ends_at)

    def _report(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            logger.warning(
                "%d requests have no answer of the extraction service %g s after the stop (EXTRACT_API_STOP_GRACE): "
                "they go back to the queue",
                len(self._under_way),
                self._seconds,
            )

"""End of ``start()`` in the worker of a group that runs it.

It counts as done when nothing of it would be missing after the death of this worker: its requests are in the frontier,
its items are committed, and requests of it that cannot be stored are finished, whatever else this worker does.
"""

from __future__ import annotations

import asyncio
import logging

from scrapy.crawler import Crawler

from scrapy_ext.crawl.commit.execution import Committer
from scrapy_ext.crawl.frontier.memory import Memory
from scrapy_ext.crawl.frontier.slots import Slots
from scrapy_ext.crawl.session.group_start import GroupStart
from scrapy_ext.crawl.session.keeper import until
from scrapy_ext.crawl.session.scrapy_engine import start_is_exhausted, start_items_are_processed

logger = logging.getLogger(__name__)


class EndOfStart:
    """Detection of the end of ``start()``, which ``start`` reports to the group."""

    def __init__(self, crawler: Crawler, memory: Memory, slots: Slots, committer: Committer, start: GroupStart) -> None:
        self._crawler = crawler
        self._memory = memory
        self._slots = slots
        self._committer = committer
        self._start = start
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin before this worker runs ``start()``, in the running loop."""
        self._task = asyncio.ensure_future(self._wait())

    async def close(self) -> None:
        """End: what is not reported by now runs again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _wait(self) -> None:
        await until(self._is_exhausted)
        try:
            # In this order: a request that ends may add items, and its items are committed after its requests.
            await self._slots.stored()
            await self._committer.flush()
        except Exception as error:  # It has closed the spider already.
            logger.debug("The end of start() is not reported: %s", error)
            return
        if self._committer.commits.failure is None:
            self._start.done()

    def _is_exhausted(self) -> bool:
        return (
            start_is_exhausted(self._crawler)
            and start_items_are_processed(self._crawler)
            and not self._memory.tracker.has_own
        )

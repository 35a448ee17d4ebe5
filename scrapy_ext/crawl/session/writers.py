"""Writers of a crawl: each sends the records of one component, and all make the crawl wait while they are full."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.client.platform.errors import JOB_ENDED, PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.client.retry import Outage
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

logger = logging.getLogger(__name__)

#: Name of the writer of the log.
LOG: Final = "logs"
#: Names of the writers of request records, and of items that are written as they come.
REQUESTS: Final = "requests"
ITEMS: Final = "items"
#: Seconds that other records wait for those of requests.
_REQUESTS_WAIT: Final = 10.0


class ItemSink(Protocol):
    """Store of items, each exactly once."""

    def add_item(self, record: bytes) -> None:
        """Take an item, as JSON."""

    @property
    def is_full(self) -> bool:
        """True if more items wait than allowed."""

    async def wait_for_room(self) -> None:
        """Wait until fewer items wait."""


class Writers:
    """Writers of one crawl by name. ``on_lost``: called with the error of one that the crawl cannot go on without."""

    def __init__(self, crawler: Crawler, on_lost: Callable[[Exception], None]) -> None:
        self._crawler = crawler
        self._on_lost = on_lost
        self._writers: dict[str, BatchWriter] = {}
        self._vital: set[str] = set()
        #: Writers above their high-water mark.
        self._full: set[BatchWriter] = set()
        #: Reports failing writes of all components.
        self.outage = Outage(logger)
        self._items: ItemSink | None = None
        #: Whether the last wait for request records was too long.
        self._requests_are_late = False

    @property
    def items(self) -> ItemSink | None:
        """Store of items, each exactly once; None: items are written as they come."""
        return self._items

    def send_items_to(self, sink: ItemSink) -> None:
        """Store items in this sink from now on."""
        self._items = sink

    def add(
        self, name: str, send: Callable[[bytes, int], Awaitable[None]], *, start: int = 0, vital: bool = False
    ) -> BatchWriter:
        """Return a writer that is closed at the end of the crawl.

        The crawl cannot continue without a ``vital`` writer: its failure closes the spider. The failure of another
        writer is logged, and nothing waits for it any more.
        """
        read = self._crawler.settings

        def on_failed(error: Exception) -> None:
            self._crawler.stats.inc_value("platform/writers_failed")
            if vital or isinstance(error, JOB_ENDED):
                self._on_lost(error)

        writer = BatchWriter(
            send,
            name=name,
            start=start,
            max_records=names.PLATFORM_BATCH_SIZE.read(read),
            flush_interval=names.PLATFORM_FLUSH_INTERVAL.read(read),
            high_water_bytes=names.PLATFORM_BUFFER_BYTES.read(read),
            retry_time=names.PLATFORM_RETRY_TIME.read(read),
            on_failed=on_failed,
            full=self._full,
            outage=self.outage,
        )
        self._writers[name] = writer
        if vital:
            self._vital.add(name)
        return writer

    def named(self, name: str) -> BatchWriter | None:
        """Return the writer of that name, None if no component has made it."""
        return self._writers.get(name)

    async def requests_stored(self) -> None:
        """Wait for the request records of this moment: what is stored after them names or counts them.

        If only the records fail, they are missing, and the crawl goes on without them.
        """
        records = self._writers.get(REQUESTS)
        if records is None or records.failed is not None or (self._requests_are_late and records.pending):
            return
        try:
            async with timeout_after(_REQUESTS_WAIT):
                await records.flush()
            self._requests_are_late = False
        except (PlatformError, *TIMEOUT_ERRORS):
            self._requests_are_late = True

    @property
    def is_full(self) -> bool:
        """Return true if too much is unsent: whoever adds more must :meth:`wait_for_room`."""
        return bool(self._full) or (self._items is not None and self._items.is_full)

    async def wait_for_room(self) -> None:
        """Wait until no writer is full: the point of back-pressure."""
        for writer in list(self._full):
            if writer.failed is not None:
                self._full.discard(writer)
                continue
            with contextlib.suppress(PlatformError):  # Its failure is logged.
                await writer.wait_below_high_water()
        if self._items is not None:
            await self._items.wait_for_room()

    async def close(self, may_write: Callable[[], bool]) -> bool:
        """Close every writer but that of the log, even after errors; return true if vital records were not stored."""
        closed = [self._close(name, writer, may_write) for name, writer in self._writers.items() if name != LOG]
        return any(await asyncio.gather(*closed))

    async def close_log(self, may_write: Callable[[], bool]) -> None:
        """Close the writer of the log, which is the last."""
        if (writer := self._writers.get(LOG)) is not None:
            await self._close(LOG, writer, may_write)

    async def abandon(self) -> None:
        """Send nothing more."""
        for writer in self._writers.values():
            await writer.abandon()

    async def _close(self, name: str, writer: BatchWriter, may_write: Callable[[], bool]) -> bool:
        """Close a writer; return true if vital records were not stored."""
        if not may_write():
            await writer.abandon()
            return False
        try:
            await writer.close()
        except PlatformError as error:
            if may_write():
                logger.error("%s", error)
            return name in self._vital
        return False

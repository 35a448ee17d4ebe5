"""``ItemStoragePipeline``: items go to the platform's item storage."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Self

from scrapy.crawler import Crawler

from scrapy_ext.api.platform.items import MAX_ITEM_BYTES
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.writer import BatchWriter
from scrapy_ext.crawl.items import UnstorableItemError, item_to_json
from scrapy_ext.crawl.session import Session

logger = logging.getLogger(__name__)


class ItemStoragePipeline:
    """Stores items of every kind that itemadapter knows as JSON objects in ``/items`` (platform-api.md, Items).

    Items are sent in batches, in order, each with its index, so that a batch which is sent again overwrites
    itself. An item that cannot be stored is refused by itself: an error in the log, stat
    ``platform/items/refused``, and the item goes on to the pipelines behind this one.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._session = Session.of(crawler).require(platform=True)
        self._writer: BatchWriter | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    async def open_spider(self) -> None:
        """Open the session."""
        if await self._session.open():
            try:
                self._writer = await self._session.record_writer("items", vital=True)
            except PlatformError as error:
                self._session.refuse(error)

    async def process_item(self, item: Any) -> Any:
        """Hand the item to the writer; the item goes on unchanged."""
        if self._writer is None:
            raise RuntimeError("the platform could not be opened, so no item can be stored")
        stats = self._crawler.stats
        if self._writer.failed is not None:
            # The spider is closing for it; what led to this item is not acknowledged.
            stats.inc_value("platform/items/not_stored")
            return item
        try:
            record = item_to_json(item)
            if len(record) > MAX_ITEM_BYTES:
                raise UnstorableItemError(
                    f"it is {len(record)} bytes of JSON, and the platform takes {MAX_ITEM_BYTES}: split it"
                )
        except UnstorableItemError as error:
            logger.error("An item of type %s is not stored: %s", type(item).__qualname__, error)
            stats.inc_value("platform/items/refused")
            return item
        self._writer.add(record)
        stats.inc_value("platform/items/count")
        stats.inc_value("platform/items/bytes", len(record))
        return item

    async def close_spider(self) -> None:
        """Store what is left, so that the scheduler's last acknowledgement may follow."""
        if self._writer is not None:
            with contextlib.suppress(PlatformError):  # The session has told it, and closes the spider.
                await self._writer.flush()

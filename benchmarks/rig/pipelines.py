"""Pipelines for measurements of items."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy.crawler import Crawler

from scrapy_ext.compatibility.python import Self


class SlowPipeline:
    """Waits 10 ms for every item, as for a database."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.01)
        return item


class ScrapinghubPipeline:
    """Stores items with the writer of the ``scrapinghub`` client, at ``PLATFORM_URL``."""

    def __init__(self, url: str, key: str) -> None:
        from scrapinghub import HubstorageClient

        self._client = HubstorageClient(auth=key, endpoint=url, use_msgpack=False)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["PLATFORM_URL"], crawler.settings["PLATFORM_API_KEY"])

    def open_spider(self) -> None:
        self._job = self._client.push_job(1, "items")

    def process_item(self, item: Any) -> Any:
        self._job.items.write(item)
        return item

    def close_spider(self) -> None:
        self._job.items.close()
        self._client.close()

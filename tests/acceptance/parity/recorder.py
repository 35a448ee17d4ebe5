"""Add-on of a crawl with two workers: each of them writes down at the end of its process what happened in it."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.resolver import dnscache
from scrapy.settings import BaseSettings

from scrapy_ext.crawl.session.session import Session
from tests.acceptance.parity.local import LocalSpider
from tests.acceptance.parity.recording import Records, Signals
from tests.acceptance.parity.site import OTHER

#: Setting with the folder of the records.
FOLDER = "PARITY_RECORDS"


class Recorder:
    """Records of one worker, which begins to crawl when both have half of the slots."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._records = Records()
        logging.getLogger().addHandler(self._records)
        self._sent = Signals(crawler)
        #: The session of a crawl that fails takes the spider from its crawler.
        self._spider: LocalSpider | None = None
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        atexit.register(self._write)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Recorder:
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        # Where Scrapy looks for the address of a host.
        dnscache[OTHER] = "127.0.0.1"

    async def _opened(self, spider: LocalSpider) -> None:
        self._spider = spider
        session = Session.of(self._crawler)
        await session.open()
        while session.failure is None and not _has_half(self._crawler):
            await asyncio.sleep(0.01)

    def _write(self) -> None:
        stats = self._crawler.stats.get_stats() if self._crawler.stats is not None else {}
        record: dict[str, Any] = {
            "job": stats.get("platform/job"),
            "reason": stats.get("finish_reason"),
            "items": self._sent.items,
            "storable": self._sent.storable,
            "notes": self._spider.notes if self._spider is not None else [],
            "signals": self._sent.counts,
            "log": self._records.lines,
        }
        Path(self._crawler.settings[FOLDER], f"{os.getpid()}.json").write_text(json.dumps(record))


def _has_half(crawler: Crawler) -> bool:
    """Return true if a worker has half of the slots, so that the other one has as many."""
    if crawler.engine._slot is None:  # the crawl was closed meanwhile
        return True
    scheduler = crawler.engine._slot.scheduler
    return scheduler._frontier is not None and len(scheduler._frontier._slots.owned) == scheduler._slots / 2

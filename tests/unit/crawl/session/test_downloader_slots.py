"""Delays and limits of routed requests are those of Scrapy's downloader, in each of its versions."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
import scrapy
from scrapy import Request, Spider, core
from scrapy.core.downloader import Downloader

from scrapy_ext.crawl.extraction.from_settings import limiter_of
from scrapy_ext.crawl.session.scrapy_engine import DownloaderSlots
from tests.support.crawlers import get_crawler

HOST = "a.example"
NO_HANDLERS = dict.fromkeys(("data", "file", "ftp", "http", "https", "s3"))
OLD_NAMES = [
    {"DOWNLOAD_DELAY": 0.4, "RANDOMIZE_DOWNLOAD_DELAY": False},
    {"DOWNLOAD_DELAY": 0.4},
    {"DOWNLOAD_DELAY": 0.4, "RANDOMIZE_DOWNLOAD_DELAY": True, "CONCURRENT_REQUESTS_PER_DOMAIN": 3},
    {"DOWNLOAD_SLOTS": {HOST: {"delay": 0.4, "randomize_delay": False, "concurrency": 2}}},
    {"DOWNLOAD_DELAY": 2, "DOWNLOAD_SLOTS": {HOST: {"randomize_delay": False}}},
    {"DOWNLOAD_DELAY": 2, "DOWNLOAD_SLOTS": {"b.example": {"delay": 0}}},
    {"CONCURRENT_REQUESTS_PER_DOMAIN": 5, "DOWNLOAD_SLOTS": {HOST: {"delay": 0}}},
    {},
]
NEW_NAMES = [
    {"DOWNLOAD_DELAY": 0.4, "DOWNLOAD_DELAY_JITTER": 0},
    {"DOWNLOAD_DELAY": 0.4, "DOWNLOAD_DELAY_JITTER": 0.1},
    {"DOWNLOAD_DELAY": 2, "DOWNLOAD_SLOTS": {HOST: {"jitter": 0.2}}},
]


def bounds(delay_of: Any) -> tuple[float, float]:
    drawn = [delay_of(HOST) for _ in range(500)]
    return round(min(drawn), 1), round(max(drawn), 1)


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
@pytest.mark.parametrize("given", [*OLD_NAMES, *(NEW_NAMES if scrapy.version_info[:2] >= (2, 19) else [])])
def test_delay_and_limit_are_those_of_the_downloader(given, monkeypatch):
    # The loop that drops old slots would need an event loop.
    monkeypatch.setattr(core.downloader, "create_looping_call", Mock())
    crawler = get_crawler(Spider, {"DOWNLOAD_HANDLERS": NO_HANDLERS, **given})
    crawler.spider = Spider.from_crawler(crawler, "s")
    downloader = Downloader(crawler)
    _, slot = downloader._get_slot(Request(f"https://{HOST}/"))
    without_downloader = limiter_of(crawler.settings)._admission
    assert without_downloader._cap(HOST) == slot.concurrency
    assert without_downloader._delay_of is not None
    low, high = bounds(without_downloader._delay_of)
    assert (low, high) == pytest.approx(bounds(lambda _: slot.download_delay()), abs=0.11)
    crawler._engine = crawler.__dict__["engine"] = type("Engine", (), {"downloader": downloader})()
    slots = DownloaderSlots(crawler)
    assert slots.concurrency_of(HOST) == slot.concurrency
    slot.delay = 9.0
    assert slots.delay_of(HOST) >= 4.5
    downloader.close()

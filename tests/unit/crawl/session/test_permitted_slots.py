"""Scrapy's downloader sends as many requests as the permits of a worker allow."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from unittest.mock import Mock

import pytest
from scrapy import Request, Spider, core
from scrapy.core.downloader import Downloader
from twisted.internet.defer import Deferred

from scrapy_ext.crawl.session.permits import Permits, SiteLimits
from scrapy_ext.crawl.session.scrapy_engine import use_permits
from tests.support.crawlers import get_crawler

NO_HANDLERS = dict.fromkeys(("data", "file", "ftp", "http", "https", "s3"))


class TwoAtOnce(Permits):
    """Permits for two requests of each domain."""

    def take(self, domain: str, active: int) -> bool:
        return active < 2


def test_a_request_whose_task_has_not_begun_counts_as_open(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[Coroutine[Any, Any, None]] = []
    # With asyncio, the task that sends a request begins in a later step of the loop.
    monkeypatch.setattr(core.downloader, "_schedule_coro", tasks.append, raising=False)
    monkeypatch.setattr(core.downloader, "create_looping_call", Mock(), raising=False)
    crawler = get_crawler(Spider, {"DOWNLOAD_HANDLERS": NO_HANDLERS})
    crawler.spider = Spider.from_crawler(crawler, "s")
    downloader: Any = Downloader(crawler)
    downloader.handlers = Mock(download_request=Mock(side_effect=lambda *_: Deferred()))
    crawler._engine = crawler.__dict__["engine"] = type("Engine", (), {"downloader": downloader})()
    use_permits(crawler, TwoAtOnce(lambda _: SiteLimits(8), lambda: None))
    requests = [Request(f"https://a.example/{number}") for number in range(5)]
    _, slot = downloader._get_slot(requests[0])
    slot.queue.extend((request, Deferred()) for request in requests)
    downloader._process_queue(slot)
    assert [request for request, _ in slot.queue] == requests[2:]
    assert slot.transferring == set(requests[:2])
    for task in tasks:
        task.close()
    downloader.close()

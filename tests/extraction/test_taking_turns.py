"""The queue of the add-on: domains take turns, those that go direct as well, and what is done is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from crawls import Project
from sites import Answer, ListeningSite

from tests.extraction.planned import ALONE, KEY

EACH = 40
#: Seconds after which a test has failed anyway.
LONG = 30


class TwoSites(ListeningSite):
    """Its slow pages are there when all of the others have been asked for."""

    def __init__(self) -> None:
        self._all = threading.Event()
        super().__init__()

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        if path.startswith("/slow"):
            return Answer(200 if self._all.wait(LONG) else 504)
        if sum(path.startswith("/fast") for path in self.hits) == EACH:
            self._all.set()
        return Answer(200)


@pytest.fixture
def sites() -> Iterator[TwoSites]:
    two = TwoSites()
    yield two
    two.close()


def test_a_slow_site_that_is_fetched_directly_does_not_hold_back_another(tmp_path, service, sites):
    spider = f"""
import scrapy

class Spider(scrapy.Spider):
    name = "two"

    async def start(self):
        for name in ("slow", "fast"):
            for number in range({EACH}):
                url = f"http://127.0.0.1:{sites.port}/{{name}}/{{number}}"
                yield scrapy.Request(url, meta={{"download_slot": name}})

    def parse(self, response):
        pass
"""
    settings = f"EXTRACT_API_URL = {service.url!r}\nEXTRACT_API_KEY = {KEY!r}\nEXTRACT_API_TRANSPARENT_MODE = False\n"
    crawl = Project(tmp_path, spider, ALONE + settings + "RETRY_ENABLED = False\n").crawl("two")
    assert (crawl.reason, crawl.stat("downloader/response_status_count/200")) == ("finished", 2 * EACH)


def test_domains_that_were_crawled_are_forgotten(tmp_path, service):
    spider = """
from collections.abc import Sized

import scrapy

class Spider(scrapy.Spider):
    name = "many"

    async def start(self):
        for number in range(300):
            yield scrapy.Request(f"https://site-{number}.example/")

    def parse(self, response):
        queue = self.crawler.engine._slot.scheduler.mqs
        parts = [part for part in vars(queue).values() if isinstance(part, Sized) and not isinstance(part, type)]
        self.crawler.stats.set_value("held_at_last", max(map(len, parts)))
"""
    settings = f"EXTRACT_API_URL = {service.url!r}\nEXTRACT_API_KEY = {KEY!r}\n"
    crawl = Project(tmp_path, spider, ALONE + settings).crawl("many")
    assert (crawl.reason, len(service.posts)) == ("finished", 300)
    assert crawl.errors == []
    assert 1 <= crawl.stat("held_at_last") <= 60

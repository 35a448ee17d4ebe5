"""Crawls by several processes that failed elsewhere, as users have reported: with ``CRAWL_WORKERS`` they do not."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawls import Crawl, Project, key
from tests.support.sites import Answer, ListeningSite

pytestmark = pytest.mark.long

JOB = "1/1/1"
SETTINGS = "CRAWL_WORKERS = 2\nEXTRACT_API_ENABLED = False\nFRONTIER_POLL_INTERVAL = 0.5\n"
SPIDERS = '''
import asyncio
import os
from pathlib import Path

import scrapy


class Shared(scrapy.Spider):
    """A spider whose start() waits until two workers take part. Each item names its process."""

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, scrapy.signals.spider_opened)
        return spider

    def opened(self):
        Path("workers", str(os.getpid())).touch()

    async def start(self):
        while len(os.listdir("workers")) < 2:
            await asyncio.sleep(0.05)
        for request in self.first():
            yield request

    def first(self):
        return [scrapy.Request(url, dont_filter=True) for url in self.start_urls]

    def page(self, response):
        return {"path": response.url.removeprefix(self.site), "process": os.getpid()}


class StartUrls(Shared):
    name = "start-urls"

    def __init__(self, site):
        self.site = site
        self.start_urls = [f"{site}/start/{number}" for number in range(20)]

    def parse(self, response):
        yield self.page(response)


class SlowParent(Shared):
    name = "slow-parent"

    def __init__(self, site):
        self.site = site
        self.start_urls = [f"{site}/slow"]

    def parse(self, response):
        yield self.page(response)
        if response.url.endswith("/slow"):
            for number in range(20):
                yield response.follow(f"/page/{number}")


class SamePage(Shared):
    """Two pages, each in one worker, that link to the same pages."""

    name = "same-page"

    def __init__(self, site):
        self.site = site

    def first(self):
        return [scrapy.Request(f"{self.site}/list/{slot}", meta={"frontier_slot": slot}) for slot in range(8)]

    def parse(self, response):
        yield self.page(response)
        yield response.follow("/once", self.parse_page)
        yield response.follow("/always", self.parse_page, dont_filter=True)

    def parse_page(self, response):
        yield self.page(response)


class Tea(scrapy.Item):
    name = scrapy.Field()
    pages = scrapy.Field()


class ItemInMeta(Shared):
    """An item that several callbacks fill, one after another."""

    name = "item-in-meta"

    def __init__(self, site):
        self.site = site
        self.start_urls = [f"{site}/tea/{number}" for number in range(8)]

    def parse(self, response):
        yield response.follow(response.url + "/price", self.price, meta={"tea": Tea(name=response.url[-1], pages=[1])})

    def price(self, response):
        tea = response.meta["tea"]
        tea["pages"].append(2)
        yield response.follow(response.url + "/stock", self.stock, cb_kwargs={"tea": tea})

    def stock(self, response, tea):
        tea["pages"].append(3)
        yield tea


class Counted(Shared):
    """Chains of five pages, 20 for each worker. The last page of each waits until the crawl closes."""

    name = "counted"

    def __init__(self, site):
        self.site = site

    def first(self):
        return [self.request(slot, 0) for slot in range(8)]

    def request(self, slot, number):
        return scrapy.Request(f"{self.site}/{slot}/{number}", meta={"frontier_slot": slot})

    async def parse(self, response):
        slot, number = map(int, response.url.split("/")[-2:])
        for _ in range(2400 if number == 4 else 0):
            if self.crawler.engine._slot.closing:
                return
            await asyncio.sleep(0.05)
        yield self.page(response)
        yield self.request(slot, number + 1)
'''


class Pages(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        if path == "/slow":
            time.sleep(4)
        return Answer(200, b"<p>")


class Shared:
    """A project whose spiders two workers crawl."""

    def __init__(self, folder: Path, site: Pages) -> None:
        self.site = site
        self._project = Project(folder / "crawl", SPIDERS, SETTINGS)
        (self._project.folder / "workers").mkdir()

    def crawl(self, spider: str, *settings: str) -> Crawl:
        words = [word for setting in settings for word in ("-s", setting)]
        crawl = self._project.crawl(spider, "-a", f"site=http://127.0.0.1:{self.site.port}", *words)
        assert crawl.returncode == 0, crawl.log[-3000:]
        assert len(os.listdir(self._project.folder / "workers")) == 2
        return crawl

    def items(self) -> list[dict]:
        return self._project.items(JOB)

    def paths(self) -> Counter[str]:
        return Counter(item["path"] for item in self.items())

    def metadata(self) -> dict:
        return self._project.stored(lambda client, _project: client.jobs.metadata(key(JOB)))


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    site = Pages()
    yield Shared(tmp_path, site)
    site.close()


def test_each_start_url_is_crawled_once_however_many_workers_have_it(shared):
    """https://github.com/Python3WebSpider/Weibo/issues/1, https://github.com/istresearch/scrapy-cluster/issues/171"""
    assert shared.crawl("start-urls").reason == "finished"
    expected = Counter(f"/start/{number}" for number in range(20))
    assert shared.site.hits == expected
    assert shared.paths() == expected


def test_a_worker_without_requests_does_not_end_while_another_will_have_some(shared):
    """https://github.com/rmax/scrapy-redis/pull/9"""
    assert shared.crawl("slow-parent").reason == "finished"
    assert shared.site.hits == Counter(["/slow", *(f"/page/{number}" for number in range(20))])
    items = shared.items()
    assert Counter(item["path"] for item in items) == shared.site.hits
    # The spread over the workers follows from the fingerprints, and all twenty have the same slots with 1 in 2 ** 19.
    assert len({item["process"] for item in items}) == 2


def test_a_page_that_two_workers_find_is_crawled_once_unless_it_is_not_to_be_filtered(shared):
    """https://github.com/rmax/scrapy-redis/issues/78"""
    assert shared.crawl("same-page").reason == "finished"
    assert shared.site.hits == Counter({f"/list/{slot}": 1 for slot in range(8)} | {"/once": 1, "/always": 8})
    assert shared.paths() == shared.site.hits
    stats = shared.metadata()["frameworkstats"]
    assert (stats["item_scraped_count"], stats["dupefilter/filtered"]) == (17, 7)


def test_an_item_in_meta_keeps_its_class_and_is_filled_by_each_callback(shared):
    """https://github.com/istresearch/scrapy-cluster/issues/225, https://github.com/rmax/scrapy-redis/issues/138"""
    crawl = shared.crawl("item-in-meta")
    assert crawl.reason == "finished"
    assert crawl.log.count("it stays in this process") in (1, 2)  # once in each worker that has such requests
    assert sorted(item["name"] for item in shared.items()) == [str(number) for number in range(8)]
    assert {tuple(item["pages"]) for item in shared.items()} == {(1, 2, 3)}


def test_the_items_of_all_workers_count_for_a_limit_that_none_of_them_reaches_alone(shared):
    """https://github.com/rmax/scrapy-redis/issues/46"""
    # All items before the pages that wait for the end: with a lower limit, some may still be in the frontier then.
    crawl = shared.crawl("counted", "CLOSESPIDER_ITEMCOUNT=32")
    assert crawl.reason == "closespider_itemcount"
    metadata = shared.metadata()
    assert metadata["close_reason"] == "closespider_itemcount"
    assert metadata["frameworkstats"]["item_scraped_count"] == len(shared.items()) == 32
    assert max(Counter(item["process"] for item in shared.items()).values()) < 30

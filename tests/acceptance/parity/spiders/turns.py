"""Order of requests, and requests that are still sent when the spider closes, with the settings of new projects."""

from __future__ import annotations

from typing import Any

import scrapy
from scrapy.exceptions import CloseSpider

from tests.acceptance.parity.local import ONE_AT_A_TIME, LocalSpider
from tests.acceptance.parity.site import OTHER

#: One request to a host after another, while Scrapy takes others from its queue.
ONE_A_HOST: dict[str, Any] = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
#: As in new projects, but faster.
POLITE: dict[str, Any] = {**ONE_A_HOST, "DOWNLOAD_DELAY": 0.03, "RANDOMIZE_DOWNLOAD_DELAY": False}


class ManyLinks(LocalSpider):
    """The newest link of a page goes first, however many tasks process what the callback yields."""

    name = "many-links"
    custom_settings = ONE_A_HOST

    def parse(self, response):
        for number in range(30):
            yield scrapy.Request(self.url(f"/page/{number}"), self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}


class HundredsOfLinks(ManyLinks):
    """More than Scrapy takes from a callback at once."""

    name = "hundreds-of-links"

    def parse(self, response):
        for number in range(250):
            yield scrapy.Request(self.url(f"/page/{number}"), self.parse_page, priority=number % 2)


class LinksBetweenItems(ManyLinks):
    name = "links-between-items"

    def parse(self, response):
        for number in range(30):
            yield {"number": number}
            yield scrapy.Request(self.url(f"/page/{number}"), self.parse_page)


class LinksOfAnAsyncCallback(ManyLinks):
    name = "links-of-an-async-callback"

    async def parse(self, response):
        for output in super().parse(response):
            yield output


class UrgentLast(ManyLinks):
    """A request of higher priority that is yielded last goes first."""

    name = "urgent-last"

    def parse(self, response):
        yield from super().parse(response)
        yield scrapy.Request(self.url("/page/99"), self.parse_page, priority=10)


class PoliteTree(LocalSpider):
    name = "polite-tree"
    custom_settings = POLITE
    paths = ["/tree/1"]

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a")


class ClosesInTheMiddle(LocalSpider):
    """Requests that Scrapy took from its queue before the spider closes are downloaded."""

    name = "closes-in-the-middle"
    custom_settings = POLITE

    def parse(self, response):
        for number in range(8):
            yield scrapy.Request(self.url(f"/page/{number}"), self.parse_leaf)

    def parse_leaf(self, response):
        yield {"url": response.url}
        if response.url.endswith("/6"):
            raise CloseSpider("enough")


class ClosesByCount(ManyLinks):
    name = "closes-by-count"
    custom_settings = {**POLITE, "CLOSESPIDER_ITEMCOUNT": 5}


class ClosesFromStart(LocalSpider):
    name = "closes-from-start"
    custom_settings = ONE_AT_A_TIME

    async def start(self):
        yield scrapy.Request(self.url("/page/1"))
        raise CloseSpider("from_start")


class TwoHosts(LocalSpider):
    """Hosts take turns in the order of Scrapy's queue."""

    name = "two-hosts"
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        for number in range(4):
            for site in (self.site, self.site.replace("localhost", OTHER)):
                yield scrapy.Request(f"{site}/page/{number}", self.parse_leaf)

    def parse_leaf(self, response):
        yield {"url": response.url}


class LengthOfTheQueue(LocalSpider):
    name = "length-of-the-queue"
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        yield {"pending": len(self.crawler.engine._slot.scheduler)}


class MarkedAsSeen(LocalSpider):
    """A page that the spider itself puts into the dupefilter is not crawled."""

    name = "marked-as-seen"

    def parse(self, response):
        self.crawler.engine._slot.scheduler.df.request_seen(scrapy.Request(self.url("/page/1")))
        for number in range(3):
            yield scrapy.Request(self.url(f"/page/{number}"), self.parse_leaf)

    def parse_leaf(self, response):
        yield {"url": response.url}

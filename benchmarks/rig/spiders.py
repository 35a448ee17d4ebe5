"""The spiders of the benchmarks. Those of ``.test`` hosts need ``DOWNLOAD_HANDLERS`` of :mod:`rig.instant`."""

from __future__ import annotations

import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import HtmlResponse, Response

from rig.observers import OBSERVED

_HEADING = re.compile(r"<h1>(\d+)</h1>")
_LINK = re.compile(r'<a href="([^"]+)">')


class SitePages(scrapy.Spider):
    """Follows every link of :mod:`rig.site`; ``page_items`` items a page. Little is spent on parsing, so that what is
    left is the engine's work and that of what is compared."""

    name = "site_pages"
    site: str
    page_items = 1

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(f"{self.site}/page/0")

    def parse(self, response: Response) -> Iterator[Any]:
        text = response.body.decode()
        for _ in range(self.page_items):
            yield {"url": response.url, "number": _HEADING.findall(text)[0]}
        for path in _LINK.findall(text):
            yield scrapy.Request(self.site + path)


class ShopPages(SitePages):
    """Follows every link of :mod:`rig.site`, with an item of about 1 KB a page."""

    name = "shop_pages"

    def parse(self, response: Response) -> Iterator[Any]:
        text = response.body.decode()
        yield varied_kilobyte(response.url, int(_HEADING.findall(text)[0]))
        for path in _LINK.findall(text):
            yield scrapy.Request(self.site + path)


class Items(scrapy.Spider):
    """``pages`` pages of ``page_items`` items of about 1 KB each, without a network."""

    name = "items"
    pages: int
    page_items: int

    async def start(self) -> AsyncIterator[Any]:
        for number in range(self.pages):
            yield scrapy.Request(f"data:text/plain,{number}")

    def parse(self, response: Response) -> Iterator[Any]:
        for number in range(self.page_items):
            yield one_kilobyte(response.url, number)


def one_kilobyte(url: str, number: int) -> dict[str, Any]:
    """An item as a shop's page gives: 15 fields, 1 KB of JSON."""
    return {
        "url": url,
        "sku": f"SKU-{number:08d}",
        "name": "A steel kettle with a long spout for pouring over coffee",
        "price": "39.95",
        "currency": "EUR",
        "in_stock": True,
        "rating": 4.5,
        "reviews": number,
        "brand": "Köhler & Söhne",
        "breadcrumbs": ["Home", "Kitchen", "Kettles and teapots"],
        "images": [f"https://images.example.com/kettle/{number}/{size}.jpg" for size in ("s", "m", "l")],
        "description": _DESCRIPTION,
        "properties": {"material": "steel", "volume": "0.9 l", "weight": "620 g", "colour": "brushed"},
        "seller": None,
        "seen": "2026-01-31T12:00:00Z",
    }


_DESCRIPTION = "The handle stays cool, and the spout pours a thin stream where you want it. " * 5


#: Words of descriptions, of two to nine letters.
_WORDS = ["".join(random.Random(n).choices("etaoinshrdlu", k=2 + n % 8)) for n in range(2000)]


def varied_kilobyte(url: str, number: int) -> dict[str, Any]:
    """An item as :func:`one_kilobyte`, whose text differs from that of others and compresses as text does."""
    description = " ".join(random.choices(_WORDS, k=60))
    return {**one_kilobyte(url, number), "sku": f"SKU-{random.randrange(10**8):08d}", "description": description}


class Burst(scrapy.Spider):
    """One page whose callback yields ``count`` requests. ``settle`` seconds after its last one, the crawl ends."""

    name = "burst"
    count: int
    settle: float

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request("http://seed.test/")

    def parse(self, response: Response) -> Iterator[Any]:
        OBSERVED["burst_from"] = time.monotonic()
        for number in range(self.count):
            yield scrapy.Request(f"http://host{number % 100}.test/page/{number}", callback=self.parse_page)
        OBSERVED["burst_to"] = time.monotonic()

    def parse_page(self, response: Response) -> None:
        if time.monotonic() > OBSERVED.get("burst_to", float("inf")) + self.settle:
            raise scrapy.exceptions.CloseSpider("measured")


class Hosts(scrapy.Spider):
    """One page whose callback yields ``each`` requests to each of ``hosts`` hosts, which get no answer for a while
    (:class:`rig.instant.GatedHandler`), so that they all wait in the scheduler."""

    name = "hosts"
    hosts: int
    each: int

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request("http://seed.test/")

    def parse(self, response: Response) -> Iterator[Any]:
        for number in range(self.each):
            for host in range(self.hosts):
                yield scrapy.Request(f"http://host{host}.test/{number}", callback=self.parse_page)

    def parse_page(self, response: Response) -> None:
        pass


class SameSite(scrapy.Spider):
    """``chains`` chains of pages of one site, an item and one request a page: ``before`` responses to warm up, then
    ``pages`` that are measured, then as many as there are chains, so that at both ends of what is measured the same
    number of requests is on its way.

    Of a page only its length is looked at, which must be ``size``, and its class: what a spider does with it costs
    the same whoever downloaded it, and would hide what is compared. In :data:`rig.observers.OBSERVED`: ``from`` and
    ``to``, each the monotonic ``time`` and the process's ``cpu`` seconds, and ``measured_pages``."""

    name = "same_site"
    site: str
    size: int
    pages: int
    before: int
    chains: int

    async def start(self) -> AsyncIterator[Any]:
        self._responses = 0
        self._marks = {self.before: "from", self.before + self.pages: "to"}
        self._asked = self.chains
        OBSERVED["measured_pages"] = self.pages
        for chain in range(self.chains):
            yield scrapy.Request(f"{self.site}/page/{chain}")

    def parse(self, response: Response) -> Iterator[Any]:
        self._responses += 1
        if mark := self._marks.get(self._responses):
            OBSERVED[mark] = {"time": time.monotonic(), "cpu": time.process_time()}
        if not isinstance(response, HtmlResponse) or len(response.body) != self.size:
            raise scrapy.exceptions.CloseSpider(f"not the page: {response!r} of {len(response.body)} bytes")
        yield {"url": response.url, "size": len(response.body)}
        if self._asked < self.before + self.pages + self.chains:
            self._asked += 1
            yield scrapy.Request(f"{self.site}/page/{self._asked}")


class Neighbours(scrapy.Spider):
    """``limited`` pages on ``hosts`` hosts that get nothing but limits, then ``healthy`` pages on another; ends with
    the last of these, if there are any. In :data:`rig.observers.OBSERVED`: ``healthy``, the monotonic times of their
    pages."""

    name = "neighbours"
    limited: int
    hosts: int
    healthy: int

    async def start(self) -> AsyncIterator[Any]:
        self._times: list[float] = []
        OBSERVED["healthy"] = self._times
        for number in range(self.limited):
            yield scrapy.Request(f"http://limited{number % self.hosts}.test/{number}", errback=self.given_up)
        for number in range(self.healthy):
            yield scrapy.Request(f"http://healthy.test/{number}")

    def parse(self, response: Response) -> None:
        self._times.append(time.monotonic())
        if len(self._times) == self.healthy:
            raise scrapy.exceptions.CloseSpider("measured")

    def given_up(self, failure: Any) -> None:
        pass


class Delivered(scrapy.Spider):
    """``times`` pages, one after the other, each of which meets the limit ``kind`` first. In
    :data:`rig.observers.OBSERVED`: ``delivered``, the seconds from the limit to each page."""

    name = "delivered"
    kind: str
    times: int

    async def start(self) -> AsyncIterator[Any]:
        self._seconds: list[float] = []
        OBSERVED["delivered"] = self._seconds
        yield self._page(0)

    def parse(self, response: Response) -> Iterator[Any]:
        limited_at = float(response.css("title::text").get(""))
        self._seconds.append(time.monotonic() - limited_at)
        if len(self._seconds) < self.times:
            yield self._page(len(self._seconds))

    def _page(self, number: int) -> scrapy.Request:
        return scrapy.Request(f"http://once.test/{self.kind}/{number}")


class Chains(scrapy.Spider):
    """``chains`` chains on as many hosts: each page yields an item and the next page, until there were ``requests``."""

    name = "chains"
    chains: int
    requests: int

    async def start(self) -> AsyncIterator[Any]:
        for chain in range(self.chains):
            yield scrapy.Request(f"http://host{chain}.test/0")

    def parse(self, response: Response) -> Iterator[Any]:
        base, _, number = response.url.rpartition("/")
        yield {"url": response.url, "number": int(number)}
        if int(number) + 1 < self.requests // self.chains:
            yield scrapy.Request(f"{base}/{int(number) + 1}")

"""Requests that are made, their number and their order."""

from __future__ import annotations

import scrapy
from scrapy import signals
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.request import fingerprint

from tests.acceptance.parity.local import ONE_AT_A_TIME, LocalSpider


class DepthFirst(LocalSpider):
    """Scrapy's default order."""

    name = "depth-first"
    paths = ["/tree/"]
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        yield {"title": response.css("h1::text").get(), "depth": response.meta["depth"]}
        yield from response.follow_all(css="a")


class BreadthFirst(DepthFirst):
    name = "breadth-first"
    custom_settings = {
        **ONE_AT_A_TIME,
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }


class Priorities(LocalSpider):
    name = "priorities"
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        for number in range(1, 9):
            yield response.follow(f"/page/{number}", self.parse_page, priority=number % 4)

    def parse_page(self, response):
        yield {"url": response.url}


class StartOrder(LocalSpider):
    """Start requests, and what they lead to."""

    name = "start-order"
    paths = ["/tree/1", "/tree/2", "/page/1", "/page/2", "/page/3"]
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        if "tree" in response.url:
            yield from response.follow_all(css="a", callback=self.parse)


class StartPriorities(LocalSpider):
    name = "start-priorities"
    custom_settings = ONE_AT_A_TIME

    async def start(self):
        for number in range(6):
            yield scrapy.Request(self.url(f"/page/{number}"), priority=number % 3, dont_filter=True)


class DuplicateStartUrls(LocalSpider):
    name = "duplicate-start-urls"
    paths = ["/page/1", "/page/1", "/page/2", "/page/1"]


class FilteredStart(LocalSpider):
    """Start requests without dont_filter."""

    name = "filtered-start"

    async def start(self):
        for path in ("/page/1", "/page/1", "/page/2"):
            yield scrapy.Request(self.url(path), callback=self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}
        yield response.follow("/page/1", self.parse_page)


class BackToPageOne(LocalSpider):
    """A link to the page that the crawl started with."""

    name = "back-to-page-one"
    paths = ["/page/1"]

    def parse(self, response):
        yield {"url": response.url, "depth": response.meta["depth"]}
        if response.meta["depth"] < 4:
            yield from response.follow_all(css="a")


class StartPageOnce(LocalSpider):
    """The start URL again, by a request that Scrapy filters from the second time on."""

    name = "start-page-again"

    def parse(self, response):
        yield {"url": response.url, "depth": response.meta["depth"]}
        yield response.follow("/")
        yield response.follow("/", dont_filter=response.meta["depth"] < 2)


class EqualStartRequest(LocalSpider):
    """A start request with dont_filter that equals an earlier one without."""

    name = "equal-start-request"

    async def start(self):
        yield scrapy.Request(self.url("/page/1"))
        yield scrapy.Request(self.url("/page/1"), dont_filter=True)
        yield scrapy.Request(self.url("/page/1"))


class DontFilterChildren(LocalSpider):
    name = "dont-filter-children"

    def parse(self, response):
        yield {"url": response.url, "seen": response.meta.get("seen", 0)}
        seen = response.meta.get("seen", 0) + 1
        if seen < 4:
            yield response.request.replace(dont_filter=True, meta={"seen": seen})
            yield response.request.replace(dont_filter=True, meta={"seen": seen + 1})


class Fragments(LocalSpider):
    name = "fragments"
    paths = ["/page/1#top"]

    def parse(self, response):
        yield {"url": response.url, "asked": response.request.url}
        for path in ("/page/2#a", "/page/2#b", "/page/3?b=2&a=1#c", "/page/3?a=1&b=2"):
            yield response.follow(path, self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url, "asked": response.request.url}


class NoFilter(LocalSpider):
    """BaseDupeFilter filters nothing."""

    name = "no-filter"
    custom_settings = {"DUPEFILTER_CLASS": BaseDupeFilter, "DEPTH_LIMIT": 2}

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow("/page/1")
        yield response.follow("/page/1")


class ByPathFilter(RFPDupeFilter):
    """Pages that differ only in their query are one."""

    def request_seen(self, request):
        return super().request_seen(request.replace(url=request.url.partition("?")[0]))


class OwnFilter(LocalSpider):
    name = "own-filter"
    custom_settings = {**ONE_AT_A_TIME, "DUPEFILTER_CLASS": ByPathFilter}

    def parse(self, response):
        yield {"url": response.url}
        for number in range(3):
            yield response.follow(f"/page/1?{number}", self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}


class RefusingFilter(BaseDupeFilter):
    """Has no odd page, and counts what it was asked."""

    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.crawler = crawler
        return made

    def request_seen(self, request):
        self.crawler.stats.inc_value("own_filter/asked")
        return request.url[-1] in "135"

    def log(self, request, spider):
        spider.note("filtered", request.url)

    def close(self, reason):
        self.crawler.spider.note("filter closed", reason)


class RefusesOddPages(LocalSpider):
    name = "refuses-odd-pages"
    custom_settings = {"DUPEFILTER_CLASS": RefusingFilter, "DEPTH_LIMIT": 1}

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")


class FilterDebug(LocalSpider):
    name = "filter-debug"
    custom_settings = {"DUPEFILTER_DEBUG": True, "DEPTH_LIMIT": 2}

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
        yield from response.follow_all(css="a")


class UpperCaseFingerprinter:
    """Fingerprinter that distinguishes requests by their path alone."""

    def fingerprint(self, request):
        return request.url.partition("?")[0].lower().encode()[-20:].rjust(20)


class OwnFingerprinter(LocalSpider):
    name = "own-fingerprinter"
    custom_settings = {**ONE_AT_A_TIME, "REQUEST_FINGERPRINTER_CLASS": UpperCaseFingerprinter}

    def parse(self, response):
        for path in ("/page/1", "/page/1?x", "/PAGE/1", "/page/2"):
            yield response.follow(path, self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url}


class BrokenFingerprinter:
    def fingerprint(self, request):
        if request.url.endswith("/page/2"):
            raise ValueError("no fingerprint for page 2")
        return fingerprint(request)


class FingerprinterRaises(LocalSpider):
    """Its requests have priorities: writing down the error takes so long that the first may start before the last."""

    name = "fingerprinter-raises"
    custom_settings = {**ONE_AT_A_TIME, "REQUEST_FINGERPRINTER_CLASS": BrokenFingerprinter}

    def parse(self, response):
        yield {"url": response.url}
        for number in (1, 2, 3):
            yield response.follow(f"/page/{number}", self.parse_page, errback=self.failed, priority=-number)

    def parse_page(self, response):
        yield {"url": response.url}


class DepthLimit(LocalSpider):
    name = "depth-limit"
    paths = ["/tree/"]
    custom_settings = {"DEPTH_LIMIT": 2, "DEPTH_STATS_VERBOSE": True}

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a")


class OnIdle(LocalSpider):
    """Requests scheduled when the spider is idle."""

    name = "on-idle"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=signals.spider_idle)
        spider.left = 3
        return spider

    def idle(self):
        if self.left:
            self.left -= 1
            self.crawler.engine.crawl(scrapy.Request(self.url(f"/page/{self.left}"), dont_filter=self.left == 2))
            raise DontCloseSpider


class IdleSameUrl(OnIdle):
    """The same URL at each idle, as a spider does that polls."""

    name = "idle-same-url"

    def idle(self):
        if self.left:
            self.left -= 1
            self.crawler.engine.crawl(scrapy.Request(self.url("/page/1"), dont_filter=True))
            raise DontCloseSpider


class Scheduled(LocalSpider):
    """Handlers of request_scheduled that drop a request, and change another."""

    name = "scheduled-handlers"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scheduled, signal=signals.request_scheduled)
        crawler.signals.connect(spider.dropped, signal=signals.request_dropped)
        return spider

    def scheduled(self, request):
        request.headers["X-Own"] = "scheduled"
        if request.url.endswith("drop"):
            raise scrapy.exceptions.IgnoreRequest("not this one")

    def dropped(self, request):
        self.note("dropped", request.url)

    def parse(self, response):
        for path in ("/echo?1", "/echo?drop", "/echo?1"):
            yield response.follow(path, self.parse_echo)

    def parse_echo(self, response):
        yield {"own": response.json()["headers"].get("x-own")}


class ManyRequests(LocalSpider):
    """More than one batch of the frontier holds."""

    name = "many-requests"

    def parse(self, response):
        for number in range(250):
            yield response.follow(f"/page/{number % 9}?{number % 200}", self.parse_page, cb_kwargs={"number": number})

    def parse_page(self, response, number):
        yield {"number": number}


class MetaOfResponse(LocalSpider):
    """Request(meta=response.meta), as many spiders write."""

    name = "meta-of-response"
    paths = ["/chain/2"]

    def parse(self, response):
        yield scrapy.Request(self.url("/page/1"), self.parse_page, meta=response.meta)

    def parse_page(self, response):
        meta = response.meta
        yield {"url": response.url, "depth": meta["depth"], "from": meta.get("redirect_urls")}
        if meta["depth"] < 3:
            yield scrapy.Request(self.url(f"/page/{meta['depth']}"), self.parse_page, meta=meta)


class ByHand(LocalSpider):
    """A retry by hand: a copy of the response's request."""

    name = "retry-by-hand"
    paths = ["/flaky/200/0/x"]

    def parse(self, response):
        tries = response.meta.get("tries", 0)
        yield {"tries": tries}
        if tries < 3:
            request = response.request.copy()
            request.meta["tries"] = tries + 1
            request.dont_filter = True
            yield request


class LongUrls(LocalSpider):
    name = "long-urls"
    custom_settings = {"URLLENGTH_LIMIT": 500}

    def parse(self, response):
        yield response.follow("/page/1?" + "x" * 400, self.parse_page)
        yield response.follow("/page/2?" + "x" * 600, self.parse_page)

    def parse_page(self, response):
        yield {"length": len(response.url) - len(self.site)}

"""Middlewares, extensions, pipelines and settings of a project."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import attrs
import scrapy
from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import DropItem, IgnoreRequest, StopDownload
from scrapy.http import HtmlResponse
from scrapy.pipelines.files import FilesPipeline
from scrapy.pipelines.images import ImagesPipeline
from scrapy.statscollectors import MemoryStatsCollector

from tests.acceptance.parity.local import ONE_AT_A_TIME, LocalSpider

HERE = __name__


class OwnDownloaderMiddleware:
    """Answers, replaces and refuses requests and responses, by their URL."""

    def process_request(self, request):
        if "answer-request" in request.url:
            return HtmlResponse(request.url, body=b"<h1>made by the middleware</h1>", request=request)
        if "replace-request" in request.url:
            return request.replace(url=request.url.replace("replace-request", "replaced"))
        if "ignore-request" in request.url:
            raise IgnoreRequest("not this one")
        if "raise-request" in request.url:
            raise ValueError("broken")
        request.headers["X-Own"] = "middleware"
        return None

    def process_response(self, request, response):
        if "replace-response" in response.url:
            return response.replace(body=b"<h1>another body</h1>")
        if "ask-again" in response.url:
            return request.replace(url=response.url.replace("ask-again", "asked-again"))
        if "ignore-response" in response.url:
            raise IgnoreRequest("not this answer")
        if "raise-response" in response.url:
            raise ValueError("broken")
        return response

    def process_exception(self, request, exception):
        if "drop?answer" in request.url:
            return HtmlResponse(request.url, body=b"<h1>in place of an error</h1>", request=request)
        if "drop?ask" in request.url:
            return request.replace(url=request.url.replace("drop?ask", "page/8"))
        return None


class DownloaderMiddlewares(LocalSpider):
    name = "downloader-middleware"
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {OwnDownloaderMiddleware: 560},
        "RETRY_ENABLED": False,
    }
    words = ("answer-request", "replace-request", "ignore-request", "raise-request", "replace-response", "ask-again",
             "ignore-response", "raise-response")  # fmt: skip

    async def start(self):
        for path in [f"/page/1?{word}" for word in self.words] + ["/drop?answer", "/drop?ask", "/drop?raise"]:
            yield scrapy.Request(self.url(path), errback=self.failed)


class DownloaderMiddlewareNearDownloader(DownloaderMiddlewares):
    """The same, nearest to the downloader of all."""

    name = "downloader-middleware-at-950"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {OwnDownloaderMiddleware: 950}, "RETRY_ENABLED": False}


class BannedMiddleware:
    """Asks again for a page that looks like a ban: with ``dont_filter``, a counter in meta and another header."""

    def process_response(self, request, response):
        tries = request.meta.get("tries", 0)
        if b"status" in response.body and tries < 2:
            again = request.copy()
            again.meta["tries"] = tries + 1
            again.dont_filter = True
            return again
        return response


class AsksAgain(LocalSpider):
    name = "middleware-asks-again"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {BannedMiddleware: 543}}
    paths = ["/status/200", "/page/1"]


class AsyncMiddleware:
    async def process_request(self, request):
        await asyncio.sleep(0.01)
        if request.meta.get("first") is None and "page/1" in request.url:
            other = scrapy.Request(request.url.replace("page/1", "page/2"), meta={"first": False})
            request.meta["first"] = (await self.crawler.engine.download_async(other)).url

    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.crawler = crawler
        return made


class AsyncMiddlewares(LocalSpider):
    """A middleware that downloads something itself before each request."""

    name = "middleware-downloads"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {AsyncMiddleware: 543}}
    paths = ["/page/1"]

    def parse(self, response):
        yield {"url": response.url, "first": response.meta["first"]}


class OwnSpiderMiddleware:
    async def process_start(self, start):
        async for output in start:
            yield output
        yield {"of": "process_start"}

    def process_spider_input(self, response):
        if "bad-input" in response.url:
            raise ValueError("not this response")

    async def process_spider_output(self, response, result):
        async for output in result:
            if isinstance(output, dict):
                output["by"] = "middleware"
                if output.get("url", "").endswith("/page/3"):
                    continue
            yield output

    def process_spider_exception(self, response, exception):
        if "recover" in response.url:
            return [{"recovered": type(exception).__name__}]
        return None


class SpiderMiddlewares(LocalSpider):
    name = "spider-middleware"
    custom_settings = {"SPIDER_MIDDLEWARES": {OwnSpiderMiddleware: 543}}
    paths = ["/page/1", "/page/2?bad-input", "/page/3", "/page/4?recover", "/page/5?raise"]

    async def start(self):
        for url in self.start_urls:
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        if "recover" in response.url or "raise" in response.url:
            raise KeyError("x")
        yield {"url": response.url}


class OnlySyncOutput:
    """A spider middleware of before coroutines."""

    def process_spider_output(self, response, result):
        for output in result:
            if isinstance(output, dict):
                output["sync"] = True
            yield output


class SyncSpiderMiddleware(LocalSpider):
    name = "sync-spider-middleware"
    custom_settings = {"SPIDER_MIDDLEWARES": {OnlySyncOutput: 543}}

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a", callback=self.page)

    def page(self, response):
        yield {"url": response.url}


class DuplicatesPipeline:
    """Drops, changes, raises, waits."""

    def __init__(self):
        self.seen = set()

    def open_spider(self):
        self.opened = True

    async def process_item(self, item):
        adapter = ItemAdapter(item)
        await asyncio.sleep(0.001)
        if adapter["number"] in self.seen:
            raise DropItem(f"{adapter['number']} again")
        self.seen.add(adapter["number"])
        if adapter["number"] == 3:
            raise ValueError("three is broken")
        adapter["piped"] = self.opened
        return item


class Pipelines(LocalSpider):
    name = "pipelines"
    custom_settings = {**ONE_AT_A_TIME, "ITEM_PIPELINES": {DuplicatesPipeline: 300}}

    def parse(self, response):
        for number in (1, 2, 1, 3, 4, 2):
            yield {"number": number}


class SigningMiddleware:
    """Signs requests last of all, refuses some and answers others."""

    def process_request(self, request):
        if "ignore" in request.url:
            raise IgnoreRequest("not this one")
        if "answer" in request.url:
            return HtmlResponse(request.url, body=b"<h1>made by the middleware</h1>", request=request)
        request.headers["X-Own"] = "signed"
        return None


class LatePipeline:
    def process_item(self, item):
        item["late"] = True
        return item


class LateComponents(LocalSpider):
    """A middleware nearer to the downloader, and a pipeline behind all, than any order in Scrapy's documentation."""

    name = "late-components"
    paths = ["/echo", "/page/1?ignore", "/page/1?answer"]
    custom_settings = {
        "ITEM_PIPELINES": {LatePipeline: 1100},
        "DOWNLOADER_MIDDLEWARES": {SigningMiddleware: 1200},
        "FEEDS": {"items.jl": {"format": "jsonlines"}},
    }

    async def start(self):
        for path in self.paths:
            yield scrapy.Request(self.url(path), errback=self.failed)

    def parse(self, response):
        signed = response.json()["headers"].get("x-own") if "echo" in response.url else None
        yield {"url": response.url, "signed": signed}


class ForgetfulPipeline:
    """Forgets to return the item."""

    def process_item(self, item):
        return [item] if item["number"] == 3 else None


class PipelineReturnsNone(Pipelines):
    name = "pipeline-returns-none"
    custom_settings = {**ONE_AT_A_TIME, "ITEM_PIPELINES": {ForgetfulPipeline: 300}}


class ReplacingPipeline:
    def process_item(self, item):
        return {"inner": ItemAdapter(item).asdict(), "kind": type(item).__name__}


class PlainItem(scrapy.Item):
    name = scrapy.Field()
    price = scrapy.Field()


@dataclass
class DataItem:
    name: str
    tags: list[str] = field(default_factory=list)


@attrs.define
class AttrsItem:
    name: str
    price: float = 1.5


class ItemClasses(LocalSpider):
    name = "item-classes"

    def parse(self, response):
        yield {"name": "dict", "when": None}
        yield PlainItem(name="item", price=2)
        yield DataItem("data", ["a"])
        yield AttrsItem("attrs")


class PydanticItems(LocalSpider):
    name = "pydantic-items"

    def parse(self, response):
        from pydantic import BaseModel

        class Tea(BaseModel):
            name: str
            price: float | None = None

        yield Tea(name="pydantic", price=2.5)


class ReplacedItems(ItemClasses):
    """A pipeline that makes dicts of items."""

    name = "pipeline-replaces"
    custom_settings = {"ITEM_PIPELINES": {ReplacingPipeline: 300}}


class OddItems(LocalSpider):
    """Items that JSON cannot hold as they are, an empty one and a large one."""

    name = "odd-items"

    def parse(self, response):
        from datetime import date
        from decimal import Decimal

        yield {"when": date(2026, 1, 2), "price": Decimal("1.50"), "set": {1}, "bytes": b"\xff"}
        yield {}
        yield {"nan": float("nan"), "big": 2**70, "text": "caf\xe9\u2028"}
        yield {"object": object, 1: "a number as a key"}
        yield {"text": "x" * 300_000}


class Feeds(LocalSpider):
    """Feeds are equal byte by byte."""

    name = "feeds"
    custom_settings = {
        **ONE_AT_A_TIME,
        "FEEDS": {
            "out/items.json": {"format": "json", "indent": 2},
            "out/items.jsonl": {"format": "jsonlines"},
            "out/items.csv": {"format": "csv", "fields": ["title", "url"]},
            "out/items.xml": {"format": "xml"},
            "out/batch-%(batch_id)d.json": {"format": "json", "batch_item_count": 2},
        },
    }

    def parse(self, response):
        # The host is not the same in each run.
        yield {"url": response.url.removeprefix(self.site), "title": response.css("h1::text").get()}
        if response.url.endswith("/"):
            yield from response.follow_all(css="a")


class EmptyFeed(LocalSpider):
    name = "feed-without-items"
    custom_settings = {
        "FEEDS": {"out/items.json": {"format": "json"}, "out/no.json": {"format": "json", "store_empty": False}}
    }

    def parse(self, response):
        return []


class ItemCount(LocalSpider):
    name = "closespider-itemcount"
    custom_settings = {**ONE_AT_A_TIME, "CLOSESPIDER_ITEMCOUNT": 3}
    paths = [f"/page/{number}" for number in range(9)]

    def closed(self, reason):
        self.note("closed", reason)


class PageCount(ItemCount):
    name = "closespider-pagecount"
    custom_settings = {**ONE_AT_A_TIME, "CLOSESPIDER_PAGECOUNT": 4}


class ErrorCount(LocalSpider):
    name = "closespider-errorcount"
    custom_settings = {**ONE_AT_A_TIME, "CLOSESPIDER_ERRORCOUNT": 2}
    paths = [f"/page/{number}" for number in range(9)]

    def parse(self, response):
        raise ValueError("broken")


class NoItemTimeout(LocalSpider):
    name = "closespider-timeout"
    custom_settings = {"CLOSESPIDER_TIMEOUT": 1}
    paths = ["/page/1", "/slow/3"]


class OwnStats(MemoryStatsCollector):
    def open_spider(self, *args):
        super().open_spider(*args)
        self.set_value("own_collector/opened", 1)


class CustomStats(LocalSpider):
    name = "own-stats-collector"
    custom_settings = {"STATS_CLASS": OwnStats}


class OwnExtension:
    """Counts, waits when the spider closes, and asks for one more page."""

    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.crawler, made.asked = crawler, False
        crawler.signals.connect(made.idle, signal=signals.spider_idle)
        crawler.signals.connect(made.closed, signal=signals.spider_closed)
        return made

    def idle(self, spider):
        if not self.asked:
            self.asked = True
            self.crawler.engine.crawl(scrapy.Request(spider.url("/page/9"), callback=spider.parse))

    async def closed(self, spider, reason):
        await asyncio.sleep(0.01)
        spider.note("extension closed", reason)


class Extensions(LocalSpider):
    name = "own-extension"
    custom_settings = {"EXTENSIONS": {OwnExtension: 500}}


class StopsDownloads(LocalSpider):
    """StopDownload at the headers, and within the body."""

    name = "stop-download"
    paths = ["/big/200000?headers", "/big/200000?bytes", "/big/200000?fail"]

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.got_headers, signal=signals.headers_received)
        crawler.signals.connect(spider.got_bytes, signal=signals.bytes_received)
        return spider

    async def start(self):
        for url in self.start_urls:
            yield scrapy.Request(url, errback=self.stopped)

    def got_headers(self, headers, body_length, request):
        self.note("headers", request.url, body_length)
        if "headers" in request.url:
            raise StopDownload(fail=False)

    def got_bytes(self, data, request):
        if "bytes" in request.url:
            raise StopDownload(fail=False)
        if "fail" in request.url:
            raise StopDownload

    def parse(self, response):
        yield {"url": response.url, "whole": len(response.body) > 200000, "flags": "download_stopped" in response.flags}

    def stopped(self, failure):
        self.note("stopped", failure.type.__name__, failure.request.url)


class Delay(LocalSpider):
    name = "download-delay"
    custom_settings = {"DOWNLOAD_DELAY": 0.05}

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a", callback=self.page)

    def page(self, response):
        yield {"url": response.url}


class Throttle(Delay):
    name = "autothrottle"
    custom_settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.02, "AUTOTHROTTLE_MAX_DELAY": 0.05}


class Slots(Delay):
    name = "download-slots"
    custom_settings = {"DOWNLOAD_SLOTS": {"localhost": {"concurrency": 1, "delay": 0.01, "randomize_delay": False}}}

    def parse(self, response):
        for number in range(4):
            yield response.follow(f"/page/{number}", self.page, meta={"download_slot": f"slot{number % 2}"})


class HttpCache(LocalSpider):
    """The second run asks the site for nothing."""

    name = "http-cache"
    runs = 2
    custom_settings = {"HTTPCACHE_ENABLED": True}

    def parse(self, response):
        yield {"url": response.url, "flags": "cached" in response.flags}
        if response.meta["depth"] == 0:
            yield from response.follow_all(css="a")
            yield response.follow("/redirect/302?to=/page/9")
            yield response.follow("/status/404", self.page, meta={"handle_httpstatus_all": True})
            yield response.follow("/page/1?no", self.page, meta={"dont_cache": True})

    def page(self, response):
        yield {"url": response.url, "flags": "cached" in response.flags}


class Jobdir(LocalSpider):
    """Paused by a close reason, and resumed; the state of the spider is kept."""

    name = "jobdir"
    runs = 2
    custom_settings = {**ONE_AT_A_TIME, "JOBDIR": "job"}

    def parse(self, response):
        self.state["pages"] = self.state.get("pages", 0) + 1
        yield {"url": response.url, "pages": self.state["pages"]}
        yield from response.follow_all(css="a", callback=self.page)

    def page(self, response):
        self.state["pages"] += 1
        yield {"url": response.url, "pages": self.state["pages"]}
        if self.run == 0 and self.state["pages"] == 3:
            raise scrapy.exceptions.CloseSpider("paused")


class FilesByPath(FilesPipeline):
    """Names files by their path: the host is not the same in each run."""

    def file_path(self, request, response=None, info=None, *, item=None):
        return urlsplit(request.url).path.lstrip("/")


class ImagesByPath(ImagesPipeline):
    def file_path(self, request, response=None, info=None, *, item=None):
        return urlsplit(request.url).path.lstrip("/")

    def thumb_path(self, request, thumb_id, response=None, info=None, *, item=None):
        return f"{thumb_id}/{urlsplit(request.url).path.lstrip('/')}"


class Files(LocalSpider):
    """The files pipeline, with a file behind a redirect and one that is not there."""

    name = "files-pipeline"
    custom_settings = {
        "ITEM_PIPELINES": {FilesByPath: 1},
        "FILES_STORE": "out",
        "MEDIA_ALLOW_REDIRECTS": True,
        "RETRY_ENABLED": False,
    }

    def parse(self, response):
        paths = ("/file/a.txt", "/file/b.txt", "/file/a.txt", "/redirect/302?to=/file/c.txt", "/status/404", "/drop")
        yield {"file_urls": [self.url(path) for path in paths]}
        yield {"file_urls": [self.url("/file/a.txt")]}


class FilesNoRedirects(Files):
    name = "files-pipeline-without-redirects"
    custom_settings = {**Files.custom_settings, "MEDIA_ALLOW_REDIRECTS": False}


class CloseWithRequests(LocalSpider):
    """A spider that closes while requests are under way and in the queue."""

    name = "closed-by-an-extension"
    custom_settings = {"CLOSESPIDER_PAGECOUNT": 1, "CONCURRENT_REQUESTS": 2}
    paths = ["/slow/0.5", "/page/1", "/page/2", "/page/3"]

    def parse(self, response):
        self.note("answered", response.url)

    def closed(self, reason):
        self.note("closed", reason)


class Images(LocalSpider):
    """The images pipeline, with thumbnails."""

    name = "images-pipeline"
    custom_settings = {
        "ITEM_PIPELINES": {ImagesByPath: 1},
        "IMAGES_STORE": "out",
        "IMAGES_THUMBS": {"small": (1, 1)},
        "RETRY_ENABLED": False,
    }

    def parse(self, response):
        yield {"image_urls": [self.url("/picture/a.png"), self.url("/file/no-picture"), self.url("/status/404")]}


class CountedImages(Images):
    name = "images-of-items"

    def parse(self, response):
        yield {"image_urls": [self.url("/picture/a.png")]}
        yield {"image_urls": [self.url("/picture/a.png"), self.url("/picture/b.png")]}

"""Rarer habits of spiders: background tasks, downloads while closing, own handlers, lazy starts, odd redirects."""

from __future__ import annotations

import asyncio

import scrapy
from scrapy import signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import DontCloseSpider
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro

from tests.acceptance.parity.local import ONE_AT_A_TIME, LocalSpider


class LazyStart(LocalSpider):
    """A start() that waits until the queue is empty, as Scrapy's documentation has it."""

    name = "lazy-start"
    custom_settings = ONE_AT_A_TIME
    paths = ["/tree/1", "/tree/2", "/tree/1.1"]

    async def start(self):
        async for request in super().start():
            if self.crawler.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)
            self.note("start yields", request.url)
            yield request

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a")


class WaitingStart(LocalSpider):
    """A start() that yields the next request when the last one is done."""

    name = "waiting-start"

    async def start(self):
        for number in range(3):
            yield scrapy.Request(self.url(f"/page/{number}"))
            await self.crawler.signals.wait_for(signals.scheduler_empty)
            self.note("empty", number)


class StartMeta(LocalSpider):
    """Scrapy marks start requests."""

    name = "start-meta"

    def parse(self, response):
        yield {"url": response.url, "start": response.meta.get("is_start_request")}
        yield response.follow("/page/1", self.parse_page)

    def parse_page(self, response):
        yield {"url": response.url, "start": response.meta.get("is_start_request")}


class StartRubbish(LocalSpider):
    name = "start-rubbish"

    async def start(self):
        yield scrapy.Request(self.url("/page/1"))
        yield None
        yield 3
        yield scrapy.Request(self.url("/page/2"))


class ClosedRaises(LocalSpider):
    name = "closed-raises"

    def closed(self, reason):
        self.note("closed", reason)
        raise ValueError("closed() is broken")


class OpenedRaises(LocalSpider):
    """A handler of spider_opened that raises."""

    name = "opened-raises"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signal=signals.spider_opened)
        return spider

    def opened(self):
        raise ValueError("opened() is broken")


class InitRaises(LocalSpider):
    name = "init-raises"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        raise ValueError("from_crawler() is broken")


class Background(LocalSpider):
    """A task that outlives its callback, and asks for a page then."""

    name = "background-task"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=signals.spider_idle)
        spider.tasks = []
        return spider

    async def parse(self, response):
        yield {"url": response.url}
        self.tasks.append(asyncio.ensure_future(self.later()))

    async def later(self):
        await asyncio.sleep(0.2)
        self.crawler.engine.crawl(scrapy.Request(self.url("/page/1"), self.parse_page))

    def idle(self):
        if not self.tasks[0].done():
            raise DontCloseSpider

    def parse_page(self, response):
        yield {"later": response.url}


class DownloadsWhenIdle(LocalSpider):
    """A handler of spider_idle that downloads a page itself, as a logout does."""

    name = "downloads-when-idle"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=signals.spider_idle)
        return spider

    def idle(self):
        if not hasattr(self, "logout"):
            self.logout = asyncio.ensure_future(self.log_out())
        if not self.logout.done():
            raise DontCloseSpider

    async def log_out(self):
        response = await self.crawler.engine.download_async(scrapy.Request(self.url("/page/7"), NO_CALLBACK))
        self.note("logged out", response.status, response.url)


class DownloadingPipeline:
    """Downloads a page for each item, and one more when the spider closes."""

    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.crawler = crawler
        return made

    async def open_spider(self):
        self.crawler.spider.note("pipeline opened")

    async def process_item(self, item):
        url = self.crawler.spider.url(f"/page/{item['number']}?of-item")
        response = await self.crawler.engine.download_async(scrapy.Request(url, NO_CALLBACK))
        item["inner"] = response.css("h1::text").get()
        return item

    async def close_spider(self):
        self.crawler.spider.note("pipeline closed")


class PipelineDownloads(LocalSpider):
    name = "pipeline-downloads"
    custom_settings = {"ITEM_PIPELINES": {DownloadingPipeline: 300}}

    def parse(self, response):
        for number in range(1, 4):
            yield {"number": number}


class BatchingPipeline:
    """Keeps items until there are twenty of them."""

    def __init__(self):
        self.waiting = []

    async def process_item(self, item):
        done = asyncio.get_running_loop().create_future()
        self.waiting.append(done)
        if len(self.waiting) == 20:
            for each in self.waiting:
                each.set_result(None)
            self.waiting = []
        await asyncio.wait_for(done, 10)
        return item


class Batches(LocalSpider):
    """Items of one page that wait for each other in a pipeline."""

    name = "batching-pipeline"
    custom_settings = {"ITEM_PIPELINES": {BatchingPipeline: 300}}

    def parse(self, response):
        for number in range(40):
            yield {"number": number}


class DeferringPipeline(BatchingPipeline):
    """The same by Deferreds, as before coroutines."""

    def process_item(self, item):
        return deferred_from_coro(super().process_item(item))


class DeferredBatches(Batches):
    name = "batching-pipeline-of-deferreds"
    custom_settings = {"ITEM_PIPELINES": {DeferringPipeline: 300}}


class CountingHandler(HTTP11DownloadHandler):
    """A download handler of the project's own."""

    async def download_request(self, request):
        response = await super().download_request(request)
        response.headers["X-Handler"] = "own"
        return response


class OwnHandler(LocalSpider):
    """Plugins such as those for browsers come as download handlers."""

    name = "own-download-handler"
    custom_settings = {"DOWNLOAD_HANDLERS": {"http": CountingHandler}}

    def parse(self, response):
        yield {"by": response.headers.get("X-Handler")}


class NoRedirectMiddleware(LocalSpider):
    """RedirectMiddleware switched off by its name."""

    name = "redirect-middleware-none"
    handle_httpstatus_list = [302]
    paths = ["/redirect/302?to=/page/1"]
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None},
    }


class NotingRedirects(RedirectMiddleware):
    """A redirect middleware of the project's own."""

    def process_response(self, request, response, spider=None):
        if response.status == 302:
            self.crawler.spider.note("redirect", response.headers["Location"].decode())
        return super().process_response(request, response)

    @classmethod
    def from_crawler(cls, crawler):
        made = super().from_crawler(crawler)
        made.crawler = crawler
        return made


class OwnRedirectMiddleware(LocalSpider):
    name = "own-redirect-middleware"
    paths = ["/chain/2"]
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
            NotingRedirects: 600,
        },
    }


class NoMetaRefresh(LocalSpider):
    name = "metarefresh-disabled"
    paths = ["/refresh?to=/page/1"]
    custom_settings = {"METAREFRESH_ENABLED": False}


class OddRedirects(LocalSpider):
    """Redirects to a fragment, another scheme, and a URL that is none."""

    name = "odd-redirects"
    handle_httpstatus_list = []
    paths = [
        "/redirect/302?to=/page/1%23part",
        "/redirect/302?to=data:,x",
        "/redirect/302?to=file:///etc/hostname",
        "/redirect/302?to=/h%C3%A9",
        "/location/utf-8",
        "/redirect/302?to=?empty",
        "/redirect/302?to=../page/2",
    ]

    async def start(self):
        for url in self.start_urls:
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url, "request": response.request.url, "status": response.status}


class RedirectToSeen(LocalSpider):
    """A redirect to a page that was seen is filtered, unless its request has dont_filter."""

    name = "redirect-to-a-seen-page"

    def parse(self, response):
        yield response.follow("/page/1", self.first)

    def first(self, response):
        yield {"url": response.url}
        yield response.follow("/redirect/302?to=/page/1&a", self.again)
        yield response.follow("/redirect/302?to=/page/1&b", self.again, dont_filter=True)

    def again(self, response):
        yield {"again": response.url, "asked": response.meta["redirect_urls"]}


class DroppedPost(LocalSpider):
    """A POST whose connection ends is not sent twice unless Scrapy retries it."""

    name = "dropped-post"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        yield scrapy.Request(self.url("/drop"), method="POST", body=b"order=1", errback=self.failed)


class RevalidatedCache(LocalSpider):
    """RFC 2616: the second run asks whether the page has changed."""

    name = "http-cache-rfc2616"
    runs = 2
    paths = ["/etag", "/page/1"]
    custom_settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    }

    def parse(self, response):
        yield {"url": response.url, "status": response.status, "cached": "cached" in response.flags}


class SetCookieHeaders(LocalSpider):
    """A spider that reads Set-Cookie itself."""

    name = "set-cookie-headers"
    paths = ["/set-cookie?a=1&b=2"]
    custom_settings = {"COOKIES_ENABLED": False}

    def parse(self, response):
        yield {"cookies": sorted(value.decode() for value in response.headers.getlist("Set-Cookie"))}


class OddUrls(LocalSpider):
    """Upper case, an explicit path of dots, credentials in the URL."""

    name = "odd-urls"

    async def start(self):
        port = self.site.rpartition(":")[2]
        for url in (
            f"http://LOCALHOST:{port}/echo?upper",
            f"http://localhost:{port}",
            f"http://localhost:{port}?query",
            f"http://localhost:{port}/./echo",
        ):
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url, "status": response.status}


class OwnRequest(scrapy.Request):
    """A class of the spider's own, with a method."""

    def number(self):
        return self.cb_kwargs["number"]


class OwnRequests(LocalSpider):
    name = "own-request-class"

    def parse(self, response):
        yield OwnRequest(self.url("/page/1"), self.part, cb_kwargs={"number": 3})

    def part(self, response, number):
        yield {"class": type(response.request).__name__, "number": response.request.number()}


class RequestDicts(LocalSpider):
    """Request.to_dict, as spiders do that keep requests themselves."""

    name = "request-to-dict"

    def parse(self, response):
        request = response.follow("/page/1", self.part, meta={"a": 1})
        kept = request.to_dict(spider=self)
        yield scrapy.utils.request.request_from_dict(kept, spider=self)

    def part(self, response):
        kept = response.request.to_dict(spider=self)
        yield {"callback": kept["callback"], "keys": sorted(key for key in kept["meta"] if not key.startswith("_"))}


class ErrbackDetails(LocalSpider):
    """Attributes of the failure that an errback gets."""

    name = "errback-details"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        for path in ("/status/404", "/drop"):
            yield scrapy.Request(self.url(path), errback=self.details, cb_kwargs={"a": 1}, meta={"b": [2]})

    def parse(self, response, a):
        yield {"url": response.url}

    def details(self, failure):
        response = getattr(failure.value, "response", None)
        yield {
            "url": failure.request.url,
            "a": failure.request.cb_kwargs,
            "b": failure.request.meta["b"],
            "status": response.status if response is not None else None,
            "body": response.text if response is not None else None,
        }


class NoBuiltins(LocalSpider):
    """Scrapy's own middlewares switched off."""

    name = "builtins-switched-off"
    paths = ["/status/404", "/page/1"]
    custom_settings = {
        "SPIDER_MIDDLEWARES": {
            "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
            "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
            "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
            "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
        },
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
            "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
            "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
            "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
        },
    }

    def parse(self, response):
        yield {"url": response.url, "status": response.status, "depth": response.meta.get("depth")}
        if response.status == 200 and "page/1" in response.url:
            yield response.follow("/page/2")


class ClosesItself(LocalSpider):
    """engine.close_spider_async from a callback."""

    name = "closes-itself"
    custom_settings = ONE_AT_A_TIME
    paths = [f"/page/{number}" for number in range(6)]

    async def parse(self, response):
        yield {"url": response.url}
        if response.url.endswith("2"):
            self.closing = asyncio.ensure_future(self.crawler.engine.close_spider_async(reason="enough"))

    def closed(self, reason):
        self.note("closed", reason)


class Pauses(LocalSpider):
    """engine.pause and unpause."""

    name = "pauses"

    def parse(self, response):
        yield {"url": response.url}
        self.crawler.engine.pause()
        asyncio.get_running_loop().call_later(0.1, self.crawler.engine.unpause)
        yield from response.follow_all(css="a", callback=self.page)

    def page(self, response):
        yield {"url": response.url}


class AtMostTwo(LocalSpider):
    """CONCURRENT_REQUESTS bounds what the site gets at once."""

    name = "at-most-two-at-once"
    custom_settings = {"CONCURRENT_REQUESTS": 2}
    paths = [f"/busy/{number}" for number in range(8)]

    def parse(self, response):
        yield {"two": int(response.css("h1::text").get()) <= 2}


class SameItemAgain(LocalSpider):
    """One dict, changed and yielded again."""

    name = "one-dict-yielded-again"
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        item = {}
        for number in range(3):
            item["number"] = number
            yield item


class IgnoredByScheduled(LocalSpider):
    """Requests that are dropped have no errback called, and the crawl ends."""

    name = "nothing-to-do"

    async def start(self):
        return
        yield


class NoStartUrls(LocalSpider):
    name = "no-start-urls"
    paths = []


class CallbackReturns(LocalSpider):
    """Callbacks that return an item, a request, a list, or an iterator."""

    name = "callback-returns"

    def parse(self, response):
        return [response.follow("/page/1", self.item), response.follow("/page/2", self.request)]

    def item(self, response):
        return {"url": response.url}

    def request(self, response):
        return response.follow("/page/3", self.iterator)

    def iterator(self, response):
        return iter([{"url": response.url}])


class MaxItemsInErrorState(LocalSpider):
    """A request yielded again and again from its errback, with a counter in cb_kwargs."""

    name = "errback-retries"

    async def start(self):
        yield scrapy.Request(self.url("/flaky/404/2/x"), errback=self.again, cb_kwargs={"tries": 0})

    def parse(self, response, tries):
        yield {"tries": tries}

    def again(self, failure):
        request = failure.request
        tries = request.cb_kwargs["tries"] + 1
        yield request.replace(cb_kwargs={"tries": tries}, dont_filter=True)

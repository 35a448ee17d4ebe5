"""Callbacks and errbacks, what is handed to them, and what they raise."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import scrapy
from scrapy import signals
from scrapy.exceptions import CloseSpider
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future

from tests.acceptance.parity.local import ONE_AT_A_TIME, LocalSpider


class CallbackRaises(LocalSpider):
    name = "callback-raises"

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page, errback=self.failed)

    def parse_page(self, response):
        if response.url.endswith(("2", "4")):
            raise ValueError("page 2 and page 4 are broken")
        yield {"url": response.url}


class RaisesInTheMiddle(LocalSpider):
    """Items before an error of the callback are kept."""

    name = "raises-in-the-middle"

    def parse(self, response):
        yield {"of": "start", "number": 1}
        yield response.follow("/page/1", self.parse_page)
        yield {"of": "start", "number": 2}
        raise KeyError("x")

    def parse_page(self, response):
        yield {"of": "page", "number": 1}
        yield response.follow("/page/2", self.parse_page)
        raise RuntimeError("after one item")


class NoParse(LocalSpider):
    """A spider without ``parse``."""

    name = "no-parse"
    parse = scrapy.Spider.parse


class ErrbackRaises(LocalSpider):
    name = "errback-raises"

    async def start(self):
        yield scrapy.Request(self.url("/status/404"), errback=self.broken)
        yield scrapy.Request(self.url("/page/1"), errback=self.broken)

    def broken(self, failure):
        self.note("errback", failure.type.__name__)
        raise ValueError("the errback is broken")


class ErrbackYields(LocalSpider):
    name = "errback-yields"

    async def start(self):
        yield scrapy.Request(self.url("/status/404"), errback=self.again)

    def again(self, failure):
        yield {"failed": failure.request.url, "status": failure.value.response.status}
        yield scrapy.Request(self.url("/page/1"))


class StartRaises(LocalSpider):
    name = "start-raises"

    async def start(self):
        yield scrapy.Request(self.url("/page/1"))
        raise ValueError("no more start requests")


class StartItems(LocalSpider):
    """Items and requests of start()."""

    name = "start-items"

    async def start(self):
        yield {"from": "start"}
        yield scrapy.Request(self.url("/page/1"))
        await asyncio.sleep(0.01)
        yield {"from": "start", "number": 2}


class ReturnsRubbish(LocalSpider):
    name = "returns-rubbish"

    def parse(self, response):
        yield {"url": response.url}
        yield 3
        yield None
        yield "text"
        yield response.follow("/page/1", self.returns_none)

    def returns_none(self, response):
        return None


class CallbackRuns(LocalSpider):
    """Number of runs of each callback."""

    name = "callback-runs"

    def parse(self, response):
        self.note("start page")
        yield response.follow("/page/1", self.broken)

    def broken(self, response):
        self.note("broken ran")
        raise ValueError


class CloseInCallback(LocalSpider):
    name = "close-in-callback"
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        yield {"url": response.url}
        raise CloseSpider("enough_of_it")

    def closed(self, reason):
        self.note("closed", reason)


class CloseInStart(LocalSpider):
    name = "close-in-start"

    async def start(self):
        yield {"of": "start"}
        raise CloseSpider("closed_in_start")

    def closed(self, reason):
        self.note("closed", reason)


class SharedItem(LocalSpider):
    """One item, filled by several requests, one after another."""

    name = "shared-item"
    paths = ["/page/1"]

    def parse(self, response):
        item = {"title": response.css("h1::text").get(), "parts": []}
        yield response.follow("/page/2", self.second, meta={"item": item})
        item["later"] = "set after the request was made"

    def second(self, response):
        item = response.meta["item"]
        item["parts"].append(response.css("h1::text").get())
        yield response.follow("/page/3", self.third, cb_kwargs={"item": item})

    def third(self, response, item):
        item["parts"].append(response.css("h1::text").get())
        yield item


class SharedByAll(LocalSpider):
    """One item, of which the last of several requests makes the end."""

    name = "shared-by-all"

    def parse(self, response):
        item = {"titles": []}
        links = response.css("a::attr(href)").getall()
        for link in links:
            yield response.follow(link, self.part, cb_kwargs={"item": item, "count": len(links)})

    def part(self, response, item, count):
        item["titles"].append(response.css("h1::text").get())
        if len(item["titles"]) == count:
            yield {"titles": sorted(item["titles"])}


class SharedCounter(LocalSpider):
    name = "shared-counter"

    def parse(self, response):
        pending = {"left": 5, "seen": Counter()}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, self.part, meta={"pending": pending})

    def part(self, response):
        pending = response.meta["pending"]
        pending["left"] -= 1
        pending["seen"][response.status] += 1
        if not pending["left"]:
            yield {"seen": dict(pending["seen"])}


class SameObject(LocalSpider):
    """The identity of what goes through meta and cb_kwargs."""

    name = "same-object"

    def parse(self, response):
        self.kept, self.other = {"a": 1}, ["b"]
        yield response.follow("/page/1", self.part, meta={"kept": self.kept}, cb_kwargs={"other": self.other})

    def part(self, response, other):
        yield {"meta": response.meta["kept"] is self.kept, "cb_kwargs": other is self.other}
        yield {"request": response.request.meta is response.meta}


class SameRequest(LocalSpider):
    """``response.request`` is the request that the callback made."""

    name = "same-request"

    def parse(self, response):
        self.made = response.follow("/page/1", self.part)
        yield self.made

    def part(self, response):
        yield {"same": response.request is self.made}


class MetaKeys(LocalSpider):
    """The keys in meta, of requests and responses, wherever a spider sees them."""

    name = "meta-keys"
    paths = ["/page/1", "/redirect/302?to=/page/2", "/flaky/503/1/again", "/status/404"]
    custom_settings = {"RETRY_TIMES": 1, **ONE_AT_A_TIME}

    async def start(self):
        for path in self.paths:
            yield scrapy.Request(self.url(path), errback=self.failed)

    def failed(self, failure):
        self.note("errback", failure.request.url, sorted(failure.request.meta))

    def parse(self, response):
        made = response.follow("/page/3", self.part, meta=response.meta, dont_filter=True)
        yield made
        yield {"url": response.url, "meta": sorted(response.meta), "request": sorted(made.meta)}
        yield response.request.replace(callback=self.part, dont_filter=True)

    def part(self, response):
        yield {
            "url": response.url,
            "meta": sorted(response.meta),
            "dict": sorted(response.request.to_dict(spider=self)["meta"]),
        }


class LargeSharedList(LocalSpider):
    """A queue in meta: each response asks for the next URL of one list."""

    name = "list-in-meta"

    def parse(self, response):
        todo = response.css("a::attr(href)").getall()
        yield response.follow(todo.pop(), self.part, meta={"todo": todo})
        yield response.follow(todo.pop(), self.part, meta={"todo": todo})

    def part(self, response):
        yield {"url": response.url}
        todo = response.meta["todo"]
        if todo:
            yield response.follow(todo.pop(), self.part, meta={"todo": todo})


class MutatedAfterYield(LocalSpider):
    name = "meta-mutated-after-yield"

    def parse(self, response):
        request = response.follow("/page/1", self.part, meta={"a": 1})
        yield request
        request.meta["a"] = 2
        request.priority = 5

    def part(self, response):
        yield {"a": response.meta["a"], "priority": response.request.priority}


class KeptResponse(LocalSpider):
    """A response, an open selector and a set in meta: nothing that JSON can hold."""

    name = "objects-in-meta"

    def parse(self, response):
        meta = {"first": response, "nodes": response.css("a"), "lock": object(), "names": {1, 2}}
        yield response.follow("/page/1", self.part, meta=meta)

    def part(self, response):
        meta = response.meta
        yield {"first": meta["first"].url, "nodes": len(meta["nodes"]), "names": sorted(meta["names"])}


class ScrapyItem(scrapy.Item):
    name = scrapy.Field()
    parts = scrapy.Field()


class ItemInMeta(LocalSpider):
    """A scrapy.Item that several callbacks fill."""

    name = "item-in-meta"

    def parse(self, response):
        yield response.follow("/page/1", self.part, meta={"item": ScrapyItem(name="tea", parts=[])})

    def part(self, response):
        item = response.meta["item"]
        item["parts"].append(response.url)
        yield item


class Lambdas(LocalSpider):
    """Callbacks that are no methods."""

    name = "lambdas"

    def parse(self, response):
        number = 7

        def local(response):
            yield {"local": number, "url": response.url}

        yield response.follow("/page/1", local)
        yield response.follow("/page/2", lambda response: {"lambda": number, "url": response.url})
        yield response.follow("/page/3", partial(self.part, number=number))
        yield response.follow("/page/3", partial(self.part, number=number))

    def part(self, response, number):
        return [{"partial": number, "url": response.url}]


class CallbackByName(LocalSpider):
    name = "private-callbacks"

    def parse(self, response):
        yield response.follow("/page/1", self.__part)
        yield response.follow("/page/2", self._other)

    def __part(self, response):
        yield {"private": response.url}

    @staticmethod
    def _other(response):
        yield {"static": response.url}


class AsyncCallbacks(LocalSpider):
    name = "async-callbacks"

    async def parse(self, response):
        await asyncio.sleep(0.01)
        for link in response.css("a"):
            yield response.follow(link, self.part)

    async def part(self, response):
        await asyncio.sleep(0.01)
        return [{"url": response.url}]


class InlineRequests(LocalSpider):
    """Requests within a callback, by engine.download_async and by its Deferred."""

    name = "inline-requests"

    async def parse(self, response):
        inner = await self.crawler.engine.download_async(scrapy.Request(self.url("/page/1"), NO_CALLBACK))
        again = await maybe_deferred_to_future(self.crawler.engine.download(scrapy.Request(self.url("/page/1"))))
        yield {"url": response.url, "inner": inner.url, "again": again.url}
        for path in ("/status/404", "/flaky/503/1/x", "/chain/2"):
            answer = await self.crawler.engine.download_async(scrapy.Request(self.url(path)))
            yield {"of": path, "status": answer.status, "url": answer.url}


class InlineFails(LocalSpider):
    name = "inline-fails"

    async def parse(self, response):
        try:
            await self.crawler.engine.download_async(scrapy.Request(self.url("/drop"), meta={"dont_retry": True}))
        except Exception as error:
            yield {"failed": isinstance(error, Exception)}


class CbKwargs(LocalSpider):
    name = "cb-kwargs"

    async def start(self):
        values = {"number": 1.5, "text": "caf\xe9", "pair": (1, 2), "nothing": None, "nested": {"a": [1, {2}]}}
        yield scrapy.Request(self.url("/page/1"), self.part, cb_kwargs=values)
        yield scrapy.Request(self.url("/page/2"), self.part, cb_kwargs={"wrong": 1}, errback=self.failed)

    def part(self, response, number, text, pair, nothing, nested):
        yield {"number": number, "text": text, "pair": repr(pair), "nothing": nothing, "nested": repr(nested)}


class AllSignals(LocalSpider):
    """Signals that an extension receives, in the order of a request's life."""

    name = "life-of-a-request"
    paths = ["/page/1"]

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name in (
            "spider_opened",
            "request_scheduled",
            "request_reached_downloader",
            "headers_received",
            "response_downloaded",
            "request_left_downloader",
            "response_received",
            "item_scraped",
            "spider_closed",
        ):
            crawler.signals.connect(spider.receiver(name), signal=getattr(signals, name), weak=False)
        return spider

    def receiver(self, name):
        return lambda **_sent: self.note(name)


class CustomInit(LocalSpider):
    """from_crawler, update_settings, own state, closed()."""

    name = "own-hooks"

    @classmethod
    def update_settings(cls, settings):
        super().update_settings(settings)
        settings.set("DEPTH_LIMIT", 1, priority="spider")

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.limit = crawler.settings.getint("DEPTH_LIMIT")
        return spider

    def parse(self, response):
        self.crawler.stats.inc_value("own/pages")
        self.crawler.stats.max_value("own/limit", self.limit)
        yield {"url": response.url}
        yield from response.follow_all(css="a")

    async def closed(self, reason):
        await asyncio.sleep(0)
        self.note("closed", reason, self.crawler.stats.get_value("own/pages"))

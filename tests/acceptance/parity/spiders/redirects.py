"""Redirects, retries and statuses."""

from __future__ import annotations

import scrapy
from scrapy.downloadermiddlewares.retry import get_retry_request

from tests.acceptance.parity.local import LocalSpider, response_class
from tests.acceptance.parity.site import OTHER


class _Asks(LocalSpider):
    """Spider that requests pages and yields an item about each response."""

    #: Paths, with the arguments of their requests.
    asks: dict = {}

    async def start(self):
        for path, arguments in self.asks.items():
            yield scrapy.Request(self.url(path), errback=self.failed, **arguments)

    def parse(self, response):
        meta = response.meta
        yield {
            "asked": self.first_of(response),
            "url": response.url,
            "request": response.request.url,
            "method": response.request.method,
            "status": response.status,
            "title": response.css("h1::text").get(),
            "times": meta.get("redirect_times"),
            "urls": meta.get("redirect_urls"),
            "reasons": meta.get("redirect_reasons"),
            "retries": meta.get("retry_times"),
            "location": response.headers.get("Location"),
        }

    def first_of(self, response):
        return response.meta.get("redirect_urls", [response.request.url])[0]


class Redirects(_Asks):
    name = "redirects"
    asks = {f"/redirect/{status}?to=/page/{number}": {} for number, status in enumerate((301, 302, 303, 307, 308))}


class RedirectChain(_Asks):
    name = "redirect-chain"
    asks = {"/chain/3": {}}


class FillingMiddleware:
    """Gives callbacks what they need, as scrapy-poet does, and meta a note."""

    def process_response(self, request, response):
        request.cb_kwargs["length"] = len(response.body)
        request.meta["filled"] = request.meta.get("depth", 0)
        return response


class FollowedByTheService(LocalSpider):
    """A middleware writes to a request that was redirected by the service itself."""

    name = "redirect-and-a-middleware-that-fills"
    paths = ["/chain/2"]
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {FillingMiddleware: 543},
        "EXTRACT_API_PARAMS": {"followRedirect": True},
    }

    def parse(self, response, length):
        meta = response.meta
        yield {
            "length": length,
            "filled": meta["filled"],
            "urls": meta["redirect_urls"],
            "url": response.request.url,
            "one": meta is response.request.meta,
        }


class RedirectTwice(LocalSpider):
    """Two redirects to one page, and a link to it."""

    name = "redirects-to-one-page"
    paths = ["/redirect/302?to=/page/1&1", "/redirect/302?to=/page/1&2"]

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow("/page/1", self.again)

    def again(self, response):
        yield {"again": response.url}


class DontRedirect(_Asks):
    name = "dont-redirect"
    asks = {
        "/redirect/302?to=/page/1": {"meta": {"dont_redirect": True}},
        "/redirect/301?to=/page/2": {"meta": {"dont_redirect": True, "handle_httpstatus_list": [301]}},
        "/redirect/303?to=/page/3": {"meta": {"handle_httpstatus_list": [303]}},
        "/redirect/307?to=/page/4": {"meta": {"handle_httpstatus_all": True}},
    }


class SpiderHandlesRedirects(_Asks):
    name = "spider-handles-redirects"
    handle_httpstatus_list = [302]
    asks = {"/redirect/302?to=/page/1": {}, "/redirect/301?to=/page/2": {}}


class RedirectsOff(_Asks):
    name = "redirects-off"
    custom_settings = {"REDIRECT_ENABLED": False, "HTTPERROR_ALLOW_ALL": True}
    asks = {"/redirect/302?to=/page/1": {}, "/refresh?to=/page/2": {}}


class RedirectLoop(_Asks):
    name = "redirect-loop"
    custom_settings = {"REDIRECT_MAX_TIMES": 4}
    asks = {"/loop": {}, "/chain/4": {}, "/chain/5": {}}


class MetaRefresh(_Asks):
    name = "meta-refresh"
    asks = {"/refresh?to=/page/1": {}, "/refresh?to=/redirect/302?to=/page/2": {}}


class NoLocation(_Asks):
    name = "redirect-without-location"
    asks = {"/nowhere": {}}


class RedirectPost(LocalSpider):
    """301 and 302 make a GET of a POST, 307 and 308 do not."""

    name = "redirect-of-a-post"

    async def start(self):
        for status in (301, 302, 303, 307, 308):
            url = self.url(f"/redirect/{status}?to=/echo?{status}")
            yield scrapy.Request(url, method="POST", body=b"a=1", headers={"Content-Type": "text/own"})
        yield scrapy.Request(self.url("/redirect/302?to=/echo?head"), method="HEAD", callback=self.head)

    def parse(self, response):
        seen = response.json()
        yield {"url": response.url, "method": seen["method"], "body": seen["body"], "asked": response.request.method}

    def head(self, response):
        yield {"url": response.url, "method": response.request.method}


class Offsite(LocalSpider):
    """A redirect to a host that is not allowed."""

    name = "offsite"
    allowed_domains = ["localhost"]

    async def start(self):
        yield scrapy.Request(self.url("/redirect/302?to=/page/1&host=other"), errback=self.failed)
        yield scrapy.Request(self.url("/page/2"), errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow(f"http://{OTHER}:{response.url.split(':')[2].split('/')[0]}/page/3", errback=self.failed)


class OtherHost(LocalSpider):
    """A redirect to another host that is allowed."""

    name = "redirect-to-another-host"

    async def start(self):
        headers = {"Authorization": "Basic eDp5", "Cookie": "a=1", "X-Own": "mine"}
        yield scrapy.Request(self.url("/redirect/302?to=/echo&host=other"), headers=headers)

    def parse(self, response):
        headers = response.json()["headers"]
        yield {"url": response.url, "authorization": headers.get("authorization"), "own": headers.get("x-own")}


class Statuses(_Asks):
    name = "statuses"
    custom_settings = {"RETRY_TIMES": 1}
    asks = {
        "/status/404": {},
        "/status/500": {},
        "/status/410": {"meta": {"handle_httpstatus_list": [410]}},
        "/status/403": {"meta": {"handle_httpstatus_all": True}},
        "/status/503": {"meta": {"dont_retry": True, "handle_httpstatus_all": True}},
        "/status/429": {"meta": {"dont_retry": True}},
        "/status/204": {},
        "/status/201": {},
        "/status/299": {},
        "/status/999": {},
        "/status/600": {"meta": {"handle_httpstatus_list": [600]}},
    }


class SpiderHandles(_Asks):
    name = "spider-handles-statuses"
    handle_httpstatus_list = [404, 500]
    custom_settings = {"RETRY_ENABLED": False}
    asks = {"/status/404": {}, "/status/500": {}, "/status/403": {}}


class AllowAll(_Asks):
    name = "all-statuses-allowed"
    custom_settings = {"HTTPERROR_ALLOW_ALL": True, "RETRY_HTTP_CODES": [], "HTTPERROR_ALLOWED_CODES": [404]}
    asks = {"/status/404": {}, "/status/500": {}, "/status/418": {}}


class Retries(_Asks):
    """Pages that fail at first, and one that fails for ever."""

    name = "retries"
    asks = {
        "/flaky/503/1/a": {},
        "/flaky/500/2/b": {},
        "/flaky/502/9/c": {},
        "/flaky/429/1/d": {},
        "/flaky/522/1/e": {},
    }


class NoRetries(_Asks):
    name = "retry-times-0"
    custom_settings = {"RETRY_TIMES": 0}
    asks = {"/flaky/503/1/a": {}, "/drop": {}}


class RetriesOff(_Asks):
    name = "retry-disabled"
    custom_settings = {"RETRY_ENABLED": False, "HTTPERROR_ALLOW_ALL": True}
    asks = {"/flaky/503/1/a": {}}


class MaxRetryTimes(_Asks):
    name = "max-retry-times"
    asks = {"/flaky/503/4/a": {"meta": {"max_retry_times": 4}}, "/flaky/503/2/b": {"meta": {"max_retry_times": 1}}}


class RetryFromCallback(LocalSpider):
    name = "get-retry-request"
    paths = ["/page/1", "/page/2"]

    def parse(self, response):
        again = get_retry_request(response.request, spider=self, reason="empty", max_retry_times=2)
        yield {"url": response.url, "times": response.meta.get("retry_times", 0), "given up": again is None}
        if again is not None:
            yield again


class RetryRedirected(_Asks):
    """A page behind a redirect that fails at first."""

    name = "retry-behind-a-redirect"
    asks = {"/redirect/302?to=/flaky/503/1/a": {}}


class Failures(LocalSpider):
    """Faults of a site, and the errors that errbacks are written for."""

    name = "failures"
    custom_settings = {"RETRY_ENABLED": False, "DOWNLOAD_TIMEOUT": 10, "DOWNLOAD_MAXSIZE": 5000}

    async def start(self):
        requests = {
            "http://no-such-host.invalid/": {},
            "http://localhost:1/": {},
            self.url("/slow/5"): {"download_timeout": 0.3},
            self.url("/drop"): {},
            self.url("/cut"): {},
            self.url("/big/9000"): {},
            self.url("/big/3000"): {"download_maxsize": 2000},
            self.url("/status/404"): {},
        }
        for url, meta in requests.items():
            yield scrapy.Request(url, errback=self.failed, meta=meta)


class FailuresRetried(LocalSpider):
    """Failures with retries as they are by default."""

    name = "failures-retried"
    custom_settings = {"RETRY_TIMES": 1, "DOWNLOAD_TIMEOUT": 0.5}
    #: Only what is slow is to be late, also on a loaded machine.
    paths = {"/drop": {"download_timeout": 60}, "/slow/3": {}}

    async def start(self):
        for path, meta in self.paths.items():
            yield scrapy.Request(self.url(path), errback=self.failed, meta=meta)


class DataLoss(_Asks):
    """A body that is shorter than its head says, allowed."""

    name = "data-loss-allowed"
    custom_settings = {"DOWNLOAD_FAIL_ON_DATALOSS": False, "RETRY_ENABLED": False}
    asks = {"/cut": {}}


class UnknownScheme(_Asks):
    name = "other-schemes"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self):
        from pathlib import Path

        Path("local.html").write_text("<h1>a file</h1>")
        yield scrapy.Request(Path("local.html").absolute().as_uri(), self.title, errback=self.failed)
        yield scrapy.Request("data:text/html,<h1>data</h1>", self.title, errback=self.failed)
        yield scrapy.Request("unknown://x/", self.title, errback=self.no_scheme)

    def title(self, response):
        yield {"title": response.css("h1::text").get(), "class": response_class(response)}

    def no_scheme(self, failure):
        self.note("errback", failure.type.__name__)

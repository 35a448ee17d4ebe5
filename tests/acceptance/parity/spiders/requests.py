"""Methods, headers, cookies, forms and URLs that are sent, and their responses."""

from __future__ import annotations

from urllib.parse import quote

import scrapy
from scrapy.http import FormRequest, JsonRequest

from tests.acceptance.parity.local import ONE_AT_A_TIME, LocalSpider, response_class


class Login(LocalSpider):
    """A login by a form, after which the start page is another."""

    name = "login"
    paths = ["/account"]

    def parse(self, response):
        title = response.css("h1::text").get()
        yield {"title": title}
        if title == "please log in":
            yield response.follow("/login", self.form)

    def form(self, response):
        yield FormRequest.from_response(response, formdata={"user": "me", "password": "secret"}, callback=self.entered)

    def entered(self, response):
        yield {"entered": response.css("h1::text").get(), "url": response.url}
        yield response.follow("/account", self.parse)


class LoginToStart(Login):
    """A login that goes on with the request of the start page."""

    name = "login-to-the-start-page"

    def entered(self, response):
        for url in self.start_urls:
            yield scrapy.Request(url, self.parse, dont_filter=True)


class LoginFirst(LocalSpider):
    """A login in start(), then the start URLs, by InitSpider's pattern."""

    name = "login-first"
    paths = ["/account", "/page/1"]

    async def start(self):
        data = {"user": "me", "password": "secret", "token": "t0"}
        yield FormRequest(self.url("/login"), formdata=data, callback=self.entered)

    def entered(self, response):
        for url in self.start_urls:
            yield scrapy.Request(url, self.parse)


class Cookies(LocalSpider):
    """Cookies that the site sets, also on a redirect, and those of the request."""

    name = "cookies"
    paths = ["/set-cookie?a=1&to=/cookies?first"]
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield response.follow("/cookies?second", self.title, cookies={"own": "x"})
        yield response.follow("/cookies?third", self.title, cookies=[{"name": "n", "value": "v", "path": "/cookies"}])
        yield response.follow("/cookies?fourth", self.title, meta={"dont_merge_cookies": True})
        yield response.follow("/cookies?fifth", self.title, headers={"Cookie": "by=header"})

    def title(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}


class OddCookies(LocalSpider):
    """Cookies with names and values that break the rules of HTTP."""

    name = "odd-cookies"
    paths = ["/set-cookie?cart%5B0%5D=1&a%20b=%22q%22&%C3%83%C2%A9=%C3%83%C2%BC&%7Bx%7D=a,b&to=/cookies?first"]
    custom_settings = ONE_AT_A_TIME

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield response.follow("/cookies?second", self.title, cookies={"[x]": "{y}", "(z)": "a b"})
        yield response.follow("/cookies?third", self.title, headers={"Cookie": "alone; a=1; a=2"})

    def title(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}


class CookieJars(LocalSpider):
    name = "cookie-jars"
    custom_settings = ONE_AT_A_TIME

    async def start(self):
        for jar in ("one", "two"):
            yield scrapy.Request(self.url(f"/set-cookie?jar={jar}"), meta={"cookiejar": jar}, callback=self.after)

    def after(self, response):
        jar = response.meta["cookiejar"]
        yield response.follow(f"/cookies?{jar}", self.title, meta={"cookiejar": jar})
        yield response.follow(f"/cookies?none-{jar}", self.title)

    def title(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}


class NoCookies(LocalSpider):
    name = "cookies-disabled"
    paths = ["/set-cookie?a=1&to=/cookies?first"]
    custom_settings = {"COOKIES_ENABLED": False}

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        yield response.follow("/cookies?second", self.title, cookies={"own": "x"})
        yield response.follow("/cookies?third", self.title, headers={"Cookie": "by=header"})

    def title(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}


class Methods(LocalSpider):
    name = "methods"

    async def start(self):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            body = b"" if method in ("GET", "OPTIONS") else b"caf\xc3\xa9"
            yield scrapy.Request(self.url("/echo"), method=method, body=body, headers={"Content-Type": "text/own"})
        yield scrapy.Request(self.url("/echo"), method="HEAD", callback=self.head)
        yield FormRequest(self.url("/echo?form"), formdata={"a": "1", "b": ["2", "3"]})
        yield FormRequest(self.url("/echo?get"), method="GET", formdata={"a": "\xe9"})
        yield JsonRequest(self.url("/echo?json"), data={"a": [1, None]})

    def parse(self, response):
        seen = response.json()
        yield {
            "target": seen["target"],
            "method": seen["method"],
            "body": seen["body"],
            "type": seen["headers"].get("content-type"),
        }

    def head(self, response):
        yield {"method": "HEAD", "length": len(response.body), "status": response.status}


class BinaryBody(LocalSpider):
    name = "binary-body"

    async def start(self):
        yield scrapy.Request(self.url("/echo"), method="POST", body=bytes(range(256)))

    def parse(self, response):
        yield {"length": len(response.json()["body"])}


class Headers(LocalSpider):
    """Headers that the spider sets, by request and by settings."""

    name = "headers"
    custom_settings = {
        "USER_AGENT": "own-agent/1.0",
        "DEFAULT_REQUEST_HEADERS": {"Accept-Language": "de", "X-Own": "default", "Accept": "text/own"},
    }

    async def start(self):
        yield scrapy.Request(self.url("/echo?default"))
        own = {
            "User-Agent": "request-agent",
            "X-Own": "request",
            "Accept-Language": "fr",
            "Referer": "http://a.example/",
        }
        yield scrapy.Request(self.url("/echo?own"), headers=own)

    def parse(self, response):
        yield {"of": response.url, "headers": response.json()["headers"]}


class NoHeaders(LocalSpider):
    """None means: send none."""

    name = "headers-none"

    async def start(self):
        yield scrapy.Request(self.url("/echo?both"), headers={"User-Agent": None, "Accept-Language": None})
        yield scrapy.Request(self.url("/echo?own"), headers={"X-Own": None, "Accept": None})

    def parse(self, response):
        shown = ("user-agent", "accept-language", "x-own")
        headers = response.json()["headers"]
        if "both" in response.url:
            yield {"both": {name: headers.get(name) for name in shown}}
        else:
            yield {"own": headers.get("x-own")}


class NoHeadersBySettings(NoHeaders):
    name = "headers-none-by-settings"
    custom_settings = {"USER_AGENT": None, "DEFAULT_REQUEST_HEADERS": {"Accept-Language": None, "Accept": "text/html"}}


class SpiderUserAgent(LocalSpider):
    """The attribute of the spider."""

    name = "spider-user-agent"
    user_agent = "spider-agent/2"
    paths = ["/echo"]

    def parse(self, response):
        yield {"agent": response.json()["headers"].get("user-agent")}


class Referers(LocalSpider):
    name = "referers"
    paths = ["/page/1"]
    custom_settings = {"REFERRER_POLICY": "scrapy-default"}

    def parse(self, response):
        yield response.follow("/echo", self.seen)
        yield response.follow("/echo?own", self.seen, headers={"Referer": "http://a.example/"})

    def seen(self, response):
        yield {"of": response.url, "referer": response.json()["headers"].get("referer")}


class DefaultReferers(Referers):
    name = "default-referers"
    custom_settings = {}


class HttpAuth(LocalSpider):
    name = "http-auth"
    http_user = "me"
    http_pass = "secret"
    http_auth_domain = None
    paths = ["/basic"]

    def parse(self, response):
        yield {"title": response.css("h1::text").get()}
        meta = {"http_user": "me", "http_pass": "wrong", "handle_httpstatus_all": True}
        yield response.follow("/basic?wrong", self.wrong, meta=meta)

    def wrong(self, response):
        yield {"status": response.status, "challenge": response.headers.get("WWW-Authenticate").decode()}


class NonAscii(LocalSpider):
    name = "non-ascii-urls"
    paths = ["/h\xe9h\xe9"]

    def parse(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}
        paths = (
            "/echo?q=caf\xe9",
            "/echo?q=a b",
            "/echo?q=a+b%20c",
            "/echo?q=%e9",
            "/echo?q=[1]|{2}",
            f"/echo?q={quote('/')}",
            "/echo?q=a%2Fb&;=",
            "/echo//x/../y",
            "/echo?",
            "/echo?q=\u6f22",
        )
        for path in paths:
            yield response.follow(path, self.seen)

    def seen(self, response):
        yield {"url": response.url, "target": response.json()["target"]}


class Follow(LocalSpider):
    name = "follow-all"
    paths = ["/page/3"]

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.page, cb_kwargs={"by": "css"})
        yield from response.follow_all(xpath="//a[1]", callback=self.page, cb_kwargs={"by": "xpath"}, dont_filter=True)
        yield from response.follow_all(["7", "../page/8", "//" + response.url.split("/")[2] + "/page/9"], self.page)

    def page(self, response, by="list"):
        yield {"by": by, "url": response.url}


class Classes(LocalSpider):
    """Response classes, encodings, headers."""

    name = "response-classes"
    paths = [
        "/page/1",
        "/latin1",
        "/gzip",
        "/gzip-cut",
        "/identity",
        "/unknown-coding",
        "/no-colon",
        "/two-lengths",
        "/longer",
        "/connection",
        "/json",
        "/picture",
        "/file/x",
        "/catalogue.xml",
        "/catalogue.csv",
        "/empty",
        "/two-headers",
        "/robots.txt",
    ]

    def parse(self, response):
        yield {
            "url": response.url,
            "class": response_class(response),
            "encoding": getattr(response, "encoding", None),
            "length": len(response.body),
            "text": getattr(response, "text", "")[:40],
            "type": response.headers.get("Content-Type").decode(),
            "two": [value.decode() for value in response.headers.getlist("X-Two")],
            "packed": response.headers.get("Content-Encoding"),
            "headers": sorted(response.headers),
        }


class NoCompression(LocalSpider):
    name = "compression-disabled"
    paths = ["/gzip"]
    custom_settings = {"COMPRESSION_ENABLED": False}

    def parse(self, response):
        yield {"class": response_class(response), "magic": response.body[:2].hex()}


class Robots(LocalSpider):
    name = "robots-txt"
    paths = ["/page/1", "/private/x"]
    custom_settings = {"ROBOTSTXT_OBEY": True}

    async def start(self):
        for url in self.start_urls:
            yield scrapy.Request(url, errback=self.failed)


class Attributes(LocalSpider):
    """Attributes of a response and its request."""

    name = "response-attributes"
    paths = ["/page/1"]

    def parse(self, response):
        yield response.follow("/page/2", self.part, flags=["own"], cb_kwargs={"a": 1}, priority=3, meta={"b": 2})

    def part(self, response, a):
        yield {
            "flags": response.request.flags,
            "meta": sorted(key for key in response.meta if not key.startswith("_")),
            "cb_kwargs": response.cb_kwargs,
            "latency": response.meta["download_latency"] > 0,
            "priority": response.request.priority,
            "callback": response.request.callback.__name__,
            "protocol": response.protocol,
            "address": str(response.ip_address),
            "slot": response.meta.get("download_slot"),
            "repr": repr(response).partition(":")[0],
            "attributes": response.attributes,
        }


class Slots(LocalSpider):
    """Looks up the downloader's slot of a response, as recipes for another delay do."""

    name = "downloader-slots"
    paths = ["/page/1"]
    custom_settings = {"DOWNLOAD_DELAY": 0.1, "DOWNLOAD_SLOTS": {"own": {"concurrency": 3, "delay": 0.2}}}

    def parse(self, response):
        slot = self.crawler.engine.downloader.slots[response.meta["download_slot"]]
        yield {"delay": slot.delay, "concurrency": slot.concurrency}
        slot.delay = 0.05
        yield response.follow("/page/2", self.parse, meta={"download_slot": "own"})

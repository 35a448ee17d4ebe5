"""The same spiders with scrapy-zyte-api or with this package: run as a program.

``python -m tests.acceptance.conformance.both SIDE SITE API OUT``

They are written with the names of scrapy-zyte-api. On the side ``ours`` each name is replaced by the one that the
how-to has beside it, and of the tables of expressions each side evaluates its own column. All crawls of a side run in
one process, one after the other; what they led to is written to OUT as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import scrapy
from itemadapter import ItemAdapter
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Response
from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor
from scrapy_poet import DummyResponse
from scrapy_zyte_api import Actions, ExtractFrom, Geolocation, actions, custom_attrs
from scrapy_zyte_api import Screenshot as TheirScreenshot
from web_poet import AnyResponse, BrowserHtml, BrowserResponse, HttpResponse
from zyte_api import RequestError, RetryFactory, stop_on_download_error
from zyte_common_items import Article, CustomAttributes, Item, Product

from scrapy_ext.client.extraction import ExtractError
from scrapy_ext.crawl.session.zyte_api_names import META, SETTINGS, equivalent
from scrapy_ext.poet.provider import Screenshot as OurScreenshot
from tests.support.docs_tables import tables_of

SIDE: Final = sys.argv[1] if len(sys.argv) > 1 else "theirs"
OURS: Final = SIDE == "ours"
CLICK: Final = {"action": "click", "selector": {"type": "css", "value": "button"}}
COLOUR: Final = {"sku": {"type": "string", "description": "its number"}}
BY_HTTP: Final = {"extractFrom": "httpResponseBody"}
#: What the expressions of the how-to name.
NAMES: Final = {"b64decode": b64decode, "ExtractError": ExtractError, "Product": Product, "RequestError": RequestError}
HOWTO: Final = tables_of("howto/from-scrapy-zyte-api.rst")
Screenshot: Any = OurScreenshot if OURS else TheirScreenshot


class _OneAttempt(RetryFactory):
    download_error_stop = stop_on_download_error(max_total=1, max_permanent=1)


ONE_ATTEMPT = _OneAttempt().build()
#: The same, as either package takes it.
POLICY: Final[Any] = {"/download/temporary-error": 1} if OURS else "tests.acceptance.conformance.both.ONE_ATTEMPT"


def evaluated(title: str, **names: Any) -> dict[str, Any]:
    """The rows of a table of the how-to, each by its first cell, with the value of this side's expression."""
    found: dict[str, Any] = {}
    for row in HOWTO[title]:
        theirs, ours = row[0].strip("`"), row[1].strip("`")
        if row[1].startswith("``"):
            try:
                found[theirs] = plain(eval(ours if OURS else theirs, {**NAMES, **names}))
            except (AttributeError, KeyError, TypeError, IndexError) as error:
                found[theirs] = repr(error)
    return found


def plain(value: Any) -> Any:
    """A value that JSON can hold, without what differs from one run to the next."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, Item):
        return plain(ItemAdapter(value).asdict())
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if name not in ("elapsedTime", "metadata")}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


def meta(**theirs: Any) -> dict[str, Any]:
    """Request meta, by the names of scrapy-zyte-api."""
    if not OURS:
        return theirs
    ours = {equivalent(name, META).ours: value for name, value in theirs.items()}
    return {**ours, "extract_api_automap": False} if "zyte_api" in theirs else ours


def settings(**theirs: Any) -> dict[str, Any]:
    """Settings, by the names of scrapy-zyte-api."""
    if not OURS:
        return theirs
    return {equivalent(name, SETTINGS).ours: value for name, value in theirs.items()}


class Handler(HTTP11DownloadHandler):
    """A download handler of the user's."""

    async def download_request(self, request: scrapy.Request) -> Response:
        response = await super().download_request(request)
        return response.replace(flags=["by the user's handler"])


class Fingerprinter:
    """A fingerprinter that distinguishes requests by their path alone."""

    def fingerprint(self, request: scrapy.Request) -> bytes:
        return request.url.partition("?")[0].encode()


class _Spider(scrapy.Spider):
    name = "both"
    site = ""

    def ask(self, path: str, callback: Any = None, *, method: str = "GET", body: bytes = b"", **more: Any) -> Any:
        url = path if path.startswith("http") else self.site + path
        return scrapy.Request(
            url, callback or self.parse, method, body=body, errback=self.failed, dont_filter="#" not in path, **more
        )

    def parse(self, response: Any) -> Iterator[dict[str, Any]]:
        yield {
            "url": response.url,
            "status": response.status,
            "body": response.body.decode("latin-1"),
            "content type": response.headers.get("Content-Type", b"").decode(),
            "flags": [flag for flag in response.flags if flag not in ("extract-api", "zyte-api")],
        }

    def table(self, response: Any) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, **evaluated("Responses", response=response)}

    def failed(self, failure: Any) -> Iterator[dict[str, Any]]:
        broken = [each.field for each in getattr(failure.value, "violations", ())]
        error = {"names": [each.__name__ for each in type(failure.value).__mro__], "broken": broken}
        yield {"url": failure.request.url, "error": error, **evaluated("Errors", failure=failure)}


class Requests(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        yield self.ask("/?plain")
        # Its cookie is left alone: only here are cookies kept and sent without a setting.
        yield self.ask("/echo", method="POST", body=b"tea", meta={"dont_merge_cookies": True})
        yield self.ask("/?headers", headers={"X-A": "1", "Accept-Language": "de"})
        yield self.ask("/not-there")
        yield self.ask("/?on", meta=meta(zyte_api_automap=True))
        yield self.ask("/?off", meta=meta(zyte_api_automap=False))
        yield self.ask("/?fields", meta=meta(zyte_api_automap={"geolocation": None, "tags": {"of": "request"}}))
        yield self.ask("/?without", meta=meta(zyte_api_automap={"tags": None}))
        yield self.ask("/?manual", meta=meta(zyte_api={"httpResponseBody": True, "tags": {"of": "manual"}}))
        headers_alone = {"httpResponseHeaders": True, "httpResponseBody": False}
        yield self.ask("/?headers-alone", meta=meta(zyte_api_automap=headers_alone))
        fields = {"browserHtml": True, "screenshot": True, "actions": [CLICK]}
        referer = {"Referer": "http://a.example/"}
        yield self.ask("/script?browser", self.table, meta=meta(zyte_api_automap=fields), headers=referer)
        yield self.ask("/product?by-http", self.table, meta=meta(zyte_api_automap={"product": True, **BY_HTTP}))
        options = {"product": True, "productOptions": BY_HTTP}
        yield self.ask("/product?options", self.table, meta=meta(zyte_api_automap=options))
        yield self.ask("/?banned", meta=meta(zyte_api_retry_policy=POLICY))
        yield self.ask("http://nowhere.invalid/")
        yield self.ask("/?rules", meta=meta(zyte_api_automap={"browserHtml": True, "httpResponseBody": True}))


class PageObjects(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        yield self.ask("/product?product", self.product)
        yield self.ask("/article?article", self.article)
        yield self.ask("/script?html", self.html)
        yield self.ask("/script?browser-response", self.browser)
        yield self.ask("/?http-response", self.http)
        yield self.ask("/?any", self.any)
        yield self.ask("/script?shot", self.shot)
        yield self.ask("/product?meta", self.product, meta=meta(zyte_api_provider={"productOptions": BY_HTTP}))
        if OURS:
            yield self.ask("/script?actions", self.acted, meta={"extract_api": {"actions": [CLICK]}})
            yield self.ask("/product?extract-from", self.product, meta={"extract_api": BY_HTTP})
            yield self.ask("/?geolocation", self.located, meta={"extract_api": {"geolocation": "DE"}})
            yield self.ask("/product?attributes", self.attributes, meta={"extract_api": {"customAttributes": COLOUR}})
        else:
            yield self.ask("/script?actions", self.acted_theirs)
            yield self.ask("/product?extract-from", self.extract_from_theirs)
            yield self.ask("/?geolocation", self.located_theirs)
            yield self.ask("/product?attributes", self.attributes_theirs)

    def product(self, response: DummyResponse, product: Product) -> Iterator[Any]:
        yield {"url": response.url, "name": product.name, "price": product.price}

    def article(self, response: DummyResponse, article: Article) -> Iterator[Any]:
        yield {"url": response.url, "headline": article.headline}

    def html(self, response: DummyResponse, html: BrowserHtml) -> Iterator[Any]:
        yield {"url": response.url, "after": "after" in html}

    def browser(self, response: DummyResponse, page: BrowserResponse) -> Iterator[Any]:
        yield {"url": response.url, "status": page.status, "after": page.css("h1::text").get()}

    def http(self, response: DummyResponse, page: HttpResponse) -> Iterator[Any]:
        yield {"url": response.url, "status": page.status, "title": page.css("h1::text").get()}

    def any(self, response: DummyResponse, page: AnyResponse) -> Iterator[Any]:
        yield {"url": response.url, "title": page.css("h1::text").get()}

    def shot(self, response: DummyResponse, shot: Screenshot) -> Iterator[Any]:  # type: ignore[valid-type]
        yield {"url": response.url, "shot": (shot if OURS else shot.body)[:2].hex()}  # type: ignore[attr-defined,index]

    def acted(self, response: Any, page: BrowserResponse) -> Iterator[Any]:
        done = [action["status"] for action in response.extract_result["actions"]]
        yield {"url": response.url, "button": page.css("button::text").get(), "actions": done}

    def acted_theirs(
        self, response: DummyResponse, page: BrowserResponse, acted: Annotated[Actions, actions([CLICK])]
    ) -> Iterator[Any]:
        done = [action["status"] for action in acted.results or ()]
        yield {"url": response.url, "button": page.css("button::text").get(), "actions": done}

    def extract_from_theirs(
        self, response: DummyResponse, product: Annotated[Product, ExtractFrom.httpResponseBody]
    ) -> Iterator[Any]:
        yield {"url": response.url, "name": product.name, "price": product.price}

    def located(self, response: DummyResponse, page: BrowserResponse) -> None:
        """Not reached: the server of the test has no proxies."""

    def located_theirs(
        self, response: DummyResponse, page: BrowserResponse, geolocation: Annotated[Geolocation, "DE"]
    ) -> None:
        """Likewise."""

    def attributes(self, response: Any, product: Product) -> Iterator[Any]:
        yield {"url": response.url, "values": response.extract_result["customAttributes"]["values"]}

    def attributes_theirs(
        self,
        response: DummyResponse,
        product: Product,
        found: Annotated[CustomAttributes, custom_attrs(COLOUR)],
    ) -> Iterator[Any]:
        yield {"url": response.url, "values": found.values}


class Mixed(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        yield self.ask("/?nothing-said")
        yield self.ask("/?on", meta=meta(zyte_api_automap=True))
        yield self.ask("/?manual", meta=meta(zyte_api={"httpResponseBody": True}))


class Many(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        for number in range(5):
            yield self.ask(f"/?{number}")


class Direct(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        for number in range(2):
            yield self.ask(f"/?{number}#", meta=meta(zyte_api_automap=False))


class Cookies(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        yield self.ask("/?cookies", cookies={"a": "1"})


class Banned(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        yield self.ask("/?banned")


class Linked(_Spider):
    async def start(self) -> AsyncIterator[Any]:
        yield self.ask("/?first", self.follow)

    def follow(self, response: Any) -> Iterator[Any]:
        yield response.follow("/?second", self.parse)


#: Spider and settings of each crawl.
CRAWLS: Final[dict[str, tuple[type[_Spider], dict[str, Any]]]] = {
    "requests": (Requests, settings(ZYTE_API_AUTOMAP_PARAMS={"tags": {"of": "settings"}}, ZYTE_API_LOG_REQUESTS=True)),
    "page objects": (PageObjects, {}),
    "provider": (PageObjects, settings(ZYTE_API_PROVIDER_PARAMS={"tags": {"of": "provider"}})),
    "off": (Many, settings(ZYTE_API_ENABLED=False)),
    "asked": (Mixed, settings(ZYTE_API_TRANSPARENT_MODE=False)),
    "budget": (Many, settings(ZYTE_API_MAX_REQUESTS=2) | {"CONCURRENT_REQUESTS": 1}),
    "wrong key": (Many, settings(ZYTE_API_KEY="wrong") | {"CONCURRENT_REQUESTS": 1}),
    "suspended": (Many, {"CONCURRENT_REQUESTS": 1}),
    "cookies": (Cookies, settings(ZYTE_API_EXPERIMENTAL_COOKIES_ENABLED=True)),
    "policy": (Banned, settings(ZYTE_API_RETRY_POLICY=POLICY)),
    "referrer": (Linked, settings(ZYTE_API_REFERRER_POLICY="origin")),
    "direct": (
        Direct,
        {"DOWNLOAD_HANDLERS": {"http": Handler}, "REQUEST_FINGERPRINTER_CLASS": Fingerprinter}
        if OURS
        else settings(
            ZYTE_API_FALLBACK_HTTP_HANDLER=Handler,
            ZYTE_API_FALLBACK_HTTPS_HANDLER=Handler,
            ZYTE_API_FALLBACK_REQUEST_FINGERPRINTER_CLASS=Fingerprinter,
        ),
    ),
}
BASE: Final[dict[str, Any]] = {
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "HTTPERROR_ALLOW_ALL": True,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "DEBUG",
}
ADDONS: Final[dict[str, Any]] = (
    {"scrapy_ext.Addon": 500, "scrapy_poet.Addon": 600}
    if OURS
    else {"scrapy_poet.Addon": 300, "scrapy_zyte_api.Addon": 500}
)


class _Sent(logging.Handler):
    """Counter of the log lines about requests to the service."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("scrapy_ext" if OURS else "scrapy_zyte_api") and record.levelno == logging.DEBUG:
            self.lines.append(record.getMessage())


def _collecting(items: list[Any]) -> Any:
    def collect(item: Any) -> None:
        items.append(item)

    return collect


async def crawled(process: Any, name: str, site: str, api: str, key: str) -> dict[str, Any]:
    spider, own = CRAWLS[name]
    given = {**settings(ZYTE_API_URL=f"{api}/{SIDE}/{name.replace(' ', '-')}/v1/", ZYTE_API_KEY=key), **own}
    if OURS:
        given |= {"PLATFORM_ENABLED": False, "FRONTIER_ENABLED": False}
    members = {"custom_settings": {**BASE, "ADDONS": ADDONS, **given}, "site": site}
    crawler = process.create_crawler(type("Run", (spider,), members))
    items: list[Any] = []
    crawler.signals.connect(_collecting(items), signal=scrapy.signals.item_scraped, weak=False)
    log = _Sent()
    logging.getLogger().addHandler(log)
    await process.crawl(crawler)
    logging.getLogger().removeHandler(log)
    stats = {name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, int | float | str)}
    return {"items": items, "stats": stats, "log": log.lines}


async def main(site: str, api: str, out: str, key: str) -> None:
    runner = AsyncCrawlerRunner()
    found = {name: await crawled(runner, name, site, api, key) for name in CRAWLS}
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor

    configure_logging(BASE)

    def begin() -> None:
        task = asyncio.ensure_future(main(*sys.argv[2:5], os.environ["SERVICE_KEY"]))
        task.add_done_callback(lambda done: (reactor.stop(), done.result()))  # type: ignore[attr-defined]

    reactor.callWhenRunning(begin)  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]

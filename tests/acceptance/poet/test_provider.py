"""Page objects and callbacks get what they depend on through the extraction service: with scrapy-poet, in real
crawls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import Settings
from scrapy_poet import Addon as PoetAddon
from scrapy_poet import DummyResponse, ScrapyPoetRequestFingerprinter, callback_for
from scrapy_poet.downloadermiddlewares import DEFAULT_PROVIDERS
from scrapy_poet.injection import get_injector_for_testing
from web_poet import AnyResponse, BrowserHtml, BrowserResponse, HttpResponse, PageParams, RequestUrl
from web_poet.serialization import deserialize_leaf, serialize_leaf
from zyte_common_items import Article, AutoProductPage, Product, ProductList, Serp

from scrapy_ext.addon import Addon
from scrapy_ext.api.extraction import EXTENSIONS, check
from scrapy_ext.client.extraction.errors import UnexpectedAnswerError
from scrapy_ext.crawl.extraction.content import content_of, need
from scrapy_ext.crawl.extraction.fingerprint import ExtractRequestFingerprinter
from scrapy_ext.crawl.extraction.response import to_response
from scrapy_ext.poet.middleware import PoetMiddleware, set_lookup
from scrapy_ext.poet.provider import ExtractProvider, LeftOutError, Screenshot
from tests.support.crawlers import get_crawler
from tests.support.crawls import Crawl, Project
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Answer, ListeningSite

SPIDERS = '''
import attrs
import scrapy
from scrapy_poet import DummyResponse, callback_for
from web_poet import AnyResponse, BrowserHtml, BrowserResponse, HttpResponse, Injectable, WebPage, field
from zyte_common_items import Article, AutoProductPage, Product

from scrapy_ext.poet.provider import Screenshot

@attrs.define
class Both(Injectable):
    browser: BrowserResponse
    product: Product


class Title(WebPage):
    @field
    def title(self):
        return self.css("h1::text").get()


def rendered(selectable):
    return selectable.css("#made::text").get()


class Needs(scrapy.Spider):
    """A path for each callback."""
    name = "needs"

    async def start(self):
        for name, meta in (
            ("html", {}), ("both", {}), ("used", {}), ("over_http", {}), ("http_and_browser", {}), ("any_alone", {}),
            ("any_with_product", {}), ("shot", {}), ("two_kinds", {}), ("direct", {"extract_api": False}),
            ("from_http", {"extract_api": {"extractFrom": "httpResponseBody"}}), ("posted", {}), ("auto", {}),
            ("item", {}), ("nothing", {}), ("title", {}), ("doubtful", {"extract_api": {"minProbability": 1}}),
        ):
            yield scrapy.Request(
                f"{self.site}/{name}", getattr(self, name), errback=self.failed, meta=meta,
                method="POST" if name == "posted" else "GET",
            )
        yield scrapy.Request(f"{self.site}/html", self.nothing)

    def failed(self, failure):
        yield {"path": failure.request.url, "error": str(failure.value)}

    def html(self, response: DummyResponse, html: BrowserHtml):
        yield {"path": response.url, "rendered": rendered(html)}

    def both(self, response: DummyResponse, page: Both):
        yield {
            "path": str(page.browser.url), "status": page.browser.status, "rendered": rendered(page.browser),
            "product": page.product.name,
        }

    def used(self, response, product: Product):
        yield {"path": response.url, "rendered": rendered(response), "product": product.name}

    def over_http(self, response: DummyResponse, page: HttpResponse, product: Product):
        yield {"path": response.url, "rendered": rendered(page), "product": product.name, "status": page.status}

    def http_and_browser(self, response: DummyResponse, page: HttpResponse, html: BrowserHtml):
        yield {"path": response.url, "http": rendered(page), "browser": rendered(html)}

    def any_alone(self, response: DummyResponse, page: AnyResponse):
        yield {"path": response.url, "kind": type(page.response).__name__, "title": page.css("h1::text").get()}

    def any_with_product(self, response: DummyResponse, page: AnyResponse, product: Product):
        yield {"path": response.url, "kind": type(page.response).__name__, "rendered": rendered(page)}

    def shot(self, response: DummyResponse, shot: Screenshot):
        yield {"path": response.url, "jpeg": shot[:3] == bytes([255, 216, 255])}

    def two_kinds(self, response: DummyResponse, product: Product, article: Article):
        yield {"path": response.url}

    def direct(self, response, html: BrowserHtml):
        yield {"path": response.url, "flags": response.flags, "http": rendered(response), "browser": rendered(html)}

    def from_http(self, response: DummyResponse, product: Product, page: AnyResponse):
        yield {"path": response.url, "product": product.name, "kind": type(page.response).__name__}

    def posted(self, response: DummyResponse, html: BrowserHtml):
        yield {"path": response.url}

    def doubtful(self, response: DummyResponse, product: Product):
        yield {"path": response.url, "product": product.name}

    async def auto(self, response: DummyResponse, page: AutoProductPage):
        yield {"path": response.url, "product": (await page.to_item()).name}

    def nothing(self, response):
        yield {"path": response.url, "callback": "nothing", "flags": response.flags, "rendered": rendered(response)}

    title = callback_for(Title)
    item = callback_for(Product)


class Apart(Needs):
    """Those that take two requests."""
    name = "apart"

    async def start(self):
        yield scrapy.Request(f"{self.site}/http_and_browser", self.http_and_browser)
        yield scrapy.Request(f"{self.site}/direct", self.direct, meta={"extract_api": False})


class Untransparent(scrapy.Spider):
    name = "untransparent"
    custom_settings = {"EXTRACT_API_TRANSPARENT_MODE": False}

    async def start(self):
        yield scrapy.Request(f"{self.site}/plain", self.plain)
        yield scrapy.Request(f"{self.site}/needed", self.needed)

    def plain(self, response):
        yield {"path": response.url, "flags": response.flags}

    def needed(self, response, product: Product):
        yield {"path": response.url, "flags": response.flags, "product": product.name}


class Off(Untransparent):
    """As in a project that names the provider, and switched the extraction API off."""
    name = "off"
    custom_settings = {
        "EXTRACT_API_ENABLED": False,
        "SCRAPY_POET_PROVIDERS": {"scrapy_ext.poet.provider.ExtractProvider": 1100},
    }

    async def start(self):
        yield scrapy.Request(f"{self.site}/off", self.needed, errback=self.failed)

    def failed(self, failure):
        yield {"path": failure.request.url, "error": str(failure.value)}
'''

PAGE = """<!doctype html><html><head><title>A lamp</title>
<script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Product", "name": "A lamp", "sku": "7",
 "offers": {"@type": "Offer", "price": "10.00", "priceCurrency": "EUR"}}
</script></head>
<body><h1>A lamp</h1><p id="made">sent</p><script>document.getElementById("made").textContent = "made"</script></body>
</html>"""


class Shop(ListeningSite):
    """Any path is a product, with something that a browser makes of it."""

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        if path == "/favicon.ico":
            return Answer(404)
        return Answer(200, PAGE.encode())


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory, shop: Shop) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("data"), allow_hosts=[f"localhost:{shop.port}"]) as running:
        yield running


@pytest.fixture(scope="module")
def project(tmp_path_factory, service: RunningServer) -> Project:
    settings = f"""
EXTRACT_API_URL = "{service.url}/v1"
EXTRACT_API_KEY = "{service.extract_key}"
PLATFORM_ENABLED = FRONTIER_ENABLED = ROBOTSTXT_OBEY = False
HTTPCACHE_ENABLED = True
ADDONS["scrapy_poet.Addon"] = 600
"""
    return Project(tmp_path_factory.mktemp("project") / "poet", SPIDERS, settings)


def run(project: Project, spider: str, shop: Shop, *arguments: str) -> tuple[Crawl, list[dict]]:
    crawl = project.crawl(spider, "-a", f"site=http://localhost:{shop.port}", "-O", "items.jsonl", *arguments)
    assert crawl.returncode == 0, crawl.log[-3000:]
    lines = (project.folder / "items.jsonl").read_text().splitlines()
    return crawl, [json.loads(line) for line in lines]


class Crawled:
    """Items of a crawl, and its requests to the site."""

    def __init__(self, project: Project, shop: Shop, spider: str, *arguments: str) -> None:
        before = shop.hits.copy()
        self.crawl, self.items = run(project, spider, shop, *arguments)
        self.hits = shop.hits - before

    def of(self, path: str) -> list[dict]:
        """The items of a path, without it."""
        found = [item for item in self.items if item.get("path", "").endswith(f"/{path}")]
        return [{name: value for name, value in item.items() if name != "path"} for item in found]


@pytest.fixture(scope="module")
def needs(project: Project, shop: Shop) -> Crawled:
    return Crawled(project, shop, "needs")


# ── one request for everything ──


@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("html", {"rendered": "made"}),
        ("both", {"status": 200, "rendered": "made", "product": "A lamp"}),
        ("used", {"rendered": "made", "product": "A lamp"}),
        ("over_http", {"rendered": "sent", "product": "A lamp", "status": 200}),
        ("any_alone", {"kind": "HttpResponse", "title": "A lamp"}),
        ("any_with_product", {"kind": "BrowserResponse", "rendered": "made"}),
        ("shot", {"jpeg": True}),
        ("from_http", {"product": "A lamp", "kind": "HttpResponse"}),
        ("auto", {"product": "A lamp"}),
    ],
)
def test_what_is_needed_comes_with_the_response_of_one_request(needs, path, item):
    assert item in needs.of(path)
    expected = 2 if path == "html" else 1  # that one is also crawled for another callback
    assert needs.hits[f"/{path}"] == expected


def test_callbacks_made_for_items_and_pages_work(needs):
    assert [item["price"] for item in needs.items if item.get("url", "").endswith("/item")] == ["10.00"]
    assert needs.hits["/item"] == 1
    assert {"title": "A lamp"} in needs.items
    assert needs.hits["/title"] == 1


def test_a_page_wanted_over_http_and_in_a_browser_takes_two_requests(needs):
    assert needs.of("http_and_browser") == [{"http": "sent", "browser": "made"}]
    assert needs.hits["/http_and_browser"] == 2


def test_a_request_that_goes_direct_stays_direct_and_what_is_needed_comes_apart(needs):
    assert needs.of("direct") == [{"flags": [], "http": "sent", "browser": "made"}]
    assert needs.hits["/direct"] == 2


def test_a_callback_without_needs_gets_the_plain_page_also_of_an_address_that_another_had(needs):
    plain = {"callback": "nothing", "flags": ["extract-api"], "rendered": "sent"}
    assert needs.of("nothing") == [plain]
    assert plain in needs.of("html")


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("two_kinds", "product: cannot be combined with article. Request one kind"),
        ("posted", "httpRequestMethod: is valid only together with httpResponseBody"),
    ],
)
def test_needs_that_break_a_rule_reach_the_errback_and_nothing_is_sent(needs, path, rule):
    (item,) = needs.of(path)
    assert rule in item["error"]
    assert needs.hits[f"/{path}"] == 0


def test_an_item_that_is_left_out_reaches_the_errback_and_is_no_error(needs):
    (item,) = needs.of("doubtful")
    assert "Product of http" in item["error"]
    assert item["error"].endswith("/doubtful is left out: its probability is below minProbability")
    assert needs.hits["/doubtful"] == 1
    assert needs.crawl.stat("extract_api/left_out/items") == 1


def test_the_crawl_makes_no_more_requests_than_that_and_has_no_errors(needs):
    assert needs.crawl.errors == []
    # 18 of the spider, and the two that are made apart.
    assert needs.crawl.stat("downloader/request_count") == 20
    assert needs.crawl.stat("scrapy_poet/dummy_response_count") == 0


@pytest.mark.long
@pytest.mark.scrapy(oldest="2.19", why="the HTTP cache stores a response's own attributes")
def test_a_second_crawl_gets_everything_from_the_http_cache(project, shop, needs):
    again = Crawled(project, shop, "needs")
    assert again.hits.total() == 0

    def known(items: list[dict]) -> list[str]:
        kept = ({name: value for name, value in item.items() if name not in ("flags", "metadata")} for item in items)
        return sorted(json.dumps(item, sort_keys=True) for item in kept)

    assert known(again.items) == known(needs.items)


@pytest.mark.long
def test_a_request_made_apart_waits_for_no_place_that_its_page_holds(project, shop):
    one_at_a_time = ("-s", "CONCURRENT_REQUESTS=1", "-s", "HTTPCACHE_ENABLED=False")
    crawled = Crawled(project, shop, "apart", *one_at_a_time)
    assert crawled.of("http_and_browser") == [{"http": "sent", "browser": "made"}]
    assert crawled.of("direct") == [{"flags": [], "http": "sent", "browser": "made"}]


@pytest.mark.long
def test_without_transparent_mode_only_what_is_needed_goes_through_the_service(project, shop):
    crawled = Crawled(project, shop, "untransparent")
    assert crawled.of("plain") == [{"flags": []}]
    assert crawled.of("needed") == [{"flags": ["extract-api"], "product": "A lamp"}]
    assert crawled.hits["/needed"] == 1


@pytest.mark.long
def test_with_the_extraction_api_off_the_error_says_what_to_enable(project, shop):
    (item,) = Crawled(project, shop, "off").of("off")
    assert "Product of http://localhost" in item["error"]
    assert "Enable scrapy_ext.downloadermiddlewares.ExtractMiddleware" in item["error"]


# ── which fields are needed ──


def needs_nothing(response: DummyResponse, params: PageParams, url: RequestUrl): ...
def needs_page(response: DummyResponse, page: HttpResponse): ...
def needs_any(response: DummyResponse, page: AnyResponse): ...
def needs_html(response: DummyResponse, html: BrowserHtml): ...
def needs_browser(response: DummyResponse, browser: BrowserResponse, html: BrowserHtml): ...
def needs_shot(response: DummyResponse, shot: Screenshot): ...
def needs_item(response: DummyResponse, product: Product): ...
def needs_item_and_page(response: DummyResponse, product: Product, page: HttpResponse): ...
def needs_item_and_any(response: DummyResponse, product: Product, page: AnyResponse): ...
def needs_html_and_page(response: DummyResponse, html: BrowserHtml, page: HttpResponse): ...
def needs_all(response: DummyResponse, item: Article, html: BrowserHtml, shot: Screenshot, page: AnyResponse): ...
def needs_kinds(response: DummyResponse, product: Product, products: ProductList): ...
def needs_serp(response: DummyResponse, serp: Serp): ...
def needs_auto(response: DummyResponse, page: AutoProductPage): ...
def uses_item(response, product: Product): ...
def uses_shot(response, shot: Screenshot): ...
def uses_serp(response, serp: Serp): ...
def uses_only(response): ...


OPTIONS = {"productOptions": {"extractFrom": "httpResponseBody"}}
BY_HTTP = {"product": True, "httpResponseBody": True, "extractFrom": "httpResponseBody"}


def fields_for(callback, asked=None, params=None) -> dict:
    settings = {"EXTRACT_API_PARAMS": params or {}}
    *_, provider = get_injector_for_testing({**DEFAULT_PROVIDERS, ExtractProvider: 1100}, settings).providers
    meta = {} if asked is None else {"extract_api": asked}
    return provider.fields_for(Request("https://shop.example/", callback, meta=meta))


@pytest.mark.parametrize(
    ("callback", "fields"),
    [
        (needs_nothing, {}),
        (needs_page, {}),
        (needs_any, {}),
        (needs_html, {"browserHtml": True}),
        (needs_browser, {"browserHtml": True}),
        (needs_shot, {"screenshot": True}),
        (needs_item, {"product": True}),
        (needs_auto, {"product": True}),
        (callback_for(Product), {"product": True}),
        (needs_item_and_page, BY_HTTP),
        (needs_item_and_any, {"product": True, "browserHtml": True}),
        (needs_html_and_page, {}),
        (needs_all, {"article": True, "browserHtml": True, "screenshot": True}),
        (needs_kinds, {"product": True, "productList": True}),
        (needs_serp, {"serp": True}),
        (uses_item, {"product": True, "browserHtml": True}),
        (uses_shot, {"screenshot": True, "browserHtml": True}),
        (uses_serp, {"serp": True}),
        (uses_only, {}),
    ],
)
def test_the_fields_are_those_of_the_dependencies(callback, fields):
    assert fields_for(callback) == fields


@pytest.mark.parametrize(
    ("callback", "asked", "params", "fields"),
    [
        (needs_item, {"extractFrom": "httpResponseBody"}, {}, {"product": True}),
        (needs_item_and_any, {"extractFrom": "httpResponseBody"}, {}, {"product": True, "httpResponseBody": True}),
        (needs_item_and_any, {}, {"extractFrom": "httpResponseBody"}, {"product": True, "httpResponseBody": True}),
        (needs_item_and_any, OPTIONS, {}, {"product": True, "httpResponseBody": True}),
        (needs_item_and_page, OPTIONS, {}, {"product": True, "httpResponseBody": True}),
        (needs_item, {"httpResponseBody": True}, {}, BY_HTTP),
        (needs_html, {"httpResponseBody": True}, {}, {}),
        (needs_html, {}, {"httpResponseBody": True}, {"browserHtml": True, "httpResponseBody": None}),
        (needs_html, False, {}, {}),
        (needs_html, True, {}, {"browserHtml": True}),
        (needs_item_and_page, {"extractFrom": "browserHtml"}, {}, {"product": True, "httpResponseBody": True}),
    ],
)
def test_what_the_request_and_the_settings_say_counts(callback, asked, params, fields):
    assert fields_for(callback, asked, params) == fields


async def test_an_answer_without_what_was_asked_for_is_an_error_and_not_asked_for_again():
    injector = get_injector_for_testing({ExtractProvider: 1})
    (provider,) = injector.providers
    request = Request("https://shop.example/", needs_item)
    need(request, provider.fields_for(request))
    response = to_response(request, {"product": None, "url": request.url})
    with pytest.raises(UnexpectedAnswerError, match="no product in the answer, for Product"):
        await provider({Product}, request, response, injector.crawler)


async def test_an_item_that_is_left_out_is_not_asked_for_again_either():
    injector = get_injector_for_testing({ExtractProvider: 1})
    (provider,) = injector.providers
    request = Request("https://shop.example/", needs_item, meta={"extract_api": {"product": True}})
    left_out = {"product": {"count": 1, "probability": 0.2}}
    response = to_response(request, {"leftOut": left_out, "url": request.url})
    with pytest.raises(LeftOutError, match=r"Product of https://shop\.example/ is left out"):
        await provider({Product}, request, response, injector.crawler)


async def test_the_error_of_an_item_that_is_left_out_has_no_password():
    injector = get_injector_for_testing({ExtractProvider: 1})
    (provider,) = injector.providers
    request = Request("https://ann:secret@shop.example/", needs_item, meta={"extract_api": {"product": True}})
    response = to_response(request, {"leftOut": {"product": {"count": 1, "probability": 0.2}}, "url": request.url})
    with pytest.raises(LeftOutError, match=r"Product of https://shop\.example/ is left out"):
        await provider({Product}, request, response, injector.crawler)


@pytest.mark.parametrize("missing", [BrowserHtml, Screenshot])
def test_a_request_made_apart_without_an_item_has_no_field_of_items(missing):
    injector = get_injector_for_testing({ExtractProvider: 1})
    (provider,) = injector.providers
    of_items = {"product": True, "minProbability": 0.5, "fieldSources": True, "extractRules": {"name": {"css": "h1"}}}
    request = Request("https://shop.example/", meta={"extract_api": {**of_items, "geolocation": "DE"}})
    body = content_of(provider._request_for({missing}, request), {})
    assert check(body.fields, extra_fields=EXTENSIONS) == []
    assert body.fields.keys().isdisjoint(of_items)
    with_item = content_of(provider._request_for({missing, Product}, request), {})
    assert with_item.fields.keys() >= of_items.keys()


async def test_a_request_made_apart_is_as_that_of_the_page_but_for_what_it_asks_for():
    injector = get_injector_for_testing({ExtractProvider: 1})
    (provider,) = injector.providers
    asked = {"httpResponseBody": True, "geolocation": "DE", "customHttpRequestHeaders": []}
    request = Request(
        "https://shop.example/",
        needs_html_and_page,
        headers={"User-Agent": "Scrapy"},
        meta={"extract_api": asked, "cookiejar": 1, "depth": 3},
        cb_kwargs={"a": 1},
    )
    sent = []

    async def download_async(made: Request) -> Response:
        sent.append(made)
        return to_response(made, {"browserHtml": "<p>"})

    injector.crawler.engine = SimpleNamespace(download_async=download_async)
    response = to_response(request, {"httpResponseBody": ""})
    assert await provider({BrowserHtml}, request, response, injector.crawler) == ["<p>"]
    (made,) = sent
    assert made.meta == {"extract_api": {"browserHtml": True, "geolocation": "DE"}, "cookiejar": 1}
    assert (made.url, made.headers, made.callback, made.cb_kwargs) == (request.url, request.headers, NO_CALLBACK, {})


@pytest.mark.parametrize("order", [(Addon, PoetAddon), (PoetAddon, Addon)])
def test_the_add_on_goes_with_that_of_scrapy_poet_in_any_order(order):
    settings = Settings()
    for addon in order:
        addon().update_settings(settings)
    assert settings["REQUEST_FINGERPRINTER_CLASS"] is ScrapyPoetRequestFingerprinter
    assert settings["SCRAPY_POET_REQUEST_FINGERPRINTER_BASE_CLASS"] is ExtractRequestFingerprinter
    assert settings["SCRAPY_POET_PROVIDERS"] == {"scrapy_ext.poet.provider.ExtractProvider": 1100}


@pytest.mark.parametrize("named", [ExtractProvider, "scrapy_ext.poet.provider.ExtractProvider"])
def test_a_place_that_the_project_gave_the_provider_stays(named):
    settings = Settings({"SCRAPY_POET_PROVIDERS": {named: 50}})
    Addon().update_settings(settings)
    assert settings["SCRAPY_POET_PROVIDERS"] == {named: 50}


def test_without_scrapy_poet_in_use_the_middleware_is_off():
    with pytest.raises(NotConfigured):
        PoetMiddleware.from_crawler(get_crawler())


class NoFields:
    def of(self, request: Request) -> dict[str, object]:
        return {}


@pytest.mark.parametrize(("cache", "rules"), [(True, True), (True, False), (False, True)])
def test_a_cache_that_does_not_know_rules_of_sites_is_reported(tmp_path, caplog, cache, rules):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "shop.example.toml").write_text('[product]\nname = "h1"\n')
    folder = str(tmp_path / "rules") if rules else ""
    crawler = get_crawler(settings_dict={"HTTPCACHE_ENABLED": cache, "EXTRACT_API_RULES": folder})
    lookups = NoFields()
    set_lookup(crawler, lookups.of)
    PoetMiddleware.from_crawler(crawler)
    assert ("empty the cache" in caplog.text) == (cache and rules)


@pytest.mark.parametrize(
    ("cache", "params"), [(True, {"minProbability": 0.5}), (True, {}), (False, {"minProbability": 1})]
)
def test_a_cache_that_does_not_know_the_least_probability_is_reported(caplog, cache, params):
    crawler = get_crawler(settings_dict={"HTTPCACHE_ENABLED": cache, "EXTRACT_API_PARAMS": params})
    lookups = NoFields()
    set_lookup(crawler, lookups.of)
    PoetMiddleware.from_crawler(crawler)
    reported = "minProbability of EXTRACT_API_PARAMS does not count in it" in caplog.text
    assert reported == (cache and bool(params))


def test_a_screenshot_can_be_stored_by_scrapy_poet():
    shot = Screenshot(b"\xff\xd8\xff")
    again = deserialize_leaf(Screenshot, serialize_leaf(shot))
    assert (again, type(again)) == (shot, Screenshot)

"""scrapy-zyte-api from PyPI, unchanged: a crawl of its users' kind, pointed at the real server by two settings.

Fields of the hosted service that the document does not define work as there. Its sessions have tests of their own.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.acceptance.conformance.shop import Shop
from tests.support import forked
from tests.support.servers import RunningServer

SETTINGS = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
ADDONS = {"scrapy_poet.Addon": 300, "scrapy_zyte_api.Addon": 500}
ROBOTSTXT_OBEY = False
RETRY_ENABLED = False
"""

SPIDER = """
from typing import Annotated

import scrapy
from scrapy_poet import DummyResponse
from scrapy_zyte_api import Actions, NetworkCapture, Screenshot, actions, network_capture
from web_poet import BrowserResponse
from zyte_common_items import Article, Product

CLICK = {"action": "click", "selector": {"type": "css", "value": "button"}}


class ShopSpider(scrapy.Spider):
    name = "shop"

    async def start(self):
        def ask(path, callback, method="GET", body=b"", **meta):
            return scrapy.Request(self.site + path, callback, method, body=body, meta=meta, errback=self.failed)

        yield ask("/", self.parse_plain)
        yield ask("/echo", self.parse_plain, "POST", b"tea")
        window = {"width": 500, "height": 300}
        fields = {"browserHtml": True, "screenshot": True, "actions": [CLICK], "viewport": window}
        yield ask("/script", self.parse_browser, zyte_api_automap=fields)
        plain = {"product": True, "extractFrom": "httpResponseBody"}
        yield ask("/product", self.parse_automatic, zyte_api_automap=plain)
        yield ask("/product?item", self.parse_product)
        yield ask("/article?item", self.parse_article)
        yield ask("/script?inputs", self.parse_inputs)
        yield ask("/script?captured", self.parse_captured)
        yield ask("/?mobile", self.parse_device, zyte_api_automap={"device": "mobile", "browserHtml": True})
        yield ask("/script?still", self.parse_device, zyte_api_automap={"javascript": False, "browserHtml": True})
        yield ask("/?session", self.parse_plain, zyte_api_automap={"session": {"id": "1"}})

    def parse_plain(self, response):
        yield {"of": response.request.method, "status": response.status, "text": response.text}

    def parse_browser(self, response):
        raw = response.raw_api_response
        yield {
            "of": "browser",
            "text": response.css("h1::text").get(),
            "button": response.css("button::text").get(),
            "actions": [action["status"] for action in raw["actions"]],
            "screenshot": raw["screenshot"][:4],
        }

    def parse_automatic(self, response):
        yield {"of": "automatic", "name": response.raw_api_response["product"]["name"]}

    def parse_product(self, response: DummyResponse, product: Product):
        yield {"of": "product", "name": product.name, "price": product.price, "url": product.url}

    def parse_article(self, response: DummyResponse, article: Article):
        yield {"of": "article", "headline": article.headline, "date": article.datePublished}

    def parse_inputs(
        self,
        response: DummyResponse,
        page: BrowserResponse,
        picture: Screenshot,
        acted: Annotated[Actions, actions([CLICK])],
    ):
        yield {
            "of": "inputs",
            "button": page.css("button::text").get(),
            "picture": picture.body[:2].hex(),
            "actions": [action["status"] for action in acted.results],
        }

    def parse_captured(
        self,
        response: DummyResponse,
        page: BrowserResponse,
        captured: Annotated[
            NetworkCapture,
            network_capture(
                [{"filterType": "url", "value": "/script", "matchType": "contains", "httpResponseBody": True}]
            ),
        ],
    ):
        (found,) = captured.results
        yield {"of": "captured", "url": found.url, "status": found.status, "body": found.body.decode()}

    def parse_device(self, response):
        yield {"of": response.url.partition("?")[2], "text": response.css("h1::text").get()}

    def failed(self, failure):
        error = failure.value
        yield {"of": "error", "status": error.status, "type": error.parsed.type, "detail": error.parsed.data["detail"]}
"""


@pytest.fixture(scope="module")
def crawled(
    tmp_path_factory: pytest.TempPathFactory, extraction: RunningServer, shop: Shop
) -> dict[str, dict[str, Any]]:
    """Items of one crawl by their callback."""
    project = tmp_path_factory.mktemp("project")
    files = {
        "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
        "shop/__init__.py": "",
        "shop/settings.py": SETTINGS,
        "shop/spiders/__init__.py": SPIDER,
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    done = forked.run(
        [sys.executable, "-m", "scrapy", "crawl", "shop", "-a", f"site={shop.url}", "-O", "items.jsonl",
         "-s", f"ZYTE_API_URL={extraction.url}/v1/"],
        cwd=project,
        env={**os.environ, "ZYTE_API_KEY": extraction.extract_key},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " ERROR: " not in done.stderr, done.stderr
    return {item["of"]: item for item in map(json.loads, (project / "items.jsonl").read_text().splitlines())}


def test_every_request_goes_through_the_server(crawled: dict[str, dict[str, Any]]) -> None:
    assert crawled["GET"]["text"] == "<h1>plain</h1>"
    assert (crawled["POST"]["status"], crawled["POST"]["text"]) == (201, "got tea")


def test_html_screenshot_and_actions_of_the_browser(crawled: dict[str, dict[str, Any]]) -> None:
    assert crawled["browser"] == {
        "of": "browser",
        "text": "after",
        "button": "clicked",
        "actions": ["success"],
        "screenshot": "/9j/",
    }


def test_items_come_by_request_and_by_the_provider_of_page_objects(
    crawled: dict[str, dict[str, Any]], shop: Shop
) -> None:
    assert crawled["automatic"]["name"] == "Kettle"
    item = {"of": "product", "name": "Kettle", "price": "31.50", "url": f"{shop.url}/product?item"}
    assert crawled["product"] == item
    assert crawled["article"]["headline"] == "How to boil water"
    assert crawled["article"]["date"].startswith("2026-03-01")


def test_inputs_of_page_objects_come_by_the_provider(crawled: dict[str, dict[str, Any]]) -> None:
    assert crawled["inputs"] == {"of": "inputs", "button": "clicked", "picture": "ffd8", "actions": ["success"]}


def test_fields_beyond_the_document_work_as_in_the_hosted_service(
    crawled: dict[str, dict[str, Any]], shop: Shop
) -> None:
    captured = crawled["captured"]
    assert (captured["url"], captured["status"]) == (f"{shop.url}/script?captured", 200)
    assert "<h1>before</h1>" in captured["body"]
    assert crawled["mobile"]["text"] == "plain"
    assert crawled["still"]["text"] == "before"


def test_a_malformed_field_is_refused_by_its_name(crawled: dict[str, dict[str, Any]]) -> None:
    assert (crawled["error"]["status"], crawled["error"]["type"]) == (400, "/request/invalid")
    assert "session.id: must be a UUID" in crawled["error"]["detail"]

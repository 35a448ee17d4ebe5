"""Rules of sites in crawls: through a server of this package, and through a service that does not know them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import scrapy

from tests.support.faulty_service import page
from tests.support.planned_crawls import Plan, routed
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Answer, ListeningSite

LAMP = "<html><h1>Lamp</h1><p class='now'>12,99 EUR</p></html>"
URL = "https://shop.example/p/1"
WRONG = {"url": URL, "name": "Cookie notice", "price": "24.99"}


def write(folder: Path, text: str, name: str = "shop.example.toml") -> None:
    (folder / "extract_rules").mkdir(exist_ok=True)
    (folder / "extract_rules" / name).write_text(text, "utf-8")


def test_rules_are_applied_here_to_the_page_of_another_service(plan, service):
    service.plays("shop.example", page(browserHtml=LAMP, product=WRONG))
    crawls = plan()
    write(crawls.folder, '[product]\nname = "h1"\nprice = ".now"\nsku = ".gone"\n')
    other = "https://other.example/"
    crawl = crawls.crawl([routed(URL, product=True, browserHtml=True), routed(other, product=True)])
    (post,) = service.of("shop.example")
    assert "extractRules" not in post.fields
    result = crawls.outcome(URL).result
    assert result["product"] == {
        "url": URL, "name": "Lamp", "price": "12.99", "currency": "EUR", "currencyRaw": "EUR",
    }  # fmt: skip
    assert result["extractRules"] == {
        "name": {"rule": "h1", "xpath": "/html/body/h1", "automatic": "Cookie notice"},
        "price": {"rule": ".now", "xpath": "/html/body/p", "automatic": "24.99"},
        "sku": {"rule": ".gone", "fault": "found nothing"},
    }
    assert "extractRules" not in crawls.outcome(other).result
    assert crawl.log.count("extract_rules/shop.example.toml: product.sku (.gone) found nothing on") == 1
    assert (crawl.stat("extract_api/rules/pages"), crawl.stat("extract_api/rules/faults")) == (1, 1)


def test_an_answer_without_html_is_reported_and_left_as_it_is(plan, service):
    service.plays("shop.example", page(product=WRONG))
    crawls = plan()
    write(crawls.folder, '[product]\nname = "h1"\n')
    crawl = crawls.crawl([routed(URL, product=True), routed(f"{URL}2", product=True)])
    assert crawls.outcome(URL).result["product"] == WRONG
    warning = "The rules of extract_rules/shop.example.toml are not applied to"
    assert crawl.log.count(warning) == 1
    assert "Request browserHtml beside product" in crawl.log
    assert crawl.stat("extract_api/rules/not_applied") == 2


def test_a_request_without_rules_is_left_as_it_is(plan, service):
    service.plays("shop.example", page(browserHtml=LAMP, product=WRONG))
    crawls = plan()
    write(crawls.folder, '[product]\nname = "h1"\n')
    crawl = crawls.crawl([routed(URL, product=True, browserHtml=True, extractRules=None)])
    assert crawls.outcome(URL).result["product"] == WRONG
    assert "extractRules is None" not in crawl.log


def test_they_are_applied_here_if_a_service_accepts_and_ignores_them(plan, service):
    service.extensions = ("extractRules",)
    service.plays("shop.example", page(browserHtml=LAMP, product=WRONG))
    service.plays("www.shop.example", page(product=WRONG))
    crawls = plan()
    write(crawls.folder, '[product]\nname = "h1"\n')
    urls = [URL, URL.replace("shop", "name:secret@www.shop")]
    crawl = crawls.crawl([routed(url, product=True) for url in urls])
    assert ["extractRules" in post.fields for post in service.posts] == [True, True]
    assert crawls.outcome(URL).result["product"]["name"] == "Lamp"
    assert (crawl.stat("extract_api/rules/pages"), crawl.stat("extract_api/rules/not_applied")) == (1, 1)
    assert "toml are not applied to https://www.shop.example/p/1: the answer of the service has no field" in crawl.log


def test_they_are_sent_with_the_fields_of_the_user_alone(plan, service):
    service.extensions = ("extractRules",)
    crawls = plan()
    write(crawls.folder, '[product]\nname = "h1"\n')
    crawls.crawl([{"url": URL, "meta": {"extract_api": {"product": True}, "extract_api_automap": False}}])
    (post,) = service.of("shop.example")
    assert post.fields == {"url": URL, "product": True, "extractRules": {"name": {"css": "h1"}}}


def test_they_are_sent_to_a_service_that_has_them(plan, service):
    service.extensions = ("extractRules",)
    crawls = plan()
    write(
        crawls.folder, '[product]\nname = "h1"\nsku = { css = ".sku", example = "1", url = "https://shop.example/1" }\n'
    )
    crawls.crawl([routed(URL, product=True), routed(f"{URL}?page", browserHtml=True)])
    posts = {post.url: post.fields for post in service.of("shop.example")}
    assert posts[URL]["extractRules"] == {"name": {"css": "h1"}, "sku": {"css": ".sku"}}
    assert "extractRules" not in posts[f"{URL}?page"]


def test_a_page_that_needs_the_browser_has_the_rules_of_what_is_requested_then(plan, service):
    service.extensions = ("extractRules",)
    crawls = plan()
    write(crawls.folder, '[product]\nname = "h1"\n')
    escalate = {"css": ".gone", "to": {"product": True}}
    crawls.crawl([{"url": URL, "meta": {"extract_api_escalate": escalate}}])
    by_http, by_browser = service.of("shop.example")
    assert "extractRules" not in by_http.fields
    assert by_browser.fields["extractRules"] == {"name": {"css": "h1"}}


def test_a_file_with_a_fault_ends_the_crawl_before_its_first_request(plan, service):
    crawls = plan()
    write(crawls.folder, '[product]\nprice = { xpath = "//p[" }\n')
    crawl = crawls.crawl([routed(URL, product=True)])
    # The exit code is that of Scrapy, which is 0 in 2.14.
    assert crawl.returncode != 0 or scrapy.__version__.startswith("2.14.")
    assert not service.posts
    assert "Spider opened" not in crawl.log
    assert "extract_rules/shop.example.toml: product.price.xpath ends too early" in crawl.log


class Shop(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, LAMP.encode())


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.close()


@pytest.fixture
def own_server(shop: Shop, tmp_path: Path) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path / "data", allow_hosts=[f"localhost:{shop.port}"]) as server:
        yield server


def test_a_server_applies_them_to_the_page_that_it_extracts(shop: Shop, own_server: RunningServer, tmp_path: Path):
    url, server = f"http://localhost:{shop.port}/p/1", own_server
    settings = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": server.extract_key}
    crawls = Plan(tmp_path / "project", None, settings)
    write(crawls.folder, 'match = ["localhost"]\n[product]\nname = ".now"\ncolor = { value = "red" }\n')
    crawl = crawls.crawl([routed(url, product=True, extractFrom="httpResponseBody", fieldSources=True)])
    result = crawls.outcome(url).result
    assert result["product"]["name"] == "12,99 EUR"
    assert result["product"]["color"] == "red"
    assert "extractRules .now" in str(result["fieldSources"]["name"])
    assert crawl.stat("extract_api/rules/pages") == 1

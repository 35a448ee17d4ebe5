"""``minProbability`` in crawls: through a server of this package, and through a service that does not know it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faulty_service import page
from tests.support.planned_crawls import Plan, routed
from tests.support.servers import ForkedServer
from tests.support.sites import Answer, ListeningSite

URL = "https://shop.example/p/1"
DOUBTFUL = {"url": URL, "name": "Contact", "metadata": {"probability": 0.2}}


def test_it_is_applied_here_to_the_answers_of_another_service(plan, service):
    service.plays("shop.example", page(product=DOUBTFUL))
    crawls = plan()
    crawl = crawls.crawl([routed(URL, product=True, minProbability=0.5)])
    (post,) = service.of("shop.example")
    assert "minProbability" not in post.fields
    result = crawls.outcome(URL).result
    assert "product" not in result
    assert result["leftOut"] == {"product": {"count": 1, "probability": 0.2}}
    assert crawl.stat("extract_api/left_out/items") == 1
    assert f"Left out of {URL}: 1 of product, with a probability of 0.2 at most (minProbability is 0.5)" in crawl.log


def test_a_setting_for_all_requests_counts_for_those_of_items(plan, service):
    service.plays("shop.example", page(product=DOUBTFUL))
    crawls = plan(EXTRACT_API_PARAMS={"minProbability": 0.1})
    other = "https://other.example/"
    crawl = crawls.crawl([routed(URL, product=True), routed(other, browserHtml=True)])
    assert crawls.outcome(URL).result["product"] == DOUBTFUL
    assert crawls.outcome(other).error is None
    assert crawl.stat("extract_api/left_out/items") == 0


def test_a_wrong_value_reaches_the_errback_and_nothing_is_sent(plan, service):
    crawls = plan()
    crawls.crawl([routed(URL, product=True, minProbability=50)])
    (fault,) = crawls.outcome(URL).violations
    assert fault[:3] == ["minProbability", "must be 0 to 1, got 50", "Write 0.5 for 50 %, for example."]
    assert not service.posts


class Shop(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, b"<html><h1>Contact</h1><p>Call us.</p></html>")


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.close()


def test_a_server_leaves_them_out_itself(shop: Shop, tmp_path: Path):
    url = f"http://localhost:{shop.port}/p/1"
    with ForkedServer(tmp_path / "data", allow_hosts=[f"localhost:{shop.port}"]) as server:
        settings = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": server.extract_key}
        crawls = Plan(tmp_path / "project", None, settings)
        fields = {"product": True, "extractFrom": "httpResponseBody", "minProbability": 0.5}
        crawl = crawls.crawl([routed(url, **fields)])
    result = crawls.outcome(url).result
    assert "product" not in result
    assert result["leftOut"]["product"]["count"] == 1
    assert crawl.stat("extract_api/left_out/items") == 1

"""Requests that the service must refuse are not sent: their errback gets every broken rule, and the crawl goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import faulty_service
from tests.support.crawls import Crawl
from tests.support.faulty_service import FaultyService
from tests.support.planned_crawls import Plan, routed

SITE = "https://site.example"
BODY = {"httpResponseBody": True}
#: The 13 rules of the contract and its limits: request, and the fields that break something.
WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no-output": (routed(f"{SITE}/no-output", httpResponseBody=False), ["request"]),
    "two-kinds": (routed(f"{SITE}/two-kinds", product=True, productList=True), ["productList"]),
    "serp-and-more": (
        routed(f"{SITE}/serp-and-more", serp=True, screenshot=True, geolocation="US"),
        ["geolocation", "screenshot"],
    ),
    "body-and-browser": (routed(f"{SITE}/body-and-browser", browserHtml=True, **BODY), ["browserHtml"]),
    "body-and-actions": (
        routed(f"{SITE}/body-and-actions", actions=[{"type": "click"}], includeIframes=True, **BODY),
        ["actions", "includeIframes"],
    ),
    "body-and-product": (routed(f"{SITE}/body-and-product", product=True, **BODY), ["product"]),
    "post-in-browser": (
        {**routed(f"{SITE}/post-in-browser", browserHtml=True), "method": "POST", "body": "a=1"},
        ["httpRequestBody", "httpRequestMethod"],
    ),
    "two-bodies": (
        {**routed(f"{SITE}/two-bodies", httpRequestText="b"), "method": "POST", "body": "a"},
        ["httpRequestText"],
    ),
    "cookie-header": (
        routed(f"{SITE}/cookie-header", customHttpRequestHeaders=[{"name": "Cookie", "value": "a=1"}], **BODY),
        ["customHttpRequestHeaders[0].name"],
    ),
    "many-headers": (
        routed(
            f"{SITE}/many-headers",
            customHttpRequestHeaders=[{"name": f"X-{n}", "value": ""} for n in range(201)],
            **BODY,
        ),
        ["customHttpRequestHeaders"],
    ),
    "odd-method": ({"url": f"{SITE}/odd-method", "method": "CONNECT"}, ["httpRequestMethod"]),
    "address": ({"url": "http://127.0.0.1/address"}, ["url"]),
    "number-address": ({"url": "http://2130706433/number-address"}, ["url"]),
    "long": ({"url": f"{SITE}/long?{'x' * 8200}"}, ["url"]),
    "large-body": ({"url": f"{SITE}/large-body", "method": "POST", "body": "x" * 300_001}, ["httpRequestBody"]),
    "no-text": (routed(f"{SITE}/no-text", httpRequestText="", **BODY), ["httpRequestText"]),
    "too-large": (routed(f"{SITE}/too-large", echoData="x" * 5_300_000), ["request body"]),
    "unknown": (routed(f"{SITE}/unknown", browserHTML=True), ["browserHTML"]),
    "odd-address-kind": (routed(f"{SITE}/odd-address-kind", ipType="mobile"), ["ipType"]),
    "odd-tag": (routed(f"{SITE}/odd-tag", tags={"a": 1}), ["tags.a"]),
    "no-dict": ({"url": f"{SITE}/no-dict", "meta": {"extract_api": ["browserHtml"]}}, ['meta["extract_api"]']),
    "everything": (
        routed(
            f"{SITE}/everything",
            browserHtml=True,
            article=True,
            product=True,
            ipType="x",
            tags={"a": 1},
            deviec="mobile",
            httpRequestText="a",
        ),
        ["deviec", "httpRequestText", "ipType", "product", "tags.a"],
    ),
}


@pytest.fixture(scope="module")
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


@pytest.fixture(scope="module")
def ended(service, tmp_path_factory) -> tuple[Plan, Crawl]:
    # Scrapy drops long URLs before anybody else sees them.
    plan = Plan(tmp_path_factory.mktemp("rules"), service, {"URLLENGTH_LIMIT": 0})
    return plan, plan.crawl([request for request, _ in WRONG.values()], [f"{SITE}/right"])


def test_nothing_that_must_fail_is_sent_and_the_crawl_goes_on(ended, service):
    _, crawl = ended
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert [post.url for post in service.posts] == [f"{SITE}/right"]
    assert crawl.stat("extract_api/attempts") == 1


@pytest.mark.parametrize("name", WRONG)
def test_the_errback_gets_every_rule_that_is_broken(ended, name):
    request, fields = WRONG[name]
    failed = ended[0].outcome(request["url"])
    assert failed.error == "ContractError"
    assert sorted(field for field, *_ in failed.violations) == fields
    assert all(rule and remedy for _, rule, remedy, _ in failed.violations)
    assert all(field in failed.message for field in fields)


def test_a_field_that_is_not_known_is_answered_with_the_one_that_is_meant(ended):
    ((_, _, remedy, _),) = ended[0].outcome(f"{SITE}/unknown").violations
    assert remedy == "Did you mean browserHtml?"

from __future__ import annotations

import base64

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint as scrapy_fingerprint

from scrapy_ext.crawl.extraction.fingerprint import ExtractRequestFingerprinter
from tests.support.crawlers import get_crawler

URL = "https://books.example/page?b=2&a=1"


def of(fields=True, *, url: str = URL, params=None, transparent: bool = False, **request) -> bytes:
    fingerprinter = ExtractRequestFingerprinter(transparent=transparent, params=params or {})
    meta = {} if fields is None else {"extract_api": fields}
    return fingerprinter.fingerprint(Request(url, meta={**meta, **request.pop("meta", {})}, **request))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("request_", [{}, {"method": "POST", "body": b"x"}, {"method": "HEAD"}])
@pytest.mark.parametrize("fields", [None, False, True, {}, {"httpResponseBody": True, "tags": {"a": "b"}}])
def test_the_plain_page_has_scrapys_fingerprint_routed_or_not(fields, request_):
    plain = scrapy_fingerprint(Request(URL, **request_))
    for transparent in (False, True):
        assert of(fields, transparent=transparent, **request_) == plain


CHANGES = [
    {"browserHtml": True},
    {"screenshot": True},
    {"screenshot": True, "screenshotOptions": {"fullPage": True}},
    {"product": True},
    {"article": True},
    {"product": True, "extractFrom": "httpResponseBody"},
    {"browserHtml": True, "actions": [{"type": "click"}]},
    {"browserHtml": True, "includeIframes": True},
    {"browserHtml": True, "javascript": False},
    {"browserHtml": True, "device": "mobile"},
    {"geolocation": "US"},
    {"geolocation": "DE"},
    {"httpResponseBody": False, "httpResponseHeaders": True},
    {"httpRequestMethod": "PUT"},
    {"httpRequestText": "ä"},
    {"serp": True},
    {"serp": True, "serpOptions": {"extractFrom": "browserHtml"}},
    {"product": True, "customAttributes": {"a": {"type": "string"}}},
    {"fieldOfTomorrow": 1},
]


def test_what_changes_the_content_changes_the_fingerprint():
    prints = [of(fields) for fields in [True, *CHANGES]]
    assert len(set(prints)) == len(prints)
    assert all(len(one) == 20 for one in prints)


@pytest.mark.parametrize(
    "same",
    [
        {"tags": {"a": "b"}},
        {"echoData": 7},
        {"jobId": "1/2/3"},
        {"ipType": "residential"},
        {"requestHeaders": {"referer": "x"}},
        {"requestCookies": [{"name": "a", "value": "b"}]},
        {"screenshot": False},
        {"actions": []},
    ],
)
def test_what_leaves_the_content_as_it_is_does_not(same):
    assert of({"browserHtml": True, **same}) == of({"browserHtml": True})


def test_the_options_of_a_kind_are_its_extract_from():
    by_http = {"extractFrom": "httpResponseBody"}
    assert of({"product": True, "productOptions": by_http}) == of({"product": True, **by_http})
    assert of({"product": True, "articleOptions": by_http}) == of({"product": True})
    assert of({"productOptions": by_http}) == of(True)
    assert of({"product": True, "productOptions": {"model": "1"}}) != of({"product": True})


def test_the_same_body_is_the_same_however_it_is_given():
    assert of({"httpRequestText": "ä", "httpRequestMethod": "POST"}) == of(method="POST", body="ä".encode())
    assert of({"httpRequestBody": encoded(b"x"), "geolocation": "US"}) == of({"geolocation": "US"}, body=b"x")
    assert of({"httpRequestMethod": "GET", "geolocation": "US"}) == of({"geolocation": "US"})


def test_the_order_of_fields_and_of_the_query_does_not_count():
    assert of({"geolocation": "US", "product": True}) == of({"product": True, "geolocation": "US"})
    assert of({"product": True}, url="https://books.example/page?a=1&b=2") == of({"product": True})


def test_the_fragment_counts_where_a_browser_may_read_it():
    assert of({"browserHtml": True}, url=URL + "#x") != of({"browserHtml": True})
    assert of({"geolocation": "US"}, url=URL + "#x") == of({"geolocation": "US"})
    assert of(url=URL + "#x") == of()


def test_fields_of_the_settings_count_unless_the_request_takes_them_away():
    assert of(params={"browserHtml": True}) == of({"browserHtml": True})
    assert of({"browserHtml": None}, params={"browserHtml": True}) == of()
    assert of(False, params={"browserHtml": True}) == of(False)


@pytest.mark.parametrize(
    "fields", ["browserHtml", 5, {"echoData": object()}, {"actions": {1, 2}}, {"actions": object()}]
)
def test_fields_that_cannot_be_read_do_not_fail_the_scheduler(fields):
    assert len(of(fields)) == 20


def test_fields_sent_exactly_count_exactly():
    meta = {"extract_api_automap": False}
    assert of({"browserHtml": True}, meta=meta, params={"geolocation": "US"}) == of({"browserHtml": True})


def test_it_is_a_component_of_scrapy():
    settings = {
        "REQUEST_FINGERPRINTER_CLASS": ExtractRequestFingerprinter,
        "EXTRACT_API_TRANSPARENT_MODE": True,
        "EXTRACT_API_PARAMS": {"browserHtml": True},
    }
    crawler = get_crawler(settings_dict=settings)
    fingerprinter = crawler.request_fingerprinter
    assert fingerprinter.fingerprint(Request(URL)) == of({"browserHtml": True})
    request = Request(URL, meta={"extract_api": {"product": True}})
    assert fingerprinter.fingerprint(request) == fingerprinter.fingerprint(request)


def test_fields_that_a_middleware_adds_later_count():
    fingerprinter = ExtractRequestFingerprinter(transparent=True, params={"ipType": "residential"})
    request = Request(URL)
    before = fingerprinter.fingerprint(request)
    request.meta["extract_api"] = {"browserHtml": True}
    assert fingerprinter.fingerprint(request) == of({"browserHtml": True}, params={"ipType": "residential"})
    assert fingerprinter.fingerprint(request) != before

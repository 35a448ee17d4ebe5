"""Requests for bytes: those without a callback."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from scrapy_ext.api.extraction import FIELDS, check
from scrapy_ext.crawl.extraction.content import hand_on_without_callback, note_without_callback
from scrapy_ext.crawl.extraction.fingerprint import ExtractRequestFingerprinter
from scrapy_ext.crawl.extraction.plan import BodyOptions
from tests.support.bodies import sent_body

URL = "https://shop.example/manual.pdf"
BYTES = {"url": URL, "httpResponseBody": True, "httpResponseHeaders": True}
OF_PAGES = [
    {"product": True, "extractFrom": "httpResponseBody", "productOptions": {"extractFrom": "browserHtml"}},
    {"browserHtml": True, "screenshot": True, "actions": [{"action": "scrollBottom"}], "viewport": {"width": 1}},
    {"markdown": True, "markdownOptions": {"links": False}},
    {"httpResponseBody": False, "browserHtml": True, "requestHeaders": {"referer": "https://a.example/"}},
]


def apart(meta: dict | None = None) -> Request:
    """A request of engine.download_async."""
    request = Request(URL, meta=meta)
    note_without_callback(request)
    return request


@pytest.mark.parametrize("params", OF_PAGES)
@pytest.mark.parametrize("request_of", [lambda: Request(URL, callback=NO_CALLBACK), apart])
def test_fields_for_every_page_do_not_count_for_bytes(params, request_of):
    assert sent_body(request_of(), BodyOptions(params=params)) == BYTES


def test_fields_about_how_to_fetch_do():
    params = {"product": True, "geolocation": "DE", "ipType": "residential", "device": "mobile", "tags": {"a": "b"}}
    del params["product"]
    assert sent_body(apart(), BodyOptions(params={"product": True, **params})) == {**BYTES, **params}


def test_the_fields_of_the_request_itself_count():
    params = {"product": True, "extractFrom": "httpResponseBody", "geolocation": "DE"}
    body = sent_body(apart({"extract_api": {"product": True}}), BodyOptions(params=params))
    assert body == {"url": URL, **params}
    assert sent_body(apart({"extract_api": {"geolocation": "FR"}}), BodyOptions(params=params)) == {
        **BYTES,
        "geolocation": "FR",
    }


def test_a_request_that_replaces_another_is_for_bytes_as_well():
    first, second = apart(), Request(URL)
    hand_on_without_callback(first, second)
    assert sent_body(second, BodyOptions(params={"product": True})) == BYTES


def test_a_request_with_a_callback_is_for_a_page_also_when_a_component_downloads_it():
    request = Request(URL, callback=print)
    note_without_callback(request)
    assert sent_body(request, BodyOptions(params={"product": True})) == {"url": URL, "product": True}


def test_the_fingerprint_is_that_of_the_bytes():
    fingerprinter = ExtractRequestFingerprinter(transparent=True, params={"product": True})
    plain = ExtractRequestFingerprinter(transparent=True, params={})
    assert fingerprinter.fingerprint(apart()) == plain.fingerprint(Request(URL))
    assert fingerprinter.fingerprint(Request(URL)) != plain.fingerprint(Request(URL))


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_that_counts_is_valid_with_bytes(name):
    body = sent_body(apart(), BodyOptions(params={name: None}))
    assert check({field: value for field, value in body.items() if value is not None}) == []

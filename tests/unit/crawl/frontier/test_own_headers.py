"""Headers of the user are distinguished from those that Scrapy adds, without a meta key."""

from __future__ import annotations

import pickle

import pytest
from scrapy import Request, Spider
from scrapy.settings import Settings
from scrapy.utils.request import request_from_dict

from scrapy_ext.crawl.extraction.headers import scrapy_default_headers
from scrapy_ext.crawl.extraction.plan import BodyOptions
from scrapy_ext.crawl.frontier.marks import mark_added, note_headers
from tests.support.bodies import sent_body

SETTINGS = Settings()
DEFAULTS = scrapy_default_headers(SETTINGS)
AGENT = SETTINGS["USER_AGENT"]
LANGUAGE = SETTINGS["DEFAULT_REQUEST_HEADERS"]["Accept-Language"]


def through_middlewares(request: Request) -> Request:
    note_headers(request, DEFAULTS)
    for name, value in DEFAULTS:
        request.headers.setdefault(name, value)
    return request


def sent(request: Request) -> dict[str, str]:
    headers = sent_body(request, BodyOptions(default_headers=DEFAULTS)).get("customHttpRequestHeaders", [])
    return {header["name"]: header["value"] for header in headers}


def downloaded(**arguments) -> Request:
    """A request that has left the downloader."""
    request = through_middlewares(Request("https://a.example/", **arguments))
    mark_added(request, DEFAULTS, request)
    return request


COPIES = {
    "copy": Request.copy,
    "replace": lambda request: request.replace(url="https://a.example/other"),
    "headers alone": lambda request: Request("https://a.example/other", headers=request.headers),
    "a queue on disk": lambda request: request_from_dict(
        pickle.loads(pickle.dumps(request.to_dict(spider=Spider("a"))))
    ),
    "the same again": lambda request: request,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_sends_what_the_user_set_and_nothing_that_scrapy_added(copied):
    request = downloaded(headers={"Accept-Language": LANGUAGE, "X-Own": "1"})
    copy = through_middlewares(copied(request))
    assert sent(copy) == sent(request) == {"Accept-Language": LANGUAGE, "X-Own": "1"}


def test_a_copy_that_a_middleware_makes_on_the_way_out_does_not_take_scrapys_headers_for_its_own():
    request = through_middlewares(Request("https://a.example/", headers={"User-Agent": AGENT}))
    retry = request.copy()
    mark_added(retry, DEFAULTS, request)
    assert sent(through_middlewares(retry)) == {"User-Agent": AGENT}


def test_a_header_that_is_set_on_a_copy_is_the_users():
    copy = downloaded().replace(headers={"User-Agent": AGENT})
    assert sent(through_middlewares(copy)) == {"User-Agent": AGENT}


def test_the_meta_stays_empty_and_headers_read_as_before():
    request = downloaded()
    assert request.meta == {}
    assert request.headers["User-Agent"] == AGENT.encode()
    assert repr(request.headers["User-Agent"]) == repr(AGENT.encode())


def test_without_a_note_nothing_is_marked_and_defaults_are_not_sent():
    request = Request("https://a.example/", headers={"User-Agent": AGENT})
    mark_added(request, DEFAULTS, request)
    assert type(request.headers["User-Agent"]) is bytes
    assert sent(request) == {}

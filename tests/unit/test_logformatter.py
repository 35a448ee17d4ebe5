"""Records of pages and items are made exactly when something takes them."""

from __future__ import annotations

import logging

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter

from scrapy_ext.downloadermiddlewares import ExtractMiddleware
from scrapy_ext.logformatter import QuietLogFormatter
from tests.support.crawlers import get_crawler

REQUEST = Request("http://a.example/")
RESPONSE = Response(REQUEST.url, request=REQUEST)
SPIDER = Spider("spider")
ADDONS = {"ADDONS": {"scrapy_ext.Addon": 500}}


def only_handler(monkeypatch: pytest.MonkeyPatch) -> logging.Handler:
    """Leave one handler, at INFO, under a root logger that takes all levels, as in a crawl. pytest adds its own when a
    test begins."""
    handler = logging.NullHandler(logging.INFO)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger(), "level", logging.NOTSET)
    return handler


def made() -> tuple[bool, bool]:
    """Return whether records of a page and of an item are made; those that are made are Scrapy's."""
    ours, scrapys = QuietLogFormatter(), LogFormatter()
    page, item = ours.crawled(REQUEST, RESPONSE, SPIDER), ours.scraped({"a": 1}, RESPONSE, SPIDER)
    assert page in (None, scrapys.crawled(REQUEST, RESPONSE, SPIDER))
    assert item in (None, scrapys.scraped({"a": 1}, RESPONSE, SPIDER))
    return page is not None, item is not None


def test_records_of_pages_and_items_that_no_handler_takes_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    only_handler(monkeypatch)
    assert made() == (False, False)


def test_records_are_made_while_a_handler_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = only_handler(monkeypatch)
    handler.setLevel(logging.DEBUG)
    assert made() == (True, True)
    handler.setLevel(logging.NOTSET)
    assert made() == (True, True)
    handler.setLevel(logging.INFO)
    assert made() == (False, False)


def test_records_are_made_for_a_handler_of_one_of_the_loggers_between(monkeypatch: pytest.MonkeyPatch) -> None:
    only_handler(monkeypatch)
    between, taker = logging.getLogger("scrapy.core"), logging.NullHandler(logging.DEBUG)
    between.addHandler(taker)
    try:
        assert made() == (True, True)
    finally:
        between.removeHandler(taker)


def test_no_record_is_made_for_a_handler_that_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = only_handler(monkeypatch)
    handler.setLevel(logging.DEBUG)
    monkeypatch.setattr(logging.getLogger("scrapy.core.scraper"), "propagate", False)
    assert made() == (True, False)


def test_records_are_made_for_a_filter_of_their_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    only_handler(monkeypatch)
    monkeypatch.setattr(logging.getLogger("scrapy.core.scraper"), "filters", [lambda _record: False])
    assert made() == (False, True)


def test_no_record_is_made_for_the_filter_of_errors_of_the_extraction_service(monkeypatch: pytest.MonkeyPatch) -> None:
    only_handler(monkeypatch)
    monkeypatch.setattr(logging.getLogger("scrapy.core.scraper"), "filters", [])
    crawler = get_crawler(settings_dict=ADDONS | {"EXTRACT_API_URL": "http://service.example", "EXTRACT_API_KEY": "k"})
    ExtractMiddleware.from_crawler(crawler)
    assert len(logging.getLogger("scrapy.core.scraper").filters) == 1
    assert made() == (False, False)


def test_the_add_on_sets_it_unless_the_project_has_one() -> None:
    assert type(get_crawler(settings_dict=ADDONS).logformatter) is QuietLogFormatter
    own = get_crawler(settings_dict=ADDONS | {"LOG_FORMATTER": LogFormatter})
    assert type(own.logformatter) is LogFormatter

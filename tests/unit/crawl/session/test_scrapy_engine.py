"""A version of Scrapy without a private name that the package needs is refused when the crawl opens."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_ext.crawl.session import scrapy_engine
from scrapy_ext.crawl.session.scrapy_engine import (
    UnsupportedScrapyError,
    check_names,
    close_after_start_items,
    on_close,
    on_closing,
    on_fetched,
    start_items_are_processed,
    values_of,
    watch,
)


@pytest.mark.parametrize(
    "use",
    [
        lambda crawler: watch(crawler, print),
        lambda crawler: on_closing(crawler, print),
        close_after_start_items,
        check_names,
    ],
    ids=["finished", "closing", "start-items", "read later"],
)
def test_an_engine_without_the_names_is_refused_with_the_version_to_install(use):
    with pytest.raises(UnsupportedScrapyError, match=r"Scrapy 2\.14 to 2\.\d+\. Install such a version"):
        use(SimpleNamespace(engine=SimpleNamespace()))


def test_the_page_on_private_names_has_each_of_them():
    page = (Path(__file__).parents[4] / "docs/architecture/scrapy.rst").read_text("utf-8")
    names = re.findall(r"^- (``[^`]+``)", str(scrapy_engine.__doc__), re.MULTILINE)
    assert "``engine._start``" in names
    assert [name for name in names if name not in page] == []


def test_a_scraper_whose_slot_does_not_say_that_it_closes_is_refused():
    scraper = SimpleNamespace(start_itemproc_async=print, slot=SimpleNamespace(is_idle=bool))
    with pytest.raises(UnsupportedScrapyError, match=r"items of start\(\)"):
        close_after_start_items(SimpleNamespace(engine=SimpleNamespace(scraper=scraper)))


async def test_items_of_start_count_until_the_pipelines_have_processed_them():
    ended = []

    async def start_itemproc(item, *, response):
        if item == "bad":
            raise ValueError(item)
        ended.append(item)

    slot = SimpleNamespace(is_idle=lambda: False, closing=None)
    scraper = SimpleNamespace(start_itemproc_async=start_itemproc, slot=slot)
    crawler = SimpleNamespace(engine=SimpleNamespace(scraper=scraper))
    assert start_items_are_processed(crawler)
    close_after_start_items(crawler)
    good, bad = (scraper.start_itemproc_async(item, response=None) for item in ("good", "bad"))
    of_callback = scraper.start_itemproc_async("page", response="response")
    assert not start_items_are_processed(crawler)
    await good
    assert not start_items_are_processed(crawler)
    with pytest.raises(ValueError, match="bad"):
        await bad
    assert start_items_are_processed(crawler)
    await of_callback
    assert ended == ["good", "page"]


def fetching(fetch):
    return SimpleNamespace(engine=SimpleNamespace(downloader=SimpleNamespace(fetch=fetch)))


def test_all_who_watch_get_each_result_in_their_order_and_the_caller_gets_it_too():
    result, seen, got = Deferred(), [], []
    crawler = fetching(lambda request: result)
    on_fetched(crawler, lambda *fetched: seen.append(("first", *fetched)))
    on_fetched(crawler, lambda *fetched: seen.append(("second", *fetched)))
    request = Request("http://a.example/")
    crawler.engine.downloader.fetch(request).addCallback(got.append)
    assert not seen
    result.callback("page")
    assert seen == [("first", request, "page"), ("second", request, "page")]
    assert got == ["page"]


def test_a_failure_is_a_result_and_stays_one():
    result, seen, failed = Deferred(), [], []
    crawler = fetching(lambda request: result)
    on_fetched(crawler, lambda request, failure: seen.append(failure.value))
    crawler.engine.downloader.fetch(Request("http://a.example/")).addErrback(failed.append)
    error = OSError("away")
    result.errback(error)
    assert seen == [error] == [failure.value for failure in failed]


def test_what_is_not_a_deferred_is_reported_at_once():
    seen = []
    crawler = fetching(lambda request, spider: "page")
    on_fetched(crawler, lambda request, result: seen.append(result))
    assert crawler.engine.downloader.fetch(Request("http://a.example/"), None) == "page"
    assert seen == ["page"]


def test_the_values_of_a_request_are_those_of_its_properties():
    given = {"headers": {"A": "1"}, "cookies": {"b": "2"}, "flags": ["c"], "meta": {"d": 4}, "cb_kwargs": {"e": 5}}
    request = Request("http://a.example/", **given)
    assert values_of(request) == tuple(getattr(request, name) for name in given)
    assert not any(values_of(Request("http://a.example/")))


async def test_a_close_reason_is_known_before_the_requests_in_progress_have_ended():
    calls = []

    async def close_spider_async(*, reason):
        calls.append(("closed", reason))

    crawler = SimpleNamespace(engine=SimpleNamespace(close_spider_async=close_spider_async))
    on_close(crawler, lambda reason: calls.append(("closes", reason)))
    await crawler.engine.close_spider_async(reason="shutdown")
    await crawler.engine.close_spider_async()
    assert calls == [("closes", "shutdown"), ("closed", "shutdown"), ("closes", "cancelled"), ("closed", "cancelled")]

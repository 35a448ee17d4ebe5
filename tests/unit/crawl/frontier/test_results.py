"""Results of requests until their commit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy.statscollectors import StatsCollector

from scrapy_ext.crawl.commit.events import OpenBatch, Stored
from scrapy_ext.crawl.commit.tracking import Entry, Tracker
from scrapy_ext.crawl.frontier.results import Results

URL = "http://shop.example/1"


@pytest.fixture
def crawler() -> Any:
    crawler = SimpleNamespace(settings=Settings(), spider=None)
    crawler.stats = StatsCollector(cast("Any", SimpleNamespace(settings=Settings())))
    return crawler


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def results(crawler: Any, tracker: Tracker) -> Results:
    memory, slots = SimpleNamespace(tracker=tracker), SimpleNamespace(place=lambda: None)
    return Results(crawler, cast("Any", memory), cast("Any", slots), cast("Any", None), keeps_requests=False)


def finished(tracker: Tracker) -> Entry:
    entry = tracker.read(Stored("1", {}, OpenBatch(0, "b", 1), 0), Request(URL), "shop.example")
    tracker.finished(tracker.handed_out(entry))
    return entry


def test_a_late_item_of_a_failed_attempt_is_dropped_because_the_next_one_makes_it_again(
    crawler: Any, tracker: Tracker, results: Results
) -> None:
    first = finished(tracker)
    second = tracker.again(first, Request(URL))
    assert results.add_item(first, b"late")
    assert results.add_item(second, b"again")
    assert (first.items, second.items) == ([], [b"again"])
    assert crawler.stats.get_value("frontier/superseded_items") == 1


def test_the_first_item_that_is_dropped_is_reported(
    tracker: Tracker, results: Results, caplog: pytest.LogCaptureFixture
) -> None:
    first = finished(tracker)
    tracker.again(first, Request(URL))
    for item in (b"late", b"later"):
        results.add_item(first, item)
    (warning,) = caplog.messages
    assert warning.startswith(f"An item is dropped: a task that a callback of {URL} left behind")


def test_a_late_item_of_a_request_that_ran_once_is_not_of_the_request(tracker: Tracker, results: Results) -> None:
    entry = finished(tracker)
    assert not results.add_item(entry, b"late")
    assert entry.items == []

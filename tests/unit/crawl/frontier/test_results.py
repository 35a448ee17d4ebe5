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


def test_a_late_item_of_a_failed_attempt_is_neither_lost_nor_of_the_next_one(
    tracker: Tracker, results: Results
) -> None:
    first = finished(tracker)
    second = tracker.again(first, Request(URL))
    assert not results.add_item(first, b"late"), "it is stored apart"
    assert results.add_item(second, b"again")
    assert (first.items, second.items) == ([], [b"again"])


def test_a_late_item_of_a_request_that_ran_once_is_not_of_the_request(tracker: Tracker, results: Results) -> None:
    entry = finished(tracker)
    assert not results.add_item(entry, b"late")
    assert entry.items == []

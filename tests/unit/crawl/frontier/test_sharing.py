"""A crawl whose requests share an object that has to be copied is warned once."""

from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_ext.crawl.frontier.sent import SharingWarning, shared_place

URL = "http://a.example/"


def request(name="", **more):
    return Request(URL + name, **more)


def make_children(response):
    """A callback, for the line that the warning names."""


@pytest.fixture
def warning():
    return SharingWarning()


def pair(**more):
    return [request("1", **more), request("2", **more)]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"cb_kwargs": {"item": {}}}, "cb_kwargs['item']"),
        ({"meta": {"rows": []}}, "meta['rows']"),
        ({"meta": {"seen": set()}}, "meta['seen']"),
    ],
    ids=["dict", "list", "set"],
)
def test_an_object_in_two_requests_is_found(more, place):
    # A request copies its meta and cb_kwargs, not what is in them.
    one, two = pair(**more)
    assert shared_place(one, [one, two]) == place


@pytest.mark.parametrize(
    "more",
    [
        {"cb_kwargs": {"text": "x", "number": 1, "pair": (1, 2)}},
        {"meta": {"extract_api": {"product": True}, "redirect_urls": [], "_ours": []}},
    ],
    ids=["unchangeable", "not the spider's"],
)
def test_values_that_do_as_well_as_copies_are_not(more):
    one, two = pair(**more)
    assert shared_place(one, [one, two]) is None


def test_equal_objects_are_not_shared():
    assert shared_place(request(meta={"item": {}}), [request(meta={"item": {}})]) is None


def test_the_first_that_is_forgotten_is_reported_with_its_place_and_the_line_of_the_spider(warning, caplog):
    one, two = pair(cb_kwargs={"item": {}})
    for _ in range(3):
        warning.forgotten(one, make_children, lambda: [two])
    (record,) = caplog.records
    assert "cb_kwargs['item']" in record.getMessage()
    assert "make_children (test_sharing.py, line " in record.getMessage()


def test_what_a_crawl_leaves_is_reported_when_it_shares_an_object(warning, caplog):
    warning.left([request("3", meta={"item": {}}), request("4")])
    assert not caplog.records
    for _ in range(2):
        warning.left(pair(meta={"item": {}}))
    assert len(caplog.records) == 1


def test_what_another_worker_runs_is_reported_when_it_shares_an_object(warning, caplog):
    one, two = pair(meta={"item": {}})
    warning.elsewhere(one, None, lambda: [one])
    assert not caplog.records
    warning.elsewhere(two, None, lambda: [one])
    assert "another worker" in caplog.text

"""Requests and hosts that must wait for a time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_ext.crawl.frontier.hosts import not_before, retry_after

URL = "http://a.example/"


@pytest.mark.parametrize(
    ("meta", "when"),
    [
        ({}, 0.0),
        ({"frontier_not_before": 1_700_000_000}, 1_700_000_000.0),
        ({"frontier_not_before": 1.5}, 1.5),
        ({"frontier_not_before": None}, 0.0),
        ({"frontier_not_before": "tomorrow"}, 0.0),
        ({"frontier_not_before": [1]}, 0.0),
        ({"frontier_not_before": float("nan")}, 0.0),
        ({"frontier_not_before": float("inf")}, 0.0),
        ({"frontier_not_before": True}, 0.0),
        ({"frontier_not_before": 10**400}, 0.0),
    ],
    ids=["not set", "whole", "fraction", "none", "text", "list", "nan", "infinite", "true", "no float"],
)
def test_a_request_may_say_when_it_may_be_sent(meta, when, caplog):
    assert not_before(Request(URL, meta=meta)) == when
    is_no_time = when == 0.0 and meta.get("frontier_not_before") is not None
    assert ["must be seconds since the epoch" in message for message in caplog.messages] == [True] * is_no_time


def answer(status, value):
    return Response(URL, status=status, headers={} if value is None else {"Retry-After": value})


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120.0), (" 7 ", 7.0), ("999999", 3600.0), ("0", None), ("-5", None), ("1.5", None), ("soon", None)],
)
def test_a_site_may_ask_for_so_many_seconds_and_gets_an_hour_at_most(status, value, seconds, caplog):
    assert retry_after(answer(status, value)) == seconds
    cut = [message for message in caplog.messages if "asks for a pause of 999999 seconds" in message]
    assert caplog.messages == cut
    assert len(cut) == (value == "999999")


def test_a_site_may_ask_for_a_time_of_day():
    later, earlier = (datetime.now(timezone.utc) + timedelta(minutes=minutes) for minutes in (10, -10))
    assert 500 < retry_after(answer(503, format_datetime(later, usegmt=True))) <= 600
    assert retry_after(answer(503, format_datetime(earlier, usegmt=True))) is None
    assert retry_after(answer(503, "Fri, 31 Dec 9999 23:59:59 GMT")) == 3600.0


@pytest.mark.parametrize("status", [200, 301, 404, 500])
def test_other_answers_ask_for_nothing(status):
    assert retry_after(answer(status, "120")) is None


@pytest.mark.parametrize("status", [429, 503])
def test_an_answer_that_does_not_say_so_asks_for_nothing(status):
    assert retry_after(answer(status, None)) is None
    assert retry_after(answer(status, b"\xff\xfe")) is None

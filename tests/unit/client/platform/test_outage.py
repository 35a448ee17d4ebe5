"""The lines of the log while writes to the platform fail."""

from __future__ import annotations

import logging

import pytest

from scrapy_ext.client import retry
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.retry import Outage

FULL = PlatformError("the disk is full")


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retry, "time", clock)
    return clock


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_many_writers_that_fail_make_one_warning_a_minute_with_a_count_and_the_remedy(clock, logged) -> None:
    away = Outage()
    away.remedy = "Press Ctrl-C twice."
    for second in range(59):
        clock.now = 1000.0 + second
        away.failed("store items", FULL)
        away.failed("store logs", FULL)
    assert [record.getMessage() for record in logged.records] == [
        "Cannot store items now, trying until it works: the disk is full. Press Ctrl-C twice."
    ]
    clock.now = 1060.0
    away.failed("store items", FULL)
    assert logged.records[1].getMessage() == (
        "Cannot store items, store logs for 60 s now (119 failures), trying until it works: the disk is full. "
        "Press Ctrl-C twice."
    )
    assert {record.levelno for record in logged.records} == {logging.WARNING}


def test_the_end_is_logged_when_everything_works_again(clock, logged) -> None:
    away = Outage()
    away.worked("store items")
    assert not logged.records
    away.failed("store items", FULL)
    away.failed("store logs", FULL)
    away.worked("store items")
    assert len(logged.records) == 1
    away.worked("store logs")
    away.worked("store logs")
    assert [record.getMessage() for record in logged.records[1:]] == [
        "The platform stores everything again, after 2 failures"
    ]


def test_the_next_outage_is_counted_anew_also_after_one_that_was_given_up(clock, logged) -> None:
    away = Outage()
    for _ in range(5):
        away.failed("store items", FULL)
    away.given_up("store items")
    away.failed("store items", FULL)
    away.worked("store items")
    assert [record.getMessage() for record in logged.records[1:]] == [
        "Cannot store items now, trying until it works: the disk is full.",
        "The platform stores everything again, after 1 failure",
    ]

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from scrapy_ext.client.retry import RETRY_AFTER_JITTER, Backoff, jittered, parse_retry_after


def test_waits_double_up_to_the_longest_and_are_spread():
    backoff = Backoff(1.0, 10.0)
    for failures, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (10_000, 10.0)):
        waits = [backoff.seconds(failures) for _ in range(200)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_what_the_server_says_is_never_undercut_and_hardly_exceeded():
    for _ in range(200):
        assert 7 <= jittered(7) <= 7 + RETRY_AFTER_JITTER
        assert 7 <= Backoff(1.0, 2.0).wait(9, 7) <= 7 + RETRY_AFTER_JITTER


@pytest.mark.parametrize(("value", "seconds"), [("0", 0), ("1", 1), (" 120 ", 120)])
def test_retry_after_is_read_in_seconds(value, seconds):
    assert parse_retry_after(value) == seconds


def test_retry_after_is_read_as_a_date():
    later = datetime.now(timezone.utc) + timedelta(seconds=100)
    assert 90 < (parse_retry_after(format_datetime(later, usegmt=True)) or 0) <= 100
    assert parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0


@pytest.mark.parametrize("value", [None, "", "soon", "-1", "1.5", "9" * 30, "١", "1 Oct 0709999999999 8:00 GMT"])
def test_a_retry_after_that_is_none_is_taken_as_absent(value):
    assert parse_retry_after(value) is None

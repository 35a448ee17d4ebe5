"""Next run of cron expressions, beside a plain definition that tries one minute after the other."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta, timezone

import pytest

from scrapy_ext.api.platform.cron import Cron


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)


def runs_at(cron: str, when: datetime) -> bool:
    """Meaning of an expression, minute by minute."""
    minute, hour, day, month, weekday = cron.split()
    if (
        minute not in ("*", str(when.minute))
        or hour not in ("*", str(when.hour))
        or month not in ("*", str(when.month))
    ):
        return False
    of_month, of_week = day == str(when.day), weekday == str(when.isoweekday() % 7)
    if "*" in (day, weekday):
        return (day == "*" or of_month) and (weekday == "*" or of_week)
    return of_month or of_week


def tried(cron: str, when: datetime, days: int) -> datetime | None:
    """Return the first minute that fits within so many days: each is tried whose minute and hour may fit."""
    minute, hour, *_ = cron.split()
    minutes, hours = ([int(field)] if field != "*" else range(most) for field, most in ((minute, 60), (hour, 24)))
    after = when.replace(second=0, microsecond=0)
    for number in range(days + 1):
        day = after.replace(hour=0, minute=0) + timedelta(days=number)
        for at in (day.replace(hour=hour, minute=minute) for hour in hours for minute in minutes):
            if after < at <= after + timedelta(days=days) and runs_at(cron, at):
                return at
    return None


def some(rng: random.Random, low: int, high: int, stars: float) -> str:
    return "*" if rng.random() < stars else str(rng.randint(low, high))


@pytest.mark.parametrize("seed", range(4))
def test_the_next_run_is_the_first_minute_that_fits(seed):
    rng = random.Random(seed)
    for _ in range(60):
        # Months are rare, so that what is tried by the minute is found within weeks.
        fields = [(0, 59, 0.3), (0, 23, 0.5), (1, 31, 0.6), (1, 12, 0.95), (0, 6, 0.6)]
        cron = " ".join(some(rng, *field) for field in fields)
        edge = rng.choice([utc(2028, 2, 28, 23, 59, 59), utc(2027, 12, 31, 23, 59), utc(2026, 3, 29, 0, 30)])
        when = rng.choice([edge, utc(2026, 1, 1) + timedelta(seconds=rng.randrange(3 * 365 * 86400))])
        expected = tried(cron, when, 40)
        got = Cron.parse(cron).next_after(when)
        if expected is not None:
            assert got == expected, (cron, when)
        else:
            assert got is None or got > when + timedelta(days=40), (cron, when)
            assert got is None or runs_at(cron, got), (cron, when)


def test_it_is_after_the_minute_given_even_when_that_is_one():
    cron = Cron.parse("30 4 * * *")
    assert cron.next_after(utc(2026, 5, 1, 4, 29, 59, 999_999)) == utc(2026, 5, 1, 4, 30)
    assert cron.next_after(utc(2026, 5, 1, 4, 30)) == utc(2026, 5, 2, 4, 30)
    assert cron.next_after(utc(2026, 5, 1, 4, 30, 59)) == utc(2026, 5, 2, 4, 30)


def test_days_of_the_month_and_of_the_week_together_mean_either():
    cron, when, found = Cron.parse("0 0 13 * 5"), utc(2026, 3, 1), []
    for _ in range(5):
        when = cron.next_after(when)
        found.append(when.day)
    assert found == [6, 13, 20, 27, 3]
    cron = Cron.parse("0 0 13 * 1")
    assert cron.next_after(utc(2026, 3, 9)) == utc(2026, 3, 13)


def test_sunday_is_zero():
    assert Cron.parse("0 0 * * 0").next_after(utc(2026, 3, 2)) == utc(2026, 3, 8)


def test_leap_days_are_found_at_once_over_a_century_without_one():
    cron = Cron.parse("0 0 29 2 *")
    assert cron.next_after(utc(2026, 1, 1)) == utc(2028, 2, 29)
    assert cron.next_after(utc(2096, 2, 29)) == utc(2104, 2, 29)
    assert cron.next_after(utc(2096, 2, 28, 23, 59)) == utc(2096, 2, 29)
    began = time.process_time()
    for _ in range(100):
        cron.next_after(utc(2096, 3, 1))
    assert time.process_time() - began < 5  # by the minute it would be 400 million


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4 *", "* * 31 11 *"])
def test_a_day_that_no_month_has_never_comes(cron):
    assert Cron.parse(cron).next_after(utc(2026, 1, 1)) is None


def test_a_day_that_no_month_has_does_not_keep_the_days_of_the_week_from_running():
    assert Cron.parse("0 0 31 2 1").next_after(utc(2026, 1, 1)) == utc(2026, 2, 2)


def test_the_end_of_the_calendar_is_the_end():
    assert Cron.parse("* * * * *").next_after(utc(9999, 12, 31, 23, 59)) is None
    assert Cron.parse("0 0 1 1 *").next_after(utc(9999, 2, 1)) is None


def test_other_zones_are_converted_and_no_zone_is_refused():
    zone = timezone(timedelta(hours=5, minutes=30))
    assert Cron.parse("0 4 * * *").next_after(datetime(2026, 5, 1, 9, 15, tzinfo=zone)) == utc(2026, 5, 1, 4)
    with pytest.raises(ValueError, match="zone"):
        Cron.parse("0 4 * * *").next_after(utc(2026, 5, 1).replace(tzinfo=None))

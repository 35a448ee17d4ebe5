"""Cron expressions of five fields (platform-api.md, Periodic jobs): each is a number or ``*``, and times are UTC."""

from __future__ import annotations

import re
from calendar import month_name, monthrange
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from scrapy_ext.api.violations import ContractError, Violation, refused

#: Days of each month, in leap years.
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
#: Months between two 29 Februaries around a century without a leap day.
_LONGEST_WAIT: Final = 8 * 12


class Cron(NamedTuple):
    """A cron expression: each field a number, or None for ``*``."""

    minute: int | None
    hour: int | None
    day_of_month: int | None
    month: int | None
    day_of_week: int | None

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Parse five fields; raises :class:`ContractError` with all violations."""
        pieces = text.split()
        if len(pieces) != len(_CRON_FIELDS):
            raise refused(
                "cron",
                f"must have five fields, got {len(pieces)}",
                "Write minute hour day-of-month month day-of-week, such as 30 4 * * *.",
            )
        faults = [
            fault
            for piece, (name, low, high) in zip(pieces, _CRON_FIELDS, strict=True)
            for fault in _part_faults(piece, name, low, high)
        ]
        if faults:
            raise ContractError(faults)
        return cls(*(None if piece == "*" else int(piece) for piece in pieces))

    @classmethod
    def parse_new(cls, text: str) -> Cron:
        """Parse the expression of a new schedule; raises :class:`ContractError` also for one that never runs."""
        cron = cls.parse(text)
        day, month = cron.day_of_month, cron.month
        if day is not None and month is not None and cron.day_of_week is None and day > _DAYS[month - 1]:
            rule = f"never runs: {month_name[month]} has no day {day}"
            raise refused("cron", rule, f"Write a day up to {_DAYS[month - 1]}, or another month.")
        return cron

    def next_after(self, when: datetime) -> datetime | None:
        """Return the next minute (UTC) of a run after ``when``, which has a time zone; None when there is none.

        With both a day of month and a day of week, a day matches either, as in cron.
        """
        if when.tzinfo is None:
            raise ValueError("a time with a zone is needed")
        try:
            first = when.astimezone(timezone.utc).replace(second=0, microsecond=0) + timedelta(minutes=1)
        except OverflowError:
            return None
        for day in self._days_from(first.date()):
            at = self._minute_from(first.time() if day == first.date() else time.min)
            if at is not None:
                return datetime.combine(day, at, timezone.utc)
        return None

    def _days_from(self, first: date) -> Iterator[date]:
        """Yield the days of runs. Iterating over months finds 29 February quickly."""
        for months in range(_LONGEST_WAIT + 1):
            years, month = divmod(first.month - 1 + months, 12)
            year = first.year + years
            if year > date.max.year:
                return
            if self.month not in (None, month + 1):
                continue
            weekday, length = monthrange(year, month + 1)  # Monday is 0
            for day in range(first.day if months == 0 else 1, length + 1):
                if self._runs_on(day, (weekday + day) % 7):
                    yield date(year, month + 1, day)

    def runs_on(self, day: date) -> bool:
        """Return true for a day (UTC) with a run."""
        return self.month in (None, day.month) and self._runs_on(day.day, day.isoweekday() % 7)

    def _runs_on(self, day: int, day_of_week: int) -> bool:
        if self.day_of_month is not None and self.day_of_week is not None:
            return day == self.day_of_month or day_of_week == self.day_of_week
        return self.day_of_month in (None, day) and self.day_of_week in (None, day_of_week)

    def _minute_from(self, first: time) -> time | None:
        """Return the first minute of a run on a day, not before ``first``."""
        for hour in range(first.hour, 24):
            if self.hour in (None, hour):
                earliest = first.minute if hour == first.hour else 0
                if self.minute is None:
                    return time(hour, earliest)
                if self.minute >= earliest:
                    return time(hour, self.minute)
        return None

    def runs_by_hour(self) -> list[float]:
        """Return the average number of runs in each hour of the day, over a year."""
        days = 1.0
        if self.month is not None:
            days /= 12
        if self.day_of_month is not None and self.day_of_week is not None:
            # As in cron, a day matches either field.
            days *= 1 / 30 + 1 / 7
        elif self.day_of_month is not None:
            days /= 30
        elif self.day_of_week is not None:
            days /= 7
        runs = days * (60 if self.minute is None else 1)
        return [runs if self.hour in (None, hour) else 0.0 for hour in range(24)]


#: Name, lowest and highest value. Sunday is 0.
_CRON_FIELDS: Final = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 6),
)


def _part_faults(piece: str, name: str, low: int, high: int) -> Iterator[Violation]:
    if piece == "*":
        return
    if not re.fullmatch("[0-9]{1,2}", piece, re.ASCII):
        yield Violation(
            "cron",
            f"{name} must be a number or *, got {piece!r}: ranges, steps and lists are not supported",
            "Use one schedule for each value.",
        )
    elif not low <= int(piece) <= high:
        yield Violation("cron", f"{name} must be {low} to {high}, got {piece}", f"Write {low}, or * for all.")

"""Calendar of the runs of periodic jobs in the seven days from today, in UTC.

An expression has numbers and ``*`` alone, so that each day of a schedule has one run, 24, 60 or 1,440 of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from typing import Final, NamedTuple

from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.api.violations import ContractError

_DAYS: Final = 7
#: Maximum entries of a day in a row; the others are counted.
_SHOWN: Final = 6


class Entry(NamedTuple):
    """Runs of a schedule on a day: their number, the time (ms) of the first, and all times, in few characters and in
    words."""

    schedule: int
    first: int
    runs: int
    times: str
    words: str
    has_ended: bool


class Cell(NamedTuple):
    entries: Sequence[Entry]
    more: int


class Row(NamedTuple):
    """The schedules with the same tasks."""

    label: str
    days: Sequence[Cell]


class Week(NamedTuple):
    """``days``: the first time (ms) of each; ``runs``: their number on each day."""

    days: Sequence[int]
    rows: Sequence[Row]
    runs: Sequence[int]


def week_of(schedules: Iterable[PeriodicJob], now: int) -> Week:
    """Return the calendar of enabled schedules from the day of ``now`` (ms) on, rows in the order of their times."""
    first = datetime.fromtimestamp(now / 1000, timezone.utc).date()
    days = [first + timedelta(days=each) for each in range(_DAYS)]
    found: dict[str, list[list[Entry]]] = {}
    for schedule in schedules:
        try:
            cron = Cron.parse(schedule.cron)
        except ContractError:  # another writer may have stored it
            continue
        label = ", ".join(task.name for task in schedule.tasks)
        row = found.setdefault(label, [[] for _ in days])
        for place, day in enumerate(days):
            if cron.runs_on(day):
                row[place].append(_entry(schedule.id, cron, day, now))
    rows = [Row(label, [_cell(entries) for entries in row]) for label, row in found.items() if any(row)]
    runs = [sum(entry.runs for row in found.values() for entry in row[place]) for place in range(_DAYS)]
    return Week([_milliseconds(day) for day in days], sorted(rows, key=_place), runs)


def _cell(entries: list[Entry]) -> Cell:
    entries.sort(key=lambda each: (each.first, each.schedule))
    return Cell(entries[:_SHOWN], max(len(entries) - _SHOWN, 0))


def _place(row: Row) -> tuple[int, str]:
    """Return the time of the day of a row's first run, and its label."""
    return min(entry.first % 86_400_000 for cell in row.days for entry in cell.entries), row.label


def _entry(number: int, cron: Cron, day: date, now: int) -> Entry:
    first = _milliseconds(day, cron.hour or 0, cron.minute or 0)
    last = _milliseconds(day, 23 if cron.hour is None else cron.hour, 59 if cron.minute is None else cron.minute)
    runs, times, words = _described(cron)
    return Entry(number, first, runs, times, words, last <= now)


def _described(cron: Cron) -> tuple[int, str, str]:
    """Return the number of runs on a day, and their times in few characters and in words."""
    match cron.hour, cron.minute:
        case None, None:
            return 1440, "1440×", "every minute"
        case None, minute:
            return 24, f"24×:{minute:02}", f"every hour at minute {minute}"
        case hour, None:
            return 60, f"60×{hour:02}h", f"every minute from {hour:02}:00 to {hour:02}:59"
        case hour, minute:
            return 1, f"{hour:02}:{minute:02}", f"at {hour:02}:{minute:02}"


def _milliseconds(day: date, hour: int = 0, minute: int = 0) -> int:
    return int(datetime.combine(day, time(hour, minute), timezone.utc).timestamp()) * 1000

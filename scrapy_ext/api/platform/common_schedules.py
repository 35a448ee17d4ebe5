"""Common schedules as cron expressions. An expression has no ranges, steps and lists, so some need several."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.violations import refused

#: Maximum expressions that are made together.
MAX_CRONS: Final = 31
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


class CommonSchedule(NamedTuple):
    """A schedule with a title; ``crons`` returns its expressions for an hour and a minute."""

    name: str
    title: str
    crons: Callable[[int, int], list[str]]


def _every(hours: int) -> Callable[[int, int], list[str]]:
    return lambda hour, minute: [f"{minute} {each} * * *" for each in range(hour % hours, 24, hours)]


def _on(*days: int) -> Callable[[int, int], list[str]]:
    return lambda hour, minute: [f"{minute} {hour} * * {day}" for day in days]


COMMON: Final = (
    CommonSchedule("hourly", "every hour, at the minute of the time", lambda _, minute: [f"{minute} * * * *"]),
    CommonSchedule("every-6-hours", "every 6 hours", _every(6)),
    CommonSchedule("every-12-hours", "every 12 hours", _every(12)),
    CommonSchedule("daily", "every day", lambda hour, minute: [f"{minute} {hour} * * *"]),
    CommonSchedule("weekdays", "Monday to Friday", _on(1, 2, 3, 4, 5)),
    CommonSchedule("weekend", "Saturday and Sunday", _on(6, 0)),
    CommonSchedule("weekly", "every Monday", _on(1)),
    CommonSchedule("monthly", "on the first day of each month", lambda hour, minute: [f"{minute} {hour} 1 * *"]),
    CommonSchedule(
        "quarterly",
        "on the first day of each quarter",
        lambda hour, minute: [f"{minute} {hour} 1 {month} *" for month in (1, 4, 7, 10)],
    ),
)


def crons_of(name: str, time: str) -> list[str]:
    """Return the expressions of a common schedule at a time (``04:30``); raises :class:`ContractError`."""
    found = next((each for each in COMMON if each.name == name), None)
    if found is None:
        raise refused("schedule", f"must be one of {', '.join(each.name for each in COMMON)}", "Choose one of them.")
    at = _TIME.fullmatch(time.strip())
    if at is None:
        raise refused("at", f"must be a time of the day, got {time[:20]!r}", "Write it as 04:30.")
    return found.crons(int(at[1]), int(at[2]))


def next_times(crons: Sequence[str], after: datetime, number: int) -> list[datetime]:
    """Return the next times of several expressions together; raises :class:`ContractError` for a wrong one."""
    times = [_times(Cron.parse_new(cron), after, number) for cron in crons[:MAX_CRONS]]
    found = dict.fromkeys(heapq.merge(*times))
    return list(found)[:number]


def _times(cron: Cron, after: datetime, number: int) -> Iterator[datetime]:
    when: datetime | None = after
    for _ in range(number):
        if when is None or (when := cron.next_after(when)) is None:
            return
        yield when

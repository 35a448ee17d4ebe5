"""Periodic jobs (platform-api.md, Periodic job; Cron expression)."""

from __future__ import annotations

import contextlib
import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, MAX_NAME, MAX_PRIORITY, MIN_PRIORITY, SCRIPT, is_name
from scrapy_ext.api.violations import ContractError, Violation, refused


class PeriodicType(str, Enum):
    """The kind of a schedule's tasks."""

    SPIDER = "spider"
    SCRIPT = "script"


class Task(msgspec.Struct, kw_only=True):
    """A task. A script's name starts with ``py:``; ``jobq_id`` is the spider part of its jobs' keys."""

    name: str
    priority: int = DEFAULT_PRIORITY
    spider_args: dict[str, Any] = {}
    script_args: str = ""
    jobq_id: int | None = None


class PeriodicJob(msgspec.Struct, kw_only=True):
    """A schedule; ``disabled`` pauses it."""

    id: int
    project: int
    disabled: bool
    type: str
    description: str
    cron: str
    addtags: list[str]
    tasks: list[Task]


class PeriodicPage(msgspec.Struct):
    """A page of schedules; ``count`` covers all pages, ``next`` and ``previous`` are URLs, ``meta`` has
    ``suggested_hour``."""

    count: int
    next: str | None
    previous: str | None
    results: list[PeriodicJob]
    meta: dict[str, str]


#: Fields that the user sets.
EDITABLE: Final = ("cron", "tasks", "addtags", "disabled", "description")
#: Fields that are accepted unchanged.
_READ_ONLY: Final = ("id", "project", "type")
#: Maximum schedules per page.
MAX_PER_PAGE: Final = 1000
MAX_TASKS: Final = 100
MAX_TAGS: Final = 100
#: Maximum characters of a description.
MAX_DESCRIPTION: Final = 2000
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
            for fault in _cron_faults(piece, name, low, high)
        ]
        if faults:
            raise ContractError(faults)
        return cls(*(None if piece == "*" else int(piece) for piece in pieces))

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


def _cron_faults(piece: str, name: str, low: int, high: int) -> Iterator[Violation]:
    if piece == "*":
        return
    if not re.fullmatch("[0-9]{1,2}", piece, re.ASCII):
        yield Violation(
            "cron",
            f"{name} must be a number or *, got {piece!r}: ranges, steps and lists are not supported",
            "Use one schedule for each value.",
        )
    elif not low <= int(piece) <= high:
        yield Violation("cron", f"{name} must be {low} to {high}, got {piece}", "Correct the number.")


def suggested_hour(load: Mapping[str, int]) -> int:
    """Return the hour (UTC) with the least load, given the number of tasks by cron expression.

    Among equal hours, the one with the least loaded neighbours, then the earliest.
    """
    runs = [0.0] * 24
    for cron, tasks in load.items():
        # A stored expression may never run.
        with contextlib.suppress(ContractError):
            for hour, of_one in enumerate(Cron.parse(cron).runs_by_hour()):
                runs[hour] += of_one * tasks
    return min(range(24), key=lambda hour: (runs[hour], runs[hour - 1] + runs[(hour + 1) % 24], hour))


def type_of(tasks: Sequence[Task]) -> PeriodicType:
    """Return the kind of a schedule with these tasks."""
    return PeriodicType.SCRIPT if tasks and tasks[0].name.startswith(SCRIPT) else PeriodicType.SPIDER


def schedule_faults(schedule: PeriodicJob) -> Iterator[Violation]:
    try:
        Cron.parse(schedule.cron)
    except ContractError as error:
        yield from error.violations
    if not 1 <= len(schedule.tasks) <= MAX_TASKS:
        yield Violation("tasks", f"must be 1 to {MAX_TASKS}, got {len(schedule.tasks)}", 'Write [{"name": "spider"}].')
    if len({task.name.startswith(SCRIPT) for task in schedule.tasks}) > 1:
        yield Violation("tasks", "must be all spiders or all scripts", "Make two periodic jobs.")
    for task in schedule.tasks:
        yield from task_faults(task)
    if len(schedule.addtags) > MAX_TAGS or not all(map(is_name, schedule.addtags)):
        yield Violation("addtags", f"must be at most {MAX_TAGS} tags of 1 to {MAX_NAME} characters", "Correct them.")
    if len(schedule.description) > MAX_DESCRIPTION:
        yield Violation("description", f"must be at most {MAX_DESCRIPTION} characters", "Shorten it.")


def task_faults(task: Task) -> Iterator[Violation]:
    if not is_name(task.name):
        yield Violation("tasks.name", f"must be 1 to {MAX_NAME} characters", "Name a spider, or write py:SCRIPT.")
    if not MIN_PRIORITY <= task.priority <= MAX_PRIORITY:
        yield Violation(
            "tasks.priority", f"must be {MIN_PRIORITY} to {MAX_PRIORITY}, got {task.priority}", "Correct the number."
        )
    if task.script_args and not task.name.startswith(SCRIPT):
        yield Violation("tasks.script_args", "belongs to a script", "Use spider_args, or a name starting with py:.")


def blank(project: int) -> PeriodicJob:
    """Return a schedule without tasks and times."""
    return PeriodicJob(id=0, project=project, disabled=False, type="", description="", cron="", addtags=[], tasks=[])


def edited(schedule: PeriodicJob, fields: dict[str, Any]) -> PeriodicJob:
    """Return the schedule with changed fields; raises :class:`ContractError`."""
    for name, value in fields.items():
        if name not in EDITABLE and name not in _READ_ONLY:
            raise refused(name[:60], "is not a field of a periodic job", f"The fields are {', '.join(EDITABLE)}.")
        _check_type(name, value)
    known = {name: fields[name] for name in EDITABLE if name in fields}
    changed = msgspec.convert({**msgspec.to_builtins(schedule), **known}, PeriodicJob)
    changed.type = type_of(changed.tasks).value
    faults = list(schedule_faults(changed))
    if faults:
        raise ContractError(faults)
    for name in _READ_ONLY:
        wanted, present = fields.get(name), getattr(changed if name == "type" else schedule, name)
        if wanted is not None and wanted != present:
            raise refused(name, f"is {present!r} and cannot be changed", "Leave it out.")
    return changed


#: Type of each field, and its name in messages.
_TYPES: Final = {
    "cron": (str, "text of five fields"),
    "description": (str, "text"),
    "disabled": (bool, "true or false"),
    "addtags": (list[str], "an array of strings"),
    "tasks": (list[Task], 'an array of objects such as {"name": "spider"}'),
}


def _check_type(name: str, value: Any) -> None:
    if name not in _TYPES:
        return
    kind, words = _TYPES[name]
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise refused(name, f"must be {words}: {error}", "Correct the field.") from None
    unknown = {field for task in value for field in task} - set(Task.__struct_fields__) if name == "tasks" else ()
    if unknown:
        raise refused("tasks", f"have no field {min(unknown)[:60]!r}", f"Use {', '.join(Task.__struct_fields__)}.")

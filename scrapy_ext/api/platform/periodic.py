"""Periodic jobs (platform-api.md, Periodic job; Cron expression)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, MAX_PRIORITY, MIN_PRIORITY
from scrapy_ext.api.violations import ContractError, Violation


class PeriodicType(str, Enum):
    """What a schedule runs."""

    SPIDER = "spider"
    SCRIPT = "script"


class Task(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What to run. A script's name starts with ``py:``."""

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


class Cron(NamedTuple):
    """A cron expression: each field a number, or None for ``*``."""

    minute: int | None
    hour: int | None
    day_of_month: int | None
    month: int | None
    day_of_week: int | None

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Read five fields; raises :class:`ContractError` with every field that is wrong."""
        pieces = text.split()
        if len(pieces) != len(_CRON_FIELDS):
            raise ContractError(
                [
                    Violation(
                        "cron",
                        f"must have five fields, got {len(pieces)}",
                        "Write minute hour day-of-month month day-of-week, such as 30 4 * * *.",
                    )
                ]
            )
        faults = [
            fault
            for piece, (name, low, high) in zip(pieces, _CRON_FIELDS, strict=True)
            for fault in _cron_faults(piece, name, low, high)
        ]
        if faults:
            raise ContractError(faults)
        return cls(*(None if piece == "*" else int(piece) for piece in pieces))


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


def task_faults(task: Task) -> Iterator[Violation]:
    """What is wrong with a task."""
    if not MIN_PRIORITY <= task.priority <= MAX_PRIORITY:
        yield Violation(
            "tasks.priority", f"must be {MIN_PRIORITY} to {MAX_PRIORITY}, got {task.priority}", "Correct the number."
        )
    if task.script_args and not task.name.startswith("py:"):
        yield Violation("tasks.script_args", "belongs to a script", "Use spider_args, or a name starting with py:.")

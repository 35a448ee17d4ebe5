"""Periodic jobs (platform-api.md, Periodic job; Cron expression)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, fields_of
from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.jobs import (
    DEFAULT_PRIORITY,
    MAX_NAME,
    MAX_PRIORITY,
    MIN_PRIORITY,
    SCRIPT,
    is_name,
    workers_faults,
)
from scrapy_ext.api.platform.worker_bounds import BOUNDS_HELP, BOUNDS_PATTERN, JOB_WORKERS
from scrapy_ext.api.violations import ContractError, Violation, refused


class PeriodicType(str, Enum):
    """The kind of a schedule's tasks."""

    SPIDER = "spider"
    SCRIPT = "script"


_Name = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_NAME})]
_Workers = Annotated[str, Meta(description=BOUNDS_HELP, extra_json_schema={"pattern": BOUNDS_PATTERN})]
#: Maximum schedules per page.
MAX_PER_PAGE: Final = 1000
MAX_TASKS: Final = 100
MAX_TAGS: Final = 100
#: Maximum characters of a description.
MAX_DESCRIPTION: Final = 2000


class Task(msgspec.Struct, kw_only=True):
    """A task. A script's name starts with ``py:``; ``jobq_id`` is the spider part of its jobs' keys."""

    name: _Name
    priority: Annotated[int, Meta(extra_json_schema={"minimum": MIN_PRIORITY, "maximum": MAX_PRIORITY})] = (
        DEFAULT_PRIORITY
    )
    spider_args: dict[str, Any] = {}
    script_args: Annotated[str, Meta(description="with a name that begins with py:")] = ""
    jobq_id: Annotated[int | None, Meta(description="follows from the name")] = None
    job_workers: _Workers | msgspec.UnsetType = msgspec.UNSET


def _cron_faults(_: str, text: str) -> Iterator[Violation]:
    try:
        Cron.parse(text)
    except ContractError as error:
        yield from error.violations


def _tasks_faults(field: str, values: Sequence[Any]) -> Iterator[Violation]:
    tasks = msgspec.convert(values, list[Task])
    if not 1 <= len(tasks) <= MAX_TASKS:
        yield Violation(field, f"must be 1 to {MAX_TASKS}, got {len(tasks)}", 'Write [{"name": "spider"}].')
    if len({task.name.startswith(SCRIPT) for task in tasks}) > 1:
        yield Violation(field, "must be all spiders or all scripts", "Make two periodic jobs.")
    for task in tasks:
        yield from _task_faults(field, task)


def _task_faults(field: str, task: Task) -> Iterator[Violation]:
    if not is_name(task.name):
        rule = f"must be 1 to {MAX_NAME} characters, and not . or .."
        yield Violation(f"{field}.name", rule, "Name a spider, or write py:SCRIPT.")
    if not MIN_PRIORITY <= task.priority <= MAX_PRIORITY:
        rule = f"must be {MIN_PRIORITY} to {MAX_PRIORITY}, got {task.priority}"
        yield Violation(f"{field}.priority", rule, "Write 2, the usual one, or leave it out.")
    if task.script_args and not task.name.startswith(SCRIPT):
        yield Violation(f"{field}.script_args", "belongs to a script", "Use spider_args, or a name starting with py:.")
    if task.job_workers is not msgspec.UNSET:
        yield from workers_faults(f"{field}.{JOB_WORKERS}", task.name, task.job_workers)


def _tags_faults(field: str, tags: Sequence[str]) -> Iterator[Violation]:
    if len(tags) > MAX_TAGS or not all(map(is_name, tags)):
        yield Violation(field, f"must be at most {MAX_TAGS} tags of 1 to {MAX_NAME} characters", 'Write ["weekly"].')


def _description_faults(field: str, text: str) -> Iterator[Violation]:
    if len(text) > MAX_DESCRIPTION:
        yield Violation(field, f"must be at most {MAX_DESCRIPTION} characters", "Shorten it.")


class NewSchedule(msgspec.Struct, kw_only=True):
    """A schedule as it is added."""

    cron: Annotated[
        str,
        Meta(
            description="Five fields in UTC, each a number or *: minute, hour, day of month, month, day of week (0 is "
            'Sunday). "30 4 * * *" is every day at 04:30. No ranges, steps or lists: add one schedule for each.',
            extra_json_schema={"pattern": r"^([0-9]{1,2}|\*)( ([0-9]{1,2}|\*)){4}$"},
        ),
        Field(
            "must be text of five fields",
            "Write 30 4 * * * for 04:30 on each day (UTC).",
            check=_cron_faults,
            help="five fields in quotes: minute hour day-of-month month day-of-week; a number or *",
            option="cron",
            metavar="CRON",
        ),
    ]
    tasks: Annotated[
        list[Annotated[Task, Meta(extra_json_schema={"unevaluatedProperties": False})]],
        Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_TASKS}),
        Field(
            'must be an array of objects such as {"name": "spider"}', 'Write [{"name": "spider"}].', check=_tasks_faults
        ),
    ]
    addtags: Annotated[
        list[_Name],
        Meta(extra_json_schema={"maxItems": MAX_TAGS}),
        Field(
            "must be an array of strings",
            'Write ["weekly"].',
            check=_tags_faults,
            label="Tags of its jobs, one per line",
        ),
    ] = []
    description: Annotated[
        str,
        Meta(description="Description of the schedule.", extra_json_schema={"maxLength": MAX_DESCRIPTION}),
        Field(
            "must be text",
            "Write text in quotes.",
            check=_description_faults,
            metavar="TEXT",
            help="description of the periodic job",
            label="Description",
            lines=2,
        ),
    ] = ""
    #: True: it does not run until it is resumed.
    disabled: Annotated[
        bool,
        Field(
            "must be true or false",
            "Write true or false, without quotes.",
            option="--paused",
            help="do not run it until it is resumed",
            label="paused",
        ),
    ] = False


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


#: Fields that are accepted unchanged.
_READ_ONLY: Final = ("id", "project", "type")


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


def schedule_faults(values: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of the fields that people set, all of which are given."""
    for name, each in fields_of(NewSchedule).items():
        yield from each.faults(values[name])


def blank(project: int) -> PeriodicJob:
    """Return a schedule without tasks and times."""
    return PeriodicJob(id=0, project=project, disabled=False, type="", description="", cron="", addtags=[], tasks=[])


def edited(schedule: PeriodicJob, fields: Mapping[str, Any]) -> PeriodicJob:
    """Return the schedule with changed fields; raises :class:`ContractError`."""
    known = fields_of(NewSchedule)
    for name in fields:
        if name not in known and name not in _READ_ONLY:
            raise refused(name[:60], "is not a field of a periodic job", f"The fields are {', '.join(known)}.")
    _check_names(fields.get("tasks"))
    stored = msgspec.to_builtins(schedule)
    wanted = {**stored, **{name: fields[name] for name in known if name in fields}}
    if faults := list(schedule_faults(wanted)):
        raise ContractError(faults)
    changed = msgspec.convert(wanted, PeriodicJob)
    changed.type = type_of(changed.tasks).value
    if "cron" in fields:  # a stored one may be older than this check, and must be changed all the same
        Cron.parse_new(changed.cron)
    for name in _READ_ONLY:
        given, present = fields.get(name), getattr(changed if name == "type" else schedule, name)
        if given is not None and given != present:
            rule = f"is {present!r} and cannot be changed" if present else "is chosen by the server"
            raise refused(name, rule, "Leave it out.")
    return changed


def _check_names(tasks: object) -> None:
    """Raise :class:`ContractError` for a task with an unknown field."""
    given = {name for task in tasks if isinstance(task, dict) for name in task} if isinstance(tasks, list) else set()
    if unknown := given - set(Task.__struct_fields__):
        known = ", ".join(Task.__struct_fields__)
        raise refused("tasks", f"have no field {min(unknown)[:60]!r}", f"Use {known}.")

"""``scrapy platform schedule``: periodic jobs."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.masking import hidden
from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.periodic import MAX_PER_PAGE, NewSchedule, PeriodicJob
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.repeated_names import repeated_names
from scrapy_ext.commands.fields import given_fields, option_of
from scrapy_ext.commands.options import YES, argument, whole_number
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.selection import confirm
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View, with_actions
from scrapy_ext.commands.subcommands.run import JOB_OPTIONS, SPIDER, script_args
from scrapy_ext.commands.text import counted, shown, with_workers

Record = Mapping[str, Any]


def _tasks(record: Record) -> str:
    return ", ".join(" ".join([with_workers(task["name"], task), *_arguments(task)]) for task in record["tasks"])


def _arguments(task: Record) -> list[str]:
    given = [f"{name}={shown(value)}" for name, value in hidden(task.get("spider_args") or {}).items()]
    return [*given, task["script_args"]] if task.get("script_args") else given


_COLUMNS: Final = (
    Column.field("id", right=True),
    Column.field("cron", "cron (UTC)"),
    Column("next run (UTC)", lambda record: str(record["next"] or "paused")[:16].replace("T", " ")),
    Column("runs", _tasks),
    Column("tags", lambda record: ", ".join(record["addtags"])),
    Column.field("description"),
)


def _json(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"must be JSON: {error}") from None
    for repeated in repeated_names(text):
        raise argparse.ArgumentTypeError(f"has {repeated.field} more than once; give it once")
    return found


async def _list(view: View) -> None:
    schedules: list[PeriodicJob] = []
    while True:
        page = await view.client.periodic.list(view.project, count=MAX_PER_PAGE, offset=len(schedules))
        schedules += page.results
        if not page.results or len(schedules) >= page.count:
            break
    await _shown(view, *schedules, note=f"periodic jobs of project {view.project}: {len(schedules)}")


async def _show(view: View) -> None:
    await _shown(view, await _get(view, view.options.id))


async def _add(view: View) -> None:
    options = view.options
    Cron.parse_new(options.cron)
    task: dict[str, Any] = {"name": options.spider}
    if options.priority is not None:
        task["priority"] = options.priority
    if options.arguments:
        task["spider_args"] = dict(options.arguments)
    if options.workers is not None:
        task[JOB_WORKERS] = options.workers
    if arguments := script_args(options):
        task["script_args"] = arguments
    fields = {"description": "", **given_fields(NewSchedule, options), "tasks": [task], "addtags": options.tag}
    await _shown(view, await view.client.periodic.create(view.project, fields))


async def _edit(view: View) -> None:
    options = view.options
    fields = {name: value for name in ("cron", "description", "tasks") if (value := getattr(options, name)) is not None}
    if options.add_tag or options.remove_tag:
        present = (await _get(view, options.id)).addtags
        kept = [tag for tag in dict.fromkeys([*present, *options.add_tag]) if tag not in options.remove_tag]
        fields["addtags"] = kept
    if not fields:
        raise CommandError("no change is given; see `scrapy platform schedule edit --help`")
    await _shown(view, await _changed(view, options.id, fields))


async def _pause(view: View) -> None:
    disabled = view.options.action == "pause"
    await _shown(view, *[await _changed(view, number, {"disabled": disabled}) for number in view.options.id])


async def _delete(view: View) -> None:
    schedules = [await _get(view, number) for number in view.options.id]
    is_one = len(schedules) == 1
    jobs = f"periodic job {schedules[0].id}" if is_one else f"{len(schedules)} periodic jobs"
    await confirm(view, f"Delete {jobs}? Jobs that it started remain.")
    for schedule in schedules:
        await view.client.periodic.delete(view.project, schedule.id)
    await view.output.note(f"{counted(len(schedules), 'periodic job')} {'was' if is_one else 'were'} deleted")


async def _get(view: View, number: int) -> PeriodicJob:
    return await view.found(view.client.periodic.get(view.project, number), _unknown(view, number))


async def _changed(view: View, number: int, fields: Mapping[str, Any]) -> PeriodicJob:
    return await view.found(view.client.periodic.update(view.project, number, fields), _unknown(view, number))


def _unknown(view: View, number: int) -> str:
    return f"project {view.project} has no periodic job {number}; `scrapy platform schedule` lists them"


async def _shown(view: View, *schedules: PeriodicJob, note: str = "") -> None:
    now = dt.datetime.now(dt.timezone.utc)
    await view.show([_record(schedule, now) for schedule in schedules], _COLUMNS, note)


def _record(schedule: PeriodicJob, now: dt.datetime) -> dict[str, Any]:
    """Return the schedule with its next run; None while it is paused, or when its day never occurs."""
    following = None if schedule.disabled else Cron.parse(schedule.cron).next_after(now)
    next_run = following.strftime("%Y-%m-%dT%H:%M:%SZ") if following is not None else None
    return {**msgspec.to_builtins(schedule), "next": next_run}


_ID: Final = argument("id", type=whole_number, metavar="ID", help="number of the periodic job, as list shows it")
_IDS: Final = argument(
    "id", type=whole_number, nargs="+", metavar="ID", help="number of a periodic job, as list shows it"
)
_DESCRIPTION, _CRON = (option_of(NewSchedule, name) for name in ("description", "cron"))
_ADD: Final = (_CRON, SPIDER, *JOB_OPTIONS, _DESCRIPTION, option_of(NewSchedule, "disabled"))
_EDIT: Final = (
    _ID,
    argument("--cron", metavar="CRON", help="new cron expression"),
    _DESCRIPTION,
    argument("--add-tag", action="append", default=[], metavar="TAG", help="add this tag to its jobs"),
    argument("--remove-tag", action="append", default=[], metavar="TAG", help="remove this tag from its jobs"),
    argument("--tasks", type=_json, metavar="JSON", help='tasks, as [{"name": "SPIDER", "spider_args": {}}]'),
)

SUBCOMMANDS: Final = (
    with_actions(
        "schedule",
        (
            CommandAction("list", "list periodic jobs with their next run", _list),
            CommandAction("show", "show a periodic job", _show, (_ID,)),
            CommandAction("add", "add a periodic job that runs a spider or a script", _add, _ADD),
            CommandAction("edit", "change the given fields of a periodic job", _edit, _EDIT),
            CommandAction("pause", "pause periodic jobs until they are resumed", _pause, (_IDS,)),
            CommandAction("resume", "resume paused periodic jobs", _pause, (_IDS,)),
            CommandAction("delete", "delete periodic jobs", _delete, (YES, _IDS)),
        ),
        (
            ("scrapy platform schedule", "periodic jobs, with their next runs"),
            ("scrapy platform schedule add '30 4 * * *' books --tag nightly", "every day at 4:30 UTC"),
            ("scrapy platform schedule edit 3 --cron '0 5 * * 1'", "change the time: on Mondays at 5:00"),
            ("scrapy platform schedule pause 3", "it does not run until it is resumed"),
        ),
        takes_script=True,
    ),
)

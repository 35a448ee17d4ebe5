"""``scrapy platform schedule``: periodic jobs."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.periodic import MAX_PER_PAGE, Cron, PeriodicJob
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.commands.selection import add_yes_option, confirm
from scrapy_ext.commands.subcommand import Action, CommandError, View, add_view_options, with_actions
from scrapy_ext.commands.subcommands.run import add_job_options, add_spider_argument, script_args
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import shown

Record = Mapping[str, Any]


def _tasks(record: Record) -> str:
    return ", ".join(" ".join([task["name"], *_arguments(task)]) for task in record["tasks"])


def _arguments(task: Record) -> list[str]:
    given = [f"{name}={shown(value)}" for name, value in (task.get("spider_args") or {}).items()]
    return [*given, task["script_args"]] if task.get("script_args") else given


_COLUMNS: Final = (
    Column.field("id", right=True),
    Column.field("cron", "cron (UTC)"),
    Column("next run (UTC)", lambda record: str(record["next"] or "paused")[:16].replace("T", " ")),
    Column("runs", _tasks),
    Column("tags", lambda record: ", ".join(record["addtags"])),
    Column.field("description"),
)


def _id_argument(parser: argparse.ArgumentParser, count: str | None = None) -> None:
    # Of one, argparse gives the number itself.
    parser.add_argument("id", type=_number, nargs=count, metavar="ID", help="its number, as list shows it")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)


def _several(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser, "+")
    add_view_options(parser)


def _one(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser)
    add_view_options(parser)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    add_yes_option(parser)
    _several(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cron", metavar="CRON", help="five fields in quotes: minute hour day-of-month month day-of-week; a number or *"
    )
    add_spider_argument(parser)
    add_job_options(parser)
    parser.add_argument("--description", metavar="TEXT", help="what it is for")
    parser.add_argument("--paused", action="store_true", help="do not run it yet")
    add_view_options(parser)


def _edit_options(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser)
    parser.add_argument("--cron", metavar="CRON", help="when it runs")
    parser.add_argument("--description", metavar="TEXT", help="what it is for")
    parser.add_argument("--add-tag", action="append", default=[], metavar="TAG", help="add a tag to its jobs")
    parser.add_argument("--remove-tag", action="append", default=[], metavar="TAG", help="remove one")
    parser.add_argument(
        "--tasks", type=_json, metavar="JSON", help='what it runs, as [{"name": "SPIDER", "spider_args": {}}]'
    )
    add_view_options(parser)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"must be JSON: {error}") from None


async def _list(view: View) -> None:
    schedules: list[PeriodicJob] = []
    while True:
        page = await view.client.periodic.list(view.project, count=MAX_PER_PAGE, offset=len(schedules))
        schedules += page.results
        if not page.results or len(schedules) >= page.count:
            break
    await _shown(view, *schedules)
    await view.output.note(f"periodic jobs of project {view.project}: {len(schedules)}")


async def _show(view: View) -> None:
    await _shown(view, await _get(view, view.options.id))


async def _add(view: View) -> None:
    options = view.options
    Cron.parse(options.cron)
    task: dict[str, Any] = {"name": options.spider}
    if options.priority is not None:
        task["priority"] = options.priority
    if options.arguments:
        task["spider_args"] = dict(options.arguments)
    if arguments := script_args(options):
        task["script_args"] = arguments
    fields = {
        "cron": options.cron,
        "tasks": [task],
        "addtags": options.tag,
        "description": options.description or "",
        "disabled": options.paused,
    }
    await _shown(view, await view.client.periodic.create(view.project, fields))


async def _edit(view: View) -> None:
    options = view.options
    fields = {name: value for name in ("cron", "description", "tasks") if (value := getattr(options, name)) is not None}
    if options.add_tag or options.remove_tag:
        present = (await _get(view, options.id)).addtags
        kept = [tag for tag in dict.fromkeys([*present, *options.add_tag]) if tag not in options.remove_tag]
        fields["addtags"] = kept
    if not fields:
        raise CommandError("nothing to change is named; see `scrapy platform schedule edit --help`")
    await _shown(view, await _changed(view, options.id, fields))


async def _pause(view: View) -> None:
    await _shown(view, *[await _changed(view, number, {"disabled": True}) for number in view.options.id])


async def _resume(view: View) -> None:
    await _shown(view, *[await _changed(view, number, {"disabled": False}) for number in view.options.id])


async def _delete(view: View) -> None:
    schedules = [await _get(view, number) for number in view.options.id]
    whose = f"periodic job {schedules[0].id}" if len(schedules) == 1 else f"{len(schedules)} periodic jobs"
    await confirm(view, f"Delete {whose}? What was run stays.")
    for schedule in schedules:
        await view.client.periodic.delete(view.project, schedule.id)
    deleted = "1 periodic job is" if len(schedules) == 1 else f"{len(schedules)} periodic jobs are"
    await view.output.note(f"{deleted} deleted")


async def _get(view: View, number: int) -> PeriodicJob:
    try:
        return await view.client.periodic.get(view.project, number)
    except NotFound:
        raise _unknown(view, number) from None


async def _changed(view: View, number: int, fields: Mapping[str, Any]) -> PeriodicJob:
    try:
        return await view.client.periodic.update(view.project, number, fields)
    except NotFound:
        raise _unknown(view, number) from None


def _unknown(view: View, number: int) -> CommandError:
    return CommandError(
        f"project {view.project} has no periodic job {number}; `scrapy platform schedule` lists those it has"
    )


async def _shown(view: View, *schedules: PeriodicJob) -> None:
    now = dt.datetime.now(dt.UTC)
    await view.output.records(each_of([_record(schedule, now) for schedule in schedules]), _COLUMNS)


def _record(schedule: PeriodicJob, now: dt.datetime) -> dict[str, Any]:
    """The schedule with its next run; none while it is paused, or where its day never comes."""
    following = None if schedule.disabled else Cron.parse(schedule.cron).next_after(now)
    told = following.strftime("%Y-%m-%dT%H:%M:%SZ") if following is not None else None
    return {**msgspec.to_builtins(schedule), "next": told}


SUBCOMMAND: Final = with_actions(
    "schedule",
    (
        Action("list", "list periodic jobs with their next run", add_view_options, _list),
        Action("show", "show one", _one, _show),
        Action("add", "add one that runs a spider or a script", _add_options, _add),
        Action("edit", "change one; what is not named stays", _edit_options, _edit),
        Action("pause", "let some not run until they are resumed", _several, _pause),
        Action("resume", "let some run again", _several, _resume),
        Action("delete", "delete some", _delete_options, _delete),
    ),
    (
        ("scrapy platform schedule", "periodic jobs, and when each runs next"),
        ("scrapy platform schedule add '30 4 * * *' books --tag nightly", "every day at 4:30 UTC"),
        ("scrapy platform schedule edit 3 --cron '0 5 * * 1'", "another time: on Mondays at 5:00"),
        ("scrapy platform schedule pause 3", "it does not run until it is resumed"),
    ),
    takes_script=True,
)

"""``scrapy platform run``."""

from __future__ import annotations

import argparse
import asyncio
import shlex
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import MAX_PRIORITY, MAX_UNITS, MIN_PRIORITY, MIN_UNITS, SCRIPT
from scrapy_ext.commands.job_end import follow_to_end
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, add_view_options, look, pair
from scrapy_ext.commands.terminal.output import Column, each_of

_COLUMNS: Final = (Column.field("id", "job"), Column.field("spider"), Column.field("state"))


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_spider_argument(parser)
    add_job_options(parser)
    parser.add_argument(
        "--job-setting",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="a Scrapy setting of the job (-s sets one of this command; may be repeated)",
    )
    parser.add_argument(
        "--units", type=int, choices=range(MIN_UNITS, MAX_UNITS + 1), metavar="1-6", help="how much of a node it takes"
    )
    parser.add_argument(
        "--env", action="append", default=[], type=pair, metavar="NAME=VALUE", help="an environment variable of the job"
    )
    parser.add_argument("--version", metavar="VERSION", help="the deployed version to run (default: the current one)")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="show its log and counters until it ends; 0 only if it finished"
    )
    add_view_options(parser)


def add_spider_argument(parser: argparse.ArgumentParser) -> None:
    """What is to run; :func:`script_args` gives what stands behind it."""
    told = "the spider, or py: and the name of a script, whose arguments stand at the end, behind --"
    parser.add_argument("spider", metavar="SPIDER", help=told)


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """What a job and a task of a schedule have in common."""
    parser.add_argument(
        "-a", action="append", default=[], type=pair, dest="arguments", metavar="NAME=VALUE", help="a spider argument"
    )
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="a tag (may be repeated)")
    parser.add_argument(
        "--priority",
        type=int,
        choices=range(MIN_PRIORITY, MAX_PRIORITY + 1),
        metavar="0-4",
        help="4 starts first (default: 2)",
    )


def script_args(options: argparse.Namespace) -> str | None:
    """The command line of a script; raises :class:`CommandError` where spider and script are mixed up."""
    is_script = options.spider.startswith(SCRIPT)
    if is_script and options.arguments:
        raise CommandError("-a is for spiders; write a script's arguments at the end, behind --")
    if not is_script and options.script_args:
        first = options.script_args[0]
        raise CommandError(f"{first!r} is for a script; a spider takes -a NAME=VALUE")
    return shlex.join(options.script_args) if options.script_args else None


async def _show(view: View) -> int | None:
    options = view.options
    key = await _scheduled(view)
    if not options.follow and not view.embedded:
        await view.output.records(each_of([_row(key, options.spider)]), _COLUMNS)
        await view.output.note(f"follow it with: scrapy platform logs {key} -f")
        return None
    if view.embedded:
        view.say(f"job {key} runs in a server of this command's own, so it is followed to its end")
    else:
        view.say(f"job {key} is scheduled")
    try:
        return await follow_to_end(view, key)
    except asyncio.CancelledError:
        view.say(_left(view, key))
        raise


async def _scheduled(view: View) -> JobKey:
    options = view.options
    return await view.client.jobs.run(
        view.project,
        options.spider,
        arguments=dict(options.arguments),
        settings=dict(options.job_setting) or None,
        priority=options.priority,
        units=options.units,
        tags=options.tag,
        metadata={"version": options.version} if options.version else None,
        environment=dict(options.env) or None,
        cmd_args=script_args(options),
    )


def _row(key: JobKey, spider: str) -> dict[str, Any]:
    return {"id": str(key), "spider": spider, "state": "pending"}


def _left(view: View, key: JobKey) -> str:
    if view.embedded:
        return f"job {key} stops with this command; `scrapy platform serve` lets it go on"
    return f"job {key} goes on; stop it with: scrapy platform stop {key}"


SUBCOMMAND: Final = Subcommand(
    name="run",
    examples=(
        ("scrapy platform run books --follow", "run a spider, and show its log until it ends"),
        ("scrapy platform run books -a category=travel --tag nightly", "with an argument and a tag; prints the job"),
        ("scrapy platform run books --job-setting CLOSESPIDER_ITEMCOUNT=10", "with a setting of the job"),
        ("scrapy platform run py:report.py -- --days 7", "a script, with its arguments"),
    ),
    add_options=_add_options,
    run=look(_show, runner=True),
    takes_script=True,
)

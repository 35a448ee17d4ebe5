"""``scrapy platform run``, which may follow the job to its end."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from rich.cells import set_cell_size

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import (
    FINISHED,
    MAX_PRIORITY,
    MAX_UNITS,
    MIN_PRIORITY,
    MIN_UNITS,
    SCRIPT,
    Job,
    JobState,
)
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.follow import LONGEST, Rows, Watch, followed
from scrapy_ext.commands.subcommand import OK, CommandError, Subcommand, View, add_view_options, look, pair
from scrapy_ext.commands.subcommands.logs import COLUMNS
from scrapy_ext.commands.terminal.output import Column, each_of, one_line, reading
from scrapy_ext.commands.terminal.text import counted, length

#: The exit code for a job that ended with another reason than ``finished``.
NOT_FINISHED: Final = 3
#: Seconds between two looks at the counters.
_EVERY: Final = 1.0
#: Seconds after which who follows a pending job is told what it may wait for.
_SOON: Final = 10.0


class StatusLine:
    """A line that stays the last one of a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = ""
        self._hidden = False
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Write the line, in place of what it was."""
        if not self._terminal:
            return
        # One cell less than the line has, for the cursor.
        self._shown = set_cell_size(one_line(text), max(shutil.get_terminal_size().columns - 1, 1))
        if not self._hidden:
            sys.stderr.write(f"\r{self._shown}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Make room for other lines, until :meth:`again`."""
        self._hidden = True
        if self._terminal and self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def again(self) -> None:
        """Write the line again, below those."""
        self._hidden = False
        if self._shown:
            self.show(self._shown)


async def follow_to_end(view: View, key: JobKey) -> int:
    """Show the log and the counters of a job until it ends; the exit code, 0 only for the reason ``finished``."""
    line = StatusLine()
    counting = asyncio.create_task(_count(view, key, line))
    try:
        log = followed(view, key, view.client.logs)
        await view.output.live(_between(log, line), COLUMNS)
    finally:
        counting.cancel()
        await asyncio.wait([counting])
        line.clear()
    job = await _looked(Watch(view.say).ask, view, key)
    if job is None:
        view.say(f"job {key} was deleted")
        return NOT_FINISHED
    reason = job.close_reason or job.state
    view.say(f"job {key} ended: {reason}; {_counters(job)}")
    return OK if reason == FINISHED else NOT_FINISHED


async def _between(groups: AsyncIterator[Rows], line: StatusLine) -> AsyncIterator[Rows]:
    async with reading(groups) as each:
        async for group in each:
            line.clear()
            yield group
            line.again()


async def _count(view: View, key: JobKey, line: StatusLine) -> None:
    began = time.monotonic()
    told = False
    while True:
        try:
            job = await _looked(_once, view, key)
        except PlatformError:
            pass  # The log's reader tells of it.
        else:
            if job is not None:
                line.show(f"{job.state}: {_counters(job)}")
            if job is not None and not told and job.state == JobState.PENDING and time.monotonic() - began > _SOON:
                told = True
                line.clear()
                view.say(
                    f"job {key} still waits: for room on a node, or for code of its project "
                    "(`scrapy platform deploy`); the page Nodes of the server says which"
                )
                line.again()
        # A job that runs for hours is looked at less often.
        await asyncio.sleep(min(_EVERY + (time.monotonic() - began) / 100, LONGEST))


async def _once(call: Callable[[], Awaitable[Job | None]]) -> Job | None:
    return await call()


async def _looked(
    ask: Callable[[Callable[[], Awaitable[Job | None]]], Awaitable[Job | None]], view: View, key: JobKey
) -> Job | None:
    async def look() -> Job | None:
        jobs = (await view.client.jobs.list(key.project, job=[key])).jobs
        return jobs[0] if jobs else None

    return await ask(look)


def _counters(job: Job) -> str:
    took = f", {length(job.elapsed)}" if job.elapsed is not None else ""
    counts = ((job.items_scraped, "item"), (job.responses_received, "response"), (job.errors_count, "error"))
    return ", ".join(counted(number, noun) for number, noun in counts) + took


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

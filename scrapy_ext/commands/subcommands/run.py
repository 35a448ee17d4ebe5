"""``scrapy platform run``, optionally with the log of the job until its end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shlex
import sys
import time
from collections.abc import AsyncIterator
from typing import Final

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
from scrapy_ext.api.platform.worker_bounds import BOUNDS_HELP
from scrapy_ext.client.platform.errors import Gone, PlatformError
from scrapy_ext.commands.follow import LONGEST, Poller, Rows, followed
from scrapy_ext.commands.options import argument, pair, repeated, view_options, worker_bounds
from scrapy_ext.commands.output import Column, one_line, reading
from scrapy_ext.commands.packing import difference
from scrapy_ext.commands.subcommand import OK, CommandError, Subcommand, View, with_platform
from scrapy_ext.commands.subcommands.records import LOG_COLUMNS
from scrapy_ext.commands.text import columns_of_terminal, counted, length
from scrapy_ext.crawl.session.project import project_folder

#: Exit code for a job that ended for another reason than ``finished``.
NOT_FINISHED: Final = 3
#: Seconds between two polls of the counters.
_POLL_SECONDS: Final = 1.0
#: Seconds until the possible reasons are shown for a job that is still pending.
_PENDING_SECONDS: Final = 10.0


class StatusLine:
    """The last line of a terminal, below all other output; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = ""
        self._hidden = False
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if not self._terminal:
            return
        # The last cell is for the cursor.
        self._shown = set_cell_size(one_line(text), max(columns_of_terminal() - 1, 1))
        if not self._hidden:
            sys.stderr.write(f"\r{self._shown}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Hide the line until :meth:`again`, so that other lines can be written."""
        self._hidden = True
        if self._terminal and self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def again(self) -> None:
        self._hidden = False
        if self._shown:
            self.show(self._shown)


async def follow_to_end(view: View, key: JobKey) -> int:
    """Show the log and the counters of a job until it ends, and return the exit code: 0 for the reason ``finished``."""
    line = StatusLine()
    counting = asyncio.create_task(_count(view, key, line))
    try:
        log = followed(view, key, view.client.logs)
        with contextlib.suppress(Gone):  # the job was deleted before its log was read
            await view.output.live(_above(log, line), LOG_COLUMNS)
    finally:
        counting.cancel()
        await asyncio.wait([counting])
        line.clear()
    job = await Poller(view.say).call(lambda: _job(view, key))
    if job is None:
        view.say(f"job {key} was deleted")
        return NOT_FINISHED
    reason = job.close_reason or job.state
    view.say(f"job {key} ended: {reason}; {_counters(job)}")
    return OK if reason == FINISHED else NOT_FINISHED


async def _above(groups: AsyncIterator[Rows], line: StatusLine) -> AsyncIterator[Rows]:
    async with reading(groups) as each:
        async for group in each:
            line.clear()
            yield group
            line.again()


async def _count(view: View, key: JobKey, line: StatusLine) -> None:
    began = time.monotonic()
    is_explained = False
    while True:
        try:
            job = await _job(view, key)
        except PlatformError:
            job = None  # The reader of the log reports it.
        waited = time.monotonic() - began
        if job is not None:
            line.show(f"{job.state}: {_counters(job)}")
            if not is_explained and job.state == JobState.PENDING and waited > _PENDING_SECONDS:
                is_explained = True
                line.clear()
                view.say(
                    f"job {key} is still pending: it waits for free units of a node, or for a version of its project "
                    "(`scrapy platform deploy`); the server's page Nodes shows the reason"
                )
                line.again()
        # A job that runs for hours is polled less often.
        await asyncio.sleep(min(_POLL_SECONDS + waited / 100, LONGEST))


async def _job(view: View, key: JobKey) -> Job | None:
    jobs = (await view.client.jobs.list(key.project, job=[key])).jobs
    return jobs[0] if jobs else None


def _counters(job: Job) -> str:
    took = f", {length(job.elapsed)}" if job.elapsed is not None else ""
    counts = ((job.items_scraped, "item"), (job.responses_received, "response"), (job.errors_count, "error"))
    return ", ".join(counted(number, noun) for number, noun in counts) + took


_COLUMNS: Final = (Column.field("id", "job"), Column.field("spider"), Column.field("state"))


SPIDER: Final = argument(
    "spider",
    metavar="SPIDER",
    help="name of a spider, or py: and the name of a script, whose arguments follow after --",
)
#: Options of a job and of a task of a periodic job.
JOB_OPTIONS: Final = (
    repeated("-a", type=pair, dest="arguments", metavar="NAME=VALUE", help="a spider argument"),
    repeated("--tag", metavar="TAG", help="a tag"),
    argument(
        "--priority",
        type=int,
        choices=range(MIN_PRIORITY, MAX_PRIORITY + 1),
        metavar="0-4",
        help="priority; jobs with 4 start first (default: 2)",
    ),
    argument("--workers", type=worker_bounds, metavar="N|N..M", help=BOUNDS_HELP + " (default: 1)"),
)


def script_args(options: argparse.Namespace) -> str | None:
    """Return the command line of a script; raises :class:`CommandError` for arguments of the other kind."""
    is_script = options.spider.startswith(SCRIPT)
    if is_script and options.arguments:
        raise CommandError("-a is for spiders; write the arguments of a script at the end, after --")
    if not is_script and options.script_args:
        first = options.script_args[0]
        raise CommandError(f"{first!r} is an argument for a script; give a spider -a NAME=VALUE")
    return shlex.join(options.script_args) if options.script_args else None


async def _show(view: View) -> int | None:
    options = view.options
    key = await _scheduled(view)
    await _say_difference(view)
    if not options.follow and not view.embedded:
        row = {"id": str(key), "spider": options.spider, "state": "pending"}
        await view.show([row], _COLUMNS, f"follow its log with: scrapy platform logs {key} -f")
        return None
    if view.embedded:
        view.say(f"job {key} runs in this command's own server, so the command follows it to its end")
    else:
        view.say(f"job {key} is scheduled")
    try:
        return await follow_to_end(view, key)
    except asyncio.CancelledError:
        view.say(_left(view, key))
        raise


async def _say_difference(view: View) -> None:
    """Say when the job runs other code than that of the project around the current directory."""
    folder = project_folder()
    if folder is None:
        return
    try:
        versions = await view.client.versions.list(view.project)
    except PlatformError:  # the hosted platform has no such list
        return
    named = view.options.version
    version = next((each for each in versions if (each.version == named if named else each.current)), None)
    if version is not None and (found := await asyncio.to_thread(difference, folder, version)):
        view.say(f"the job runs version {version.version}: {found}; `scrapy platform deploy` deploys them")


async def _scheduled(view: View) -> JobKey:
    options = view.options
    return await view.client.jobs.run(
        view.project,
        options.spider,
        arguments=dict(options.arguments),
        settings=dict(options.job_setting) or None,
        priority=options.priority,
        units=options.units,
        workers=options.workers,
        tags=options.tag,
        metadata={"version": options.version} if options.version else None,
        environment=dict(options.env) or None,
        cmd_args=script_args(options),
    )


def _left(view: View, key: JobKey) -> str:
    if view.embedded:
        return f"job {key} stops with this command; with `scrapy platform serve` it would keep running"
    return f"job {key} keeps running; stop it with: scrapy platform stop {key}"


SUBCOMMANDS: Final = (
    Subcommand(
        name="run",
        examples=(
            ("scrapy platform run books --follow", "run a spider, and show its log until it ends"),
            (
                "scrapy platform run books -a category=travel --tag nightly",
                "with an argument and a tag; prints the job",
            ),
            ("scrapy platform run books --job-setting CLOSESPIDER_ITEMCOUNT=10", "with a setting of the job"),
            ("scrapy platform run books --workers 4", "with four workers, as one job"),
            ("scrapy platform run py:report.py -- --days 7", "run a script, with its arguments"),
        ),
        arguments=(
            SPIDER,
            *JOB_OPTIONS,
            argument(
                "--job-setting",
                action="append",
                default=[],
                type=pair,
                metavar="NAME=VALUE",
                help="a Scrapy setting of the job (may be repeated; -s sets one of this command)",
            ),
            argument(
                "--units",
                type=int,
                choices=range(MIN_UNITS, MAX_UNITS + 1),
                metavar="1-6",
                help="units of a node that the job uses (default: 1)",
            ),
            repeated("--env", type=pair, metavar="NAME=VALUE", help="an environment variable of the job"),
            argument("--version", metavar="VERSION", help="deployed version to run (default: the current one)"),
            argument(
                "-f",
                "--follow",
                action="store_true",
                help="show log and counters until the job ends; the exit code is 0 if it finished",
            ),
            view_options(),
        ),
        run=with_platform(_show, runner=True),
        takes_script=True,
    ),
)

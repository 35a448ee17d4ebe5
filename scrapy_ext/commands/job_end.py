"""A job followed to its end: its log on standard output, its counters on standard error."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from rich.cells import set_cell_size

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import FINISHED, Job, JobState
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.follow import LONGEST, Rows, Watch, followed
from scrapy_ext.commands.subcommand import OK, View
from scrapy_ext.commands.subcommands.logs import COLUMNS
from scrapy_ext.commands.terminal.output import one_line, reading
from scrapy_ext.commands.terminal.text import counted
from scrapy_ext.commands.terminal.times import length

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

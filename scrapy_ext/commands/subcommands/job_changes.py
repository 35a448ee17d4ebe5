"""``scrapy platform stop``, ``delete`` and ``tags``, which change jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.commands.follow import Poller, has_ended
from scrapy_ext.commands.options import JOBS, YES, argument, repeated, seconds
from scrapy_ext.commands.output import Column, bar
from scrapy_ext.commands.selection import confirm, selected_jobs
from scrapy_ext.commands.subcommand import CommandError, View, platform_command
from scrapy_ext.commands.text import shown
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

#: Maximum jobs deleted in one request.
_MOST_DELETED: Final = 100
_DELETED: Final = (
    "Items, requests, log, samples, comments, arguments, settings and stats of the jobs become unreadable at once, "
    "and so does the frontier of a job that has no name of its own. The server then removes them from the database, "
    "in steps; `scrapy platform usage` shows how much is left, and the size of the database. A running job is "
    "stopped. The record of a job, with its times, tags and close reason, stays in the list of deleted jobs for a "
    "time (30 days unless set otherwise). Frontiers with a name of their own, data that was delivered elsewhere, and "
    "earlier backups stay."
)
_KILLED: Final = "A crawl that blocks is killed then, and loses what it yielded and logged in its last two seconds"
_JOB: Final = Column.field("id", "job")


async def _stop(view: View) -> None:
    keys = await selected_jobs(view)
    for key in keys:
        await view.client.jobs.stop(key.project, key)

    async def states() -> AsyncIterator[dict[str, Any]]:
        for key in keys:
            metadata = await view.client.jobs.metadata(key)
            fields = ("spider", "state", "close_reason")
            yield {"id": str(key)} | {name: metadata[name] for name in fields if name in metadata}

    state = Column("state", lambda row: shown(row.get("close_reason") or row.get("state")))
    try:
        if view.options.wait:
            await _wait(view, keys)
    finally:
        number = await view.output.records(states(), (_JOB, Column.field("spider"), state))
    if not view.options.wait:
        jobs = "1 job was" if number == 1 else f"{number} jobs were"
        await view.output.note(f"{jobs} asked to stop; --wait waits for the end. {_KILLED}")


async def _wait(view: View, keys: list[JobKey]) -> None:
    poller, left = Poller(view.say), list(keys)
    try:
        with bar("jobs that have ended", len(keys)) as advance:
            async with timeout_after(view.options.timeout):
                while True:
                    ended = [key for key in left if await poller.call(partial(has_ended, view.client, key))]
                    advance(len(ended))
                    left = [key for key in left if key not in ended]
                    if not left:
                        return
                    await poller.pause(is_new=bool(ended))
    except TIMEOUT_ERRORS:
        named = ", ".join(map(str, left[:5])) + (" and others" if len(left) > 5 else "")
        have = "1 job has" if len(left) == 1 else f"{len(left)} jobs have"
        raise CommandError(
            f"after {view.options.timeout:g} s, {have} not ended: {named}; wait longer with --timeout"
        ) from None


async def _delete(view: View) -> None:
    keys = await selected_jobs(view)
    running = [key for key in keys if await view.client.jobs.field(key, "state") == JobState.RUNNING.value]
    jobs = f"job {keys[0]}" if len(keys) == 1 else f"{len(keys)} jobs"
    of_these = f" ({len(running)} of them running)" if running else ""
    await confirm(
        view, f"Delete {jobs}{of_these} for good, with items, requests, log, samples, comments, arguments and frontier?"
    )
    by_project: dict[int, list[JobKey]] = {}
    for key in keys:
        by_project.setdefault(key.project, []).append(key)
    for project, of_project in by_project.items():
        for first in range(0, len(of_project), _MOST_DELETED):
            await view.client.jobs.delete(project, *of_project[first : first + _MOST_DELETED])
    rows: list[dict[str, Any]] = [{"id": str(key), "state": JobState.DELETED.value} for key in keys]
    await view.show(rows, (_JOB, Column.field("state")))


async def _tag(view: View) -> None:
    options, keys = view.options, await selected_jobs(view)
    if options.add or options.remove:
        for key in keys:
            await view.client.jobs.update_tags(key.project, key, add=options.add, remove=options.remove)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for key in keys:
            yield {"id": str(key), "tags": (await view.client.jobs.metadata(key)).get("tags") or []}

    tags = Column("tags", lambda row: ", ".join(map(str, row.get("tags") or ())), wrap=True)
    await view.output.records(rows(), (_JOB, tags))


SUBCOMMANDS: Final = (
    platform_command(
        "stop",
        _stop,
        (
            ("scrapy platform stop 1/2/3", "stop a running job, or cancel a pending one"),
            ("scrapy platform stop 1/2/3 1/2/4 --wait", "stop two jobs, and wait until they have ended"),
        ),
        JOBS,
        argument("--wait", action="store_true", help=f"wait until the jobs have ended. {_KILLED}"),
        argument(
            "--timeout",
            type=seconds,
            default=600.0,
            metavar="SECONDS",
            help="with --wait: wait for this time at most (default: %(default)g)",
        ),
    ),
    platform_command(
        "delete",
        _delete,
        (
            ("scrapy platform delete 1/2/3", "delete a job with its stored data, after confirmation"),
            ("scrapy platform delete 1/2/3 1/2/4 --yes", "delete two jobs without confirmation"),
        ),
        JOBS,
        YES,
        details=_DELETED,
    ),
    platform_command(
        "tags",
        _tag,
        (
            ("scrapy platform tags 1/2/3", "show the tags of a job"),
            ("scrapy platform tags 1/2/3 1/2/4 --add checked --remove new", "change the tags of two jobs"),
        ),
        JOBS,
        repeated("--add", metavar="TAG", help="add this tag"),
        repeated("--remove", metavar="TAG", help="remove this tag"),
    ),
)

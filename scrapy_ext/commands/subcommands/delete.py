"""``scrapy platform delete``."""

from __future__ import annotations

import argparse
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.commands.selection import add_jobs_argument, add_yes_option, confirm, selected_jobs
from scrapy_ext.commands.subcommand import Subcommand, View, add_view_options, look
from scrapy_ext.commands.terminal.output import Column, each_of

#: Jobs that are deleted in one call.
_AT_ONCE: Final = 100
_COLUMNS: Final = (Column.field("id", "job"), Column.field("state"))


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_jobs_argument(parser)
    add_yes_option(parser)
    add_view_options(parser)


async def _show(view: View) -> None:
    keys = await selected_jobs(view)
    running = [key for key in keys if await view.client.jobs.field(key, "state") == JobState.RUNNING.value]
    whose = f"job {keys[0]}" if len(keys) == 1 else f"{len(keys)} jobs"
    told = f" ({len(running)} of them running)" if running else ""
    await confirm(view, f"Delete {whose}{told}, with items, requests and log?")
    by_project: dict[int, list[JobKey]] = {}
    for key in keys:
        by_project.setdefault(key.project, []).append(key)
    for project, of_project in by_project.items():
        for first in range(0, len(of_project), _AT_ONCE):
            await view.client.jobs.delete(project, *of_project[first : first + _AT_ONCE])
    rows: list[dict[str, Any]] = [{"id": str(key), "state": JobState.DELETED.value} for key in keys]
    await view.output.records(each_of(rows), _COLUMNS)


SUBCOMMAND: Final = Subcommand(
    name="delete",
    examples=(
        ("scrapy platform delete 1/2/3", "a job with what it stored, after a question"),
        ("scrapy platform delete 1/2/3 1/2/4 --yes", "two, without one"),
    ),
    add_options=_add_options,
    run=look(_show),
)

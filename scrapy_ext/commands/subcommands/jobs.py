"""``scrapy platform jobs``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.jobs import Job, JobList, JobState
from scrapy_ext.commands.subcommand import (
    Subcommand,
    View,
    add_paging_options,
    add_view_options,
    look,
    note_shown,
)
from scrapy_ext.commands.terminal.output import Column
from scrapy_ext.commands.terminal.text import length

#: Jobs asked for at once.
_PAGE: Final = 500

_COLUMNS: Final = (
    Column.field("id", "job"),
    Column.field("spider"),
    # Of a job that has ended, how it did is what one wants to know.
    Column("state", lambda job: str(job.get("close_reason") or job.get("state") or "")),
    Column.field("items_scraped", "items", right=True),
    Column.field("responses_received", "responses", right=True),
    Column.field("errors_count", "errors", right=True),
    Column("took", lambda job: length(job.get("elapsed")), right=True),
    Column("started (UTC)", lambda job: str(job.get("started_time") or "")[:16].replace("T", " ")),
    Column("tags", lambda job: ", ".join(map(str, job.get("tags") or ()))),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    states = [state.value for state in JobState]
    parser.add_argument("--state", action="append", choices=states, help="only jobs in this state (may be repeated)")
    parser.add_argument("--spider", metavar="NAME", help="only jobs of this spider")
    parser.add_argument("--tag", metavar="TAG", help="only jobs with this tag")
    add_paging_options(parser, "jobs")
    add_view_options(parser)


async def _show(view: View) -> None:
    options = view.options
    first = await _page(view, options.start, view.output.count(options))
    number = await view.output.records(_records(view, first), _COLUMNS)
    await note_shown(view, f"jobs of project {view.project}", number, first.total)


async def _page(view: View, offset: int, count: int | None) -> JobList:
    options = view.options
    size = _PAGE if count is None else min(_PAGE, count)
    return await view.client.jobs.list(
        view.project, spider=options.spider, state=options.state, has_tag=options.tag, count=size, offset=offset
    )


async def _records(view: View, first: JobList) -> AsyncIterator[dict[str, Any]]:
    left, offset, page = view.output.count(view.options), view.options.start, first
    while page.jobs:
        for job in page.jobs:
            yield _record(job)
        offset += len(page.jobs)
        left = None if left is None else left - len(page.jobs)
        if left == 0 or offset >= page.total:
            return
        page = await _page(view, offset, left)


def _record(job: Job) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(job)
    return record


SUBCOMMAND: Final = Subcommand(
    name="jobs",
    examples=(
        ("scrapy platform jobs", "the newest jobs"),
        ("scrapy platform jobs --state running --spider news", "those of a spider that run now"),
        ("scrapy platform jobs --json | jq .items_scraped", "for programs: a JSON object a line"),
    ),
    add_options=_add_options,
    run=look(_show),
)

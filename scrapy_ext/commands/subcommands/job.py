"""``scrapy platform job``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_view_options, look
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock_with_zone, length, shown

_COLUMNS: Final = (Column.field("field"), Column("value", lambda row: str(row["value"]), wrap=True))
_COUNTS: Final = ("items_scraped", "responses_received", "errors_count", "logs", "elapsed")


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_view_options(parser)


async def _show(view: View) -> None:
    key = await selected_job(view)
    metadata = await view.client.jobs.metadata(key)
    counts = await _counts(view, key)
    if view.output.form == "json":
        await view.output.records(each_of([{"key": str(key), **counts, **metadata}]))
        return
    await view.output.note(f"job {key}")
    told = {name: length(value) if name == "elapsed" else value for name, value in counts.items()}
    await view.output.records(each_of([*_rows(told), *_rows(dict(sorted(metadata.items())))]), _COLUMNS)


async def _counts(view: View, key: JobKey) -> dict[str, Any]:
    """What the job has stored, and for how long it ran (ms), as the list of jobs tells it."""
    jobs = (await view.client.jobs.list(key.project, job=[key])).jobs
    return {name: value for name in _COUNTS if jobs and (value := getattr(jobs[0], name)) is not None}


def _rows(metadata: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The fields, then the crawl's stats one by one."""
    for name in metadata:
        if name != CRAWL_STATS:
            yield _row(name, metadata[name])
    stats = metadata.get(CRAWL_STATS)
    for name, value in sorted(stats.items()) if isinstance(stats, dict) else ():
        yield _row(name, value)


def _row(name: str, value: Any) -> dict[str, str]:
    return {"field": name, "value": (clock_with_zone(value) if name.endswith("_time") else "") or shown(value)}


SUBCOMMAND: Final = Subcommand(
    name="job",
    examples=(
        ("scrapy platform job", "the last job: its counts, metadata and stats"),
        ("scrapy platform job 1/2/3", "a job by its key"),
        ("scrapy platform job 3 --json", "a job by its number, as JSON"),
    ),
    add_options=_add_options,
    run=look(_show),
)

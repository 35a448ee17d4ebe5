"""``scrapy platform job``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final

from scrapy_ext.commands.output import Column
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_output_options, look
from scrapy_ext.commands.text import shown
from scrapy_ext.commands.times import clock

_COLUMNS: Final = (Column.field("field"), Column("value", lambda row: str(row["value"]), wrap=True))
_STATS: Final = "frameworkstats"


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_output_options(parser)


async def _show(view: View) -> None:
    key = await selected_job(view)
    metadata = await view.client.jobs.metadata(key)
    if view.output.form == "json":
        await view.output.records(_each([{"key": str(key), **metadata}]))
    else:
        await view.output.note(f"job {key}")
        await view.output.records(_each(_rows(metadata)), _COLUMNS)


async def _each(rows: Iterable[Mapping[str, Any]]) -> AsyncIterator[Mapping[str, Any]]:
    for row in rows:
        yield row


def _rows(metadata: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The fields, then the crawl's stats one by one."""
    for name in sorted(metadata):
        if name != _STATS:
            yield _row(name, metadata[name])
    stats = metadata.get(_STATS)
    for name, value in sorted(stats.items()) if isinstance(stats, dict) else ():
        yield _row(name, value)


def _row(name: str, value: Any) -> dict[str, str]:
    return {"field": name, "value": (clock(value) if name.endswith("_time") else "") or shown(value)}


SUBCOMMAND: Final = Subcommand(
    name="job",
    examples=(
        ("scrapy platform job", "the last job: its metadata and the crawl's stats"),
        ("scrapy platform job 1/2/3", "a job by its key"),
        ("scrapy platform job 3 --json", "a job by its number, as JSON"),
    ),
    add_options=_add_options,
    run=look(_show),
)

"""``scrapy platform stats``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.commands.selection import add_job_argument, job_named, selected_job
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, add_view_options, look
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock_with_zone, counted, shown


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument("other", nargs="?", metavar="OTHER", help="a second job, to compare it with")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="only stats whose name starts so")
    add_view_options(parser)


async def _show(view: View) -> None:
    first, prefix = await selected_job(view), view.options.prefix
    stats = await _stats(view, first)
    if view.options.other is None:
        rows = [{"stat": name, "value": stats[name]} for name in sorted(stats) if name.startswith(prefix)]
        columns = (Column.field("stat"), Column("value", _value, right=True))
        await view.output.records(each_of(rows), columns)
        await view.output.note(f"{counted(len(rows), 'stat')} of job {first}")
        return
    second = await job_named(view, view.options.other)
    others = await _stats(view, second)
    rows = [
        {"stat": name, str(first): stats.get(name), str(second): others.get(name), **_change(name, stats, others)}
        for name in sorted({*stats, *others})
        if name.startswith(prefix)
    ]
    of_two = (
        Column.field("stat"),
        *(Column.field(str(key), right=True) for key in (first, second)),
        Column("change", lambda row: f"{row['change']:+.6g}" if row.get("change") else "", right=True),
    )
    await view.output.records(each_of(rows), of_two)


def _value(row: Mapping[str, Any]) -> str:
    """A stat as text; Scrapy's times, which the platform has as milliseconds, as times."""
    is_time = row["stat"] in ("start_time", "finish_time")
    return (is_time and clock_with_zone(row["value"])) or shown(row["value"])


async def _stats(view: View, key: JobKey) -> Mapping[str, Any]:
    stats = (await view.client.jobs.metadata(key)).get(CRAWL_STATS)
    if not isinstance(stats, dict) or not stats:
        raise CommandError(f"job {key} has no stats yet; a crawl writes them while it runs, and at its end")
    return stats


def _change(name: str, stats: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, float]:
    """How much more the second has; nothing for what is not counted. A stat that is absent counts as 0."""
    before, after = stats.get(name, 0), others.get(name, 0)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    return {"change": after - before} if numbers else {}


SUBCOMMAND: Final = Subcommand(
    name="stats",
    examples=(
        ("scrapy platform stats", "the stats of the last job"),
        ("scrapy platform stats 1/2/3 1/2/4", "of two jobs, side by side, and how much they differ"),
        ("scrapy platform stats 1/2/3 --prefix downloader/", "those of one component"),
    ),
    add_options=_add_options,
    run=look(_show),
)

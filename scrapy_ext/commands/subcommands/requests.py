"""``scrapy platform requests``."""

from __future__ import annotations

import argparse
from typing import Final

from scrapy_ext.commands.follow import add_follow_options, first_of, followed
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_paging_options, add_view_options, look, note_shown
from scrapy_ext.commands.terminal.output import Column
from scrapy_ext.commands.terminal.times import clock, length

_COLUMNS: Final = (
    Column("started (UTC)", lambda record: clock(record.get("time"))),
    Column.field("method"),
    Column.field("status", right=True),
    Column("took", lambda record: length(record.get("duration")), right=True, least=6),
    Column.field("rs", "bytes", right=True, least=8),
    Column.field("parent", right=True, least=7),
    Column.field("url"),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_follow_options(parser, "requests")
    add_paging_options(parser, "requests")
    add_view_options(parser)


async def _show(view: View) -> None:
    options, key = view.options, await selected_job(view)
    total = (await view.client.requests.stats(key)).totals.input_values
    start = first_of(view, total)
    if options.follow:
        stored = followed(view, key, view.client.requests, start=start, count=options.count)
        await view.output.live(stored, _COLUMNS)
        return
    records = view.client.requests.iter(key, count=view.output.count(options), start=start or None)
    number = await view.output.records(records, _COLUMNS)
    await note_shown(view, f"requests of job {key}", number, total)


SUBCOMMAND: Final = Subcommand(
    name="requests",
    examples=(
        ("scrapy platform requests", "requests of the last job"),
        ("scrapy platform requests 3 --count 10", "the first ten of a job"),
        ("scrapy platform requests --follow", "those of a running job as they come"),
        ("scrapy platform requests | jq 'select(.status >= 400).url'", "addresses that failed"),
    ),
    add_options=_add_options,
    run=look(_show),
)

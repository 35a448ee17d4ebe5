"""``scrapy platform requests``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any, Final

from scrapy_ext.commands.follow import Rows, add_follow_options, first_of, followed
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_paging_options, add_view_options, look, note_shown
from scrapy_ext.commands.terminal.output import Column, reading
from scrapy_ext.commands.terminal.text import TIME_WIDTH, clock, length

Row = dict[str, Any]

#: The field that a row has beside those of its record.
_INDEX: Final = "_index"

_COLUMNS: Final = (
    Column.field(_INDEX, "index", right=True, least=5),
    Column("started (UTC)", lambda record: clock(record.get("time")), least=TIME_WIDTH),
    Column.field("method"),
    Column.field("status", right=True),
    Column("took", lambda record: length(record.get("duration")), right=True, least=6),
    Column.field("parent", right=True, least=6),
    Column.field("url"),
    # Last, for it is left out where there is no room for all.
    Column.field("rs", "bytes", right=True, least=8),
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
        await view.output.live(_numbered_groups(view, stored, start), _COLUMNS)
        return
    records = view.client.requests.iter(key, count=view.output.count(options), start=start or None)
    number = await view.output.records(_numbered(view, records, start), _COLUMNS)
    await note_shown(view, f"requests of job {key}", number, total)
    if number:
        await view.output.note(f"one of them in full: scrapy platform requests {key} --start INDEX --count 1 --json")


async def _numbered_groups(view: View, groups: AsyncIterator[Rows], index: int) -> AsyncIterator[Rows]:
    async with reading(groups) as each:
        async for group in each:
            yield [_row(view, record, number) for number, record in enumerate(group, index)]
            index += len(group)


async def _numbered(view: View, records: AsyncIterator[Row], index: int) -> AsyncIterator[Row]:
    async with reading(records) as each:
        async for record in each:
            yield _row(view, record, index)
            index += 1


def _row(view: View, record: Row, index: int) -> Row:
    """The record, with its index where people read it: in a pipe it is as it is stored."""
    return {_INDEX: index, **record} if view.output.form == "table" else record


SUBCOMMAND: Final = Subcommand(
    name="requests",
    examples=(
        ("scrapy platform requests", "requests of the last job"),
        ("scrapy platform requests 3 --count 10", "the first ten of a job"),
        ("scrapy platform requests 3 --start 17 --count 1 --json", "the request with index 17, in full"),
        ("scrapy platform requests --follow", "those of a running job as they come"),
        ("scrapy platform requests | jq 'select(.status >= 400).url'", "addresses that failed"),
    ),
    add_options=_add_options,
    run=look(_show),
)

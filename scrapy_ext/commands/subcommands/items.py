"""``scrapy platform items``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.commands.follow import Rows, add_follow_options, first_of, followed
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import (
    CommandError,
    Subcommand,
    View,
    add_paging_options,
    add_view_options,
    look,
    note_shown,
)
from scrapy_ext.commands.terminal.output import Column, reading


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument("--fields", metavar="A,B,C", type=_names, help="only these fields, in this order")
    parser.add_argument("--meta", action="store_true", help="add _key and _ts, the time when the item was stored")
    add_follow_options(parser, "items")
    add_paging_options(parser, "items")
    add_view_options(parser, csv=True)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("name at least one field")
    return names


async def _show(view: View) -> None:
    options, key = view.options, await selected_job(view)
    stats = await view.client.items.stats(key, hidden=True)
    fields: Sequence[str] = options.fields or ()
    csv_fields = fields or [*(("_key", "_ts") if options.meta else ()), *sorted(stats.counts)]
    columns = [Column.field(name) for name in fields] if fields else None
    start = first_of(view, stats.totals.input_values)
    if options.follow:
        if view.output.form == "csv" and not csv_fields:
            raise CommandError("the columns of CSV are not known before the first item; name them with --fields")
        meta = ("_key", "_ts") if options.meta else ()
        stored = followed(view, key, view.client.items, start=start, count=options.count, meta=meta)
        await view.output.live(_chosen(view, stored), columns, csv_fields)
        return
    number = await view.output.records(_records(view, key, start), columns, csv_fields)
    await note_shown(view, f"items of job {key}", number, stats.totals.input_values)


async def _chosen(view: View, groups: AsyncIterator[Rows]) -> AsyncIterator[Rows]:
    async with reading(groups) as each:
        async for group in each:
            yield [_fields(view, item) for item in group]


def _fields(view: View, item: dict[str, Any]) -> dict[str, Any]:
    names = view.options.fields
    return {name: item[name] for name in names if name in item} if names and view.output.form == "json" else item


async def _records(view: View, key: JobKey, start: int) -> AsyncIterator[dict[str, Any]]:
    options = view.options
    stored = view.client.items.iter(
        key,
        count=view.output.count(options),
        start=start or None,
        meta=("_key", "_ts") if options.meta else (),
    )
    async with reading(stored) as items:
        async for item in items:
            yield _fields(view, item)


SUBCOMMAND: Final = Subcommand(
    name="items",
    examples=(
        ("scrapy platform items", "items of the last job"),
        ("scrapy platform items 1/2/3 --fields name,price", "two fields of a job's items"),
        ("scrapy platform items 3 --start 1000 --count 100", "the items from index 1000 on, a hundred of them"),
        ("scrapy platform items --csv > items.csv", "every item of the last job as CSV"),
        ("scrapy platform items --follow", "items of a running job as they come"),
        ("scrapy platform items | jq .name", "in a pipe: all items, a JSON object a line"),
    ),
    add_options=_add_options,
    run=look(_show),
)

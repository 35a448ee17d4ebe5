"""``scrapy platform items``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.commands.output import Column, reading
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_output_options, add_paging_options, look, note_shown


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument("--fields", metavar="A,B,C", type=_names, help="only these fields, in this order")
    parser.add_argument("--meta", action="store_true", help="add _key and _ts, the time when the item was stored")
    add_paging_options(parser, "items")
    add_output_options(parser, csv=True)


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
    number = await view.output.records(_records(view, key), columns, csv_fields)
    await note_shown(view, f"items of job {key}", number, stats.totals.input_values)


async def _records(view: View, key: JobKey) -> AsyncIterator[dict[str, Any]]:
    options = view.options
    stored = view.client.items.iter(
        key,
        count=view.output.count(options),
        start=options.start or None,
        meta=("_key", "_ts") if options.meta else (),
    )
    async with reading(stored) as items:
        async for item in items:
            if options.fields and view.output.form == "json":
                yield {name: item[name] for name in options.fields if name in item}
            else:
                yield item


SUBCOMMAND: Final = Subcommand(
    name="items",
    examples=(
        ("scrapy platform items", "items of the last job"),
        ("scrapy platform items 1/2/3 --fields name,price", "two fields of a job's items"),
        ("scrapy platform items 3 --start 1000 --count 100", "the items from index 1000 on, a hundred of them"),
        ("scrapy platform items --csv > items.csv", "every item of the last job as CSV"),
        ("scrapy platform items | jq .name", "in a pipe: all items, a JSON object a line"),
    ),
    add_options=_add_options,
    run=look(_show),
)

"""``scrapy platform tags``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any, Final

from scrapy_ext.commands.selection import add_jobs_argument, selected_jobs
from scrapy_ext.commands.subcommand import Subcommand, View, add_view_options, look
from scrapy_ext.commands.terminal.output import Column

_COLUMNS: Final = (
    Column.field("id", "job"),
    Column("tags", lambda row: ", ".join(map(str, row.get("tags") or ())), wrap=True),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_jobs_argument(parser)
    parser.add_argument("--add", action="append", default=[], metavar="TAG", help="add this tag (may be repeated)")
    parser.add_argument("--remove", action="append", default=[], metavar="TAG", help="remove it (may be repeated)")
    add_view_options(parser)


async def _show(view: View) -> None:
    options, keys = view.options, await selected_jobs(view)
    if options.add or options.remove:
        for key in keys:
            await view.client.jobs.update_tags(key.project, key, add=options.add, remove=options.remove)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for key in keys:
            yield {"id": str(key), "tags": (await view.client.jobs.metadata(key)).get("tags") or []}

    await view.output.records(rows(), _COLUMNS)


SUBCOMMAND: Final = Subcommand(
    name="tags",
    examples=(
        ("scrapy platform tags 1/2/3", "the tags of a job"),
        ("scrapy platform tags 1/2/3 1/2/4 --add checked --remove new", "change those of two"),
    ),
    add_options=_add_options,
    run=look(_show),
)

"""``scrapy platform logs``."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.logs import LEVELS
from scrapy_ext.commands.follow import Rows, add_follow_options, first_of, followed
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_paging_options, add_view_options, look, note_shown
from scrapy_ext.commands.terminal.output import Column, reading
from scrapy_ext.commands.terminal.times import clock

_LEVELS: Final = {logging.getLevelName(level): level for level in LEVELS}

#: How log records are shown.
COLUMNS: Final = (
    Column("time (UTC)", lambda record: clock(record.get("time"))),
    Column("level", lambda record: _level_name(record.get("level")), least=len("CRITICAL")),
    Column("message", lambda record: str(record.get("message", "")), wrap=True),
)


def _level_name(level: Any) -> str:
    return str(logging.getLevelName(level)) if isinstance(level, int) else ""


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument(
        "--level", type=str.upper, choices=_LEVELS, default="DEBUG", help="only records of this level and above"
    )
    add_follow_options(parser, "records", "-f")
    add_paging_options(parser, "records")
    add_view_options(parser)


async def _show(view: View) -> None:
    options, key = view.options, await selected_job(view)
    counts = (await view.client.logs.stats(key)).counts
    lowest = _LEVELS[options.level]
    total = sum(count for level, count in counts.items() if level.isdigit() and int(level) >= lowest)
    start = first_of(view, total)
    if options.follow:
        await view.output.live(followed_log(view, key, lowest, start, options.count), COLUMNS)
        return
    number = await view.output.records(_records(view, key, lowest, start), COLUMNS)
    await note_shown(view, f"log records of job {key}", number, total)


async def followed_log(view: View, key: JobKey, lowest: int, start: int, count: int | None) -> AsyncIterator[Rows]:
    """Records of a level and above as they come, without the first ``start`` of them."""
    place, last = 0, None if count is None else start + count
    every = lowest <= min(LEVELS)
    stored = followed(view, key, view.client.logs, start=start if every else 0, count=count if every else None)
    async with reading(stored) as groups:
        async for group in groups:
            if every:
                yield group
                continue
            chosen = [record for record in group if isinstance(level := record.get("level"), int) and level >= lowest]
            shown = chosen[max(start - place, 0) : None if last is None else max(last - place, 0)]
            place += len(chosen)
            if shown:
                yield shown
            if last is not None and place >= last:
                return


async def _records(view: View, key: JobKey, lowest: int, first: int) -> AsyncIterator[dict[str, Any]]:
    count = view.output.count(view.options)
    if lowest <= min(LEVELS):
        async with reading(view.client.logs.iter(key, start=first or None, count=count)) as records:
            async for record in records:
                yield record
        return
    # The platform numbers all records of a job, so those of a level are counted here.
    last = None if count is None else first + count
    place = 0
    async with reading(view.client.logs.iter(key)) as records:
        async for record in records:
            if place == last:
                return
            if isinstance(level := record.get("level"), int) and level >= lowest:
                if place >= first:
                    yield record
                place += 1


SUBCOMMAND: Final = Subcommand(
    name="logs",
    examples=(
        ("scrapy platform logs", "log of the last job"),
        ("scrapy platform logs 1/2/3 --level warning", "what went wrong in a job"),
        ("scrapy platform logs -f --tail 20", "the end of the log, and what a running job adds to it"),
        ("scrapy platform logs --json --start 100 --count 50", "a part, as JSON lines"),
    ),
    add_options=_add_options,
    run=look(_show),
)

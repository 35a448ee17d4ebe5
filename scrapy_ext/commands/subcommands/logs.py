"""``scrapy platform logs``."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.logs import LEVELS
from scrapy_ext.commands.follow import Rows, add_follow_options, first_of, followed
from scrapy_ext.commands.selection import add_job_argument, selected_job
from scrapy_ext.commands.subcommand import Subcommand, View, add_paging_options, add_view_options, look, note_shown
from scrapy_ext.commands.terminal.output import Column, reading
from scrapy_ext.commands.terminal.text import TIME_WIDTH, clock

_LEVELS: Final = {logging.getLevelName(level): level for level in LEVELS}

#: What Scrapy logs when a crawl begins: a heading, and a list of components or settings of some twenty lines.
_LIST: Final = re.compile(r"(Enabled [a-z ]+|Overridden settings|Versions):\n")


def _columns(message: Callable[[str], str]) -> tuple[Column, ...]:
    return (
        Column("time (UTC)", lambda record: clock(record.get("time")), least=TIME_WIDTH),
        Column("level", lambda record: _level_name(record.get("level")), least=len("CRITICAL")),
        Column("message", lambda record: message(str(record.get("message", ""))), wrap=True),
    )


def _folded(message: str) -> str:
    """Return the heading alone of a list that Scrapy logs when a crawl begins, and any other message as it is."""
    found, lines = _LIST.match(message), message.count("\n")
    return f"{found[1]}: … ({lines} lines; logs --full)" if found and lines > 1 else message


#: How log records are shown: with Scrapy's lists folded, and in full.
COLUMNS: Final = _columns(_folded)
_FULL_COLUMNS: Final = _columns(str)


def _level_name(level: Any) -> str:
    return str(logging.getLevelName(level)) if isinstance(level, int) else ""


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    parser.add_argument(
        "--level", type=str.upper, choices=_LEVELS, default="DEBUG", help="only records of this level and above"
    )
    parser.add_argument(
        "--full", action="store_true", help="show the lists of components and settings at the begin of a crawl in full"
    )
    add_follow_options(parser, "records")
    add_paging_options(parser, "records")
    add_view_options(parser)


async def _show(view: View) -> None:
    options, key = view.options, await selected_job(view)
    counts = (await view.client.logs.stats(key)).counts
    lowest = _LEVELS[options.level]
    total = sum(count for level, count in counts.items() if level.isdigit() and int(level) >= lowest)
    start, columns = first_of(view, total), _FULL_COLUMNS if options.full else COLUMNS
    if options.follow:
        await view.output.live(followed_log(view, key, lowest, start, options.count), columns)
        return
    number = await view.output.records(_records(view, key, lowest, start), columns)
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
        ("scrapy platform logs --full", "also the lists of components and settings that Scrapy logs first"),
        ("scrapy platform logs --json --start 100 --count 50", "a part, as JSON lines"),
    ),
    add_options=_add_options,
    run=look(_show),
)

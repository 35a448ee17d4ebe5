"""``scrapy platform stop``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.commands.follow import Watch, has_ended
from scrapy_ext.commands.selection import add_jobs_argument, selected_jobs
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, add_view_options, look, seconds
from scrapy_ext.commands.terminal.output import Column
from scrapy_ext.commands.terminal.progress import bar
from scrapy_ext.commands.terminal.text import shown

_COLUMNS: Final = (
    Column.field("id", "job"),
    Column.field("spider"),
    Column("state", lambda row: shown(row.get("close_reason") or row.get("state"))),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_jobs_argument(parser)
    parser.add_argument("--wait", action="store_true", help="wait until they have ended")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=600.0,
        metavar="SECONDS",
        help="with --wait: for so long at most (default: %(default)g)",
    )
    add_view_options(parser)


async def _show(view: View) -> None:
    keys = await selected_jobs(view)
    for key in keys:
        await view.client.jobs.stop(key.project, key)
    try:
        if view.options.wait:
            await _wait(view, keys)
    finally:
        number = await view.output.records(_states(view, keys), _COLUMNS)
    if not view.options.wait:
        asked = "1 job was" if number == 1 else f"{number} jobs were"
        await view.output.note(f"{asked} asked to stop; --wait waits until that is so")


async def _wait(view: View, keys: list[JobKey]) -> None:
    watch, left = Watch(view.say), list(keys)
    try:
        with bar("jobs that have ended", len(keys)) as advance:
            async with asyncio.timeout(view.options.timeout):
                while True:
                    ended = [key for key in left if await watch.ask(lambda key=key: has_ended(view.client, key))]  # type: ignore[misc]
                    advance(len(ended))
                    left = [key for key in left if key not in ended]
                    if not left:
                        return
                    await watch.pause(something_came=bool(ended))
    except TimeoutError:
        told = ", ".join(map(str, left[:5])) + (" …" if len(left) > 5 else "")
        have = "1 job has" if len(left) == 1 else f"{len(left)} jobs have"
        raise CommandError(f"after {view.options.timeout:g} s, {have} not ended: {told}") from None


async def _states(view: View, keys: list[JobKey]) -> AsyncIterator[dict[str, Any]]:
    for key in keys:
        metadata = await view.client.jobs.metadata(key)
        fields = ("spider", "state", "close_reason")
        yield {"id": str(key)} | {name: metadata[name] for name in fields if name in metadata}


SUBCOMMAND: Final = Subcommand(
    name="stop",
    examples=(
        ("scrapy platform stop 1/2/3", "ask a running job to stop; one that waits is cancelled"),
        ("scrapy platform stop 1/2/3 1/2/4 --wait", "two, and wait until they have ended"),
    ),
    add_options=_add_options,
    run=look(_show),
)

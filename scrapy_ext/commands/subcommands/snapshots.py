"""``scrapy platform snapshots``: the pages of a job whose callbacks raised, as a list or as files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from scrapy_ext.api.platform.snapshots import DamagedPartError, Part, StoredSnapshot
from scrapy_ext.commands.options import JOB, argument
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.selection import selected_job
from scrapy_ext.commands.subcommand import CommandError, View, platform_command
from scrapy_ext.commands.text import TIME_WIDTH, clock, counted, size
from scrapy_ext.crawl.snapshots.files import write_files

_COLUMNS: Final = (
    Column("time (UTC)", lambda row: clock(row["time"]), least=TIME_WIDTH),
    Column.field("error"),
    Column.field("message"),
    Column.field("callback"),
    Column.field("url"),
    Column("page", lambda row: _size(row.get("page")), right=True),
    Column("screenshot", lambda row: _size(row.get("screenshot")), right=True),
)


def _size(content: Mapping[str, int] | None) -> str:
    return size(content["bytes"]) if content else ""


async def _show(view: View) -> None:
    key = await selected_job(view)
    found = [stored async for stored in view.client.snapshots.list(key)]
    if view.options.output is not None:
        await _write(view, found, view.options.output)
        return
    rows = [{"id": stored.id, **msgspec.to_builtins(stored.snapshot)} for stored in found]
    await view.show(rows, _COLUMNS, f"{counted(len(rows), 'snapshot')} of job {key}")


async def _write(view: View, found: list[StoredSnapshot], folder: Path) -> None:
    damaged = 0
    for stored in found:
        parts: dict[Part, bytes] = {}
        for part in Part:
            try:
                data = await view.client.snapshots.read(stored, part)
            except DamagedPartError as error:
                damaged += 1
                view.say(f"{stored.id}: {error}")
                continue
            if data is not None:
                parts[part] = data
        try:
            await asyncio.to_thread(write_files, folder, stored.id, stored.snapshot, parts)
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error.strerror or error}") from None
    view.say(f"{counted(len(found), 'snapshot')} in {folder}")
    if damaged:
        raise CommandError(
            f"{counted(damaged, 'part')} could not be read, and nothing was written for them; repeat the command"
        )


SUBCOMMANDS: Final = (
    platform_command(
        "snapshots",
        _show,
        (
            ("scrapy platform snapshots", "the snapshots of the newest job"),
            ("scrapy platform snapshots 1/2/3 --output pages", "the pages and screenshots as files of a folder"),
        ),
        JOB,
        argument("--output", type=Path, metavar="FOLDER", help="write them to files of this folder"),
        details="A crawl keeps the pages whose callbacks raise with the setting EXTRACT_API_SNAPSHOTS_ON_ERROR.",
    ),
)

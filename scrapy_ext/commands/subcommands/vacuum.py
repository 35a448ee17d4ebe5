"""``scrapy platform vacuum``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.stores import add_store_options, chosen_store, opened, run_on_store
from scrapy_ext.commands.subcommand import Subcommand


async def _vacuum(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store.discards import purge
    from scrapy_ext.server.store.engine.opening import FILE

    where = chosen_store(settings, options)
    async with opened(where, must_exist=True) as engine:
        before = _size(where / FILE) if isinstance(where, Path) else None
        await purge(engine)
        await engine.vacuum()
    if before is None or not isinstance(where, Path):
        return f"{where}: done"
    return f"{where}: {before} bytes before, {_size(where / FILE)} now"


def _size(path: Path) -> int:
    return path.stat().st_size


SUBCOMMAND: Final = Subcommand(
    name="vacuum",
    examples=(("scrapy platform vacuum", "in a project: the store of its crawls; writes wait meanwhile"),),
    add_options=add_store_options,
    run=run_on_store(_vacuum),
)

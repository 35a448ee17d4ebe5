"""``scrapy platform restore``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.stores import (
    add_replace_option,
    add_store_options,
    chosen_store,
    copied,
    opened,
    run_on_store,
    summary,
)
from scrapy_ext.commands.subcommand import Subcommand


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="file that backup has written")
    add_store_options(parser)
    add_replace_option(parser, "delete what the store has first")


async def _restore(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store.files import old_file
    from scrapy_ext.server.store.store import now_ms

    where = chosen_store(settings, options)
    async with old_file(options.file, now_ms()) as source, opened(where, must_exist=False) as target:
        found = await copied(source, target, str(options.file), replace=options.replace)
    return f"{where}: {summary(found)}"


SUBCOMMAND: Final = Subcommand(
    name="restore",
    examples=(
        ("scrapy platform restore crawls.db", "into the project's store, which must be empty"),
        ("scrapy platform restore --database postgresql://USER@HOST/DATABASE crawls.db", "into a database"),
    ),
    add_options=_add_options,
    run=run_on_store(_restore),
)

"""``scrapy platform restore``."""

from __future__ import annotations

import argparse
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.stores import add_file_options, chosen_store, copied_into_store, opened, run_on_store
from scrapy_ext.commands.subcommand import Subcommand


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_file_options(parser, "file that backup has written", "delete what the store has first")


async def _restore(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store.copying import old_file
    from scrapy_ext.server.store.store import now_ms

    where = chosen_store(settings, options)
    async with old_file(options.file, now_ms()) as source, opened(where, must_exist=False) as target:
        return await copied_into_store(source, target, str(options.file), str(where), replace=options.replace)


SUBCOMMAND: Final = Subcommand(
    name="restore",
    examples=(
        ("scrapy platform restore crawls.db", "into the project's store, which must be empty"),
        ("scrapy platform restore --database postgresql://USER@HOST/DATABASE crawls.db", "into a database"),
    ),
    add_options=_add_options,
    run=run_on_store(_restore),
)

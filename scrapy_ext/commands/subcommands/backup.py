"""``scrapy platform backup``."""

from __future__ import annotations

import argparse
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.stores import add_file_options, chosen_store, copied, opened, run_on_store
from scrapy_ext.commands.subcommand import Subcommand


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_file_options(parser, "file to write", "write over FILE if it exists")


async def _backup(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.copying import new_file
    from scrapy_ext.server.store.store import now_ms

    where, file = chosen_store(settings, options), options.file
    if file.exists() and not options.replace:
        raise StoreError(f"{file} exists. Name another file, or write over it with --replace.")
    async with opened(where, must_exist=True) as source, new_file(file, now_ms()) as target:
        return await copied(source, target, str(where), str(file), replace=False)


SUBCOMMAND: Final = Subcommand(
    name="backup",
    examples=(
        ("scrapy platform backup crawls.db", "in a project: everything that its crawls have stored"),
        ("scrapy platform backup --data DIR crawls.db", "of a server of its own, which goes on meanwhile"),
    ),
    add_options=_add_options,
    run=run_on_store(_backup),
)

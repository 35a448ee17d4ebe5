"""``scrapy platform migrate``."""

from __future__ import annotations

import argparse
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.stores import (
    add_replace_option,
    copied_into_store,
    named_store,
    opened,
    run_on_store,
)
from scrapy_ext.commands.subcommand import Subcommand

_PLACE: Final = (
    "sqlite (the project's data directory), postgresql (the database of SERVER_DATABASE), a directory, or the "
    "address of a database"
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", required=True, metavar="STORE", help=_PLACE)
    parser.add_argument("--to", dest="target", required=True, metavar="STORE", help="likewise; it must be empty")
    add_replace_option(parser, "delete what the target has first")


async def _migrate(settings: BaseSettings, options: argparse.Namespace) -> str:
    from scrapy_ext.server.store import StoreError

    source, target = (named_store(settings, name) for name in (options.source, options.target))
    if source == target:
        raise StoreError(f"{source} is both source and target. Name two stores.")
    async with opened(source, must_exist=True) as old, opened(target, must_exist=False) as new:
        return await copied_into_store(old, new, str(source), str(target), replace=options.replace)


SUBCOMMAND: Final = Subcommand(
    name="migrate",
    examples=(
        ("scrapy platform migrate --from sqlite --to postgresql", "from the project's file to SERVER_DATABASE"),
        ("scrapy platform migrate --from postgresql --to DIR", "and back, into a new data directory"),
    ),
    add_options=_add_options,
    run=run_on_store(_migrate),
)

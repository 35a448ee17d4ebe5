"""``scrapy platform collections``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any, Final

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.commands.output import reading
from scrapy_ext.commands.subcommand import (
    CommandError,
    Subcommand,
    View,
    add_output_options,
    add_paging_options,
    look,
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    types = [kind.value for kind in CollectionType]
    parser.add_argument("collection", nargs="?", metavar="COLLECTION", help="show the records of this collection")
    parser.add_argument("--type", choices=types, help="its type, where two collections have one name")
    parser.add_argument("--prefix", metavar="TEXT", help="only records whose key starts so")
    parser.add_argument("--key", action="append", metavar="KEY", help="only the record with this key (may be repeated)")
    parser.add_argument("--after", metavar="KEY", help="only records behind this key")
    add_paging_options(parser, "records", start=False)
    add_output_options(parser)


async def _show(view: View) -> None:
    if view.options.collection is None:
        await _list(view)
    else:
        await _records(view)


async def _list(view: View) -> None:
    found = await view.client.collections.list(view.project)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for one in islice(found, view.output.count(view.options)):
            count = await view.client.collections.count(view.project, one.type, one.name)
            yield {"type": one.type, "name": one.name, "records": count}

    number = await view.output.records(rows())
    await view.output.note(f"{number} of {len(found)} collections")


async def _records(view: View) -> None:
    options, client = view.options, view.client
    kind = await _type(view)
    stored = client.collections.iter(
        view.project,
        kind,
        options.collection,
        keys=options.key,
        prefix=options.prefix,
        startafter=options.after,
        count=view.output.count(options),
        meta=("_key", "_ts"),
    )
    last = ""

    async def keyed() -> AsyncIterator[dict[str, Any]]:
        nonlocal last
        async with reading(stored) as records:
            async for record in records:
                last = str(record["_key"])
                # The key first: it is what a reader looks for.
                yield {"_key": last, **record}

    number = await view.output.records(keyed())
    more = f"; those behind: --after {last}" if number and number == view.output.count(options) else ""
    await view.output.note(f"{number} records of {options.collection}{more}")


async def _type(view: View) -> str:
    name = view.options.collection
    types = [one.type for one in await view.client.collections.list(view.project) if one.name == name]
    if view.options.type is not None:
        types = [kind for kind in types if kind == view.options.type]
    if not types:
        raise CommandError(f"there is no collection {name!r}; `scrapy platform collections` lists them")
    if len(types) > 1:
        raise CommandError(f"there are collections {name!r} of the types {', '.join(types)}; choose one with --type")
    return types[0]


SUBCOMMAND: Final = Subcommand(
    name="collections",
    examples=(
        ("scrapy platform collections", "the project's collections"),
        ("scrapy platform collections books_seen --count 10", "ten records"),
        ("scrapy platform collections books_seen --prefix ab", "records whose key starts with ab"),
    ),
    add_options=_add_options,
    run=look(_show),
)

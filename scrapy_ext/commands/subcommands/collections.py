"""``scrapy platform collections``, with records written from JSON lines."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.commands.selection import add_yes_option, confirm
from scrapy_ext.commands.subcommand import (
    Action,
    CommandError,
    View,
    add_paging_options,
    add_view_options,
    with_actions,
)
from scrapy_ext.commands.terminal.output import Column, each_of, reading
from scrapy_ext.commands.terminal.progress import bar
from scrapy_ext.commands.terminal.text import counted

_RECORDS: Final = 1000
_BYTES: Final = 4 * 2**20
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def put_lines(view: View, kind: str, file: Path | None) -> int:
    """Write the records of a file, or of standard input; returns how many. Raises :class:`CommandError` for a line
    that is none, when those before it are written."""
    written = 0
    try:
        stream, size = (sys.stdin.buffer, None) if file is None else await asyncio.to_thread(_opened, file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from None
    try:
        with bar("bytes", size) as advance:
            groups = _groups(stream)
            while True:
                group, length, fault = await asyncio.to_thread(next, groups, ([], 0, None))
                if group:
                    body = b"".join(line + b"\n" for line in group)
                    await view.client.collections.write(view.project, kind, view.options.collection, body)
                written += len(group)
                advance(length)
                if fault is not None:
                    are = "is" if written == 1 else "are"
                    told = f"{counted(written, 'record')} before it {are} written; correct it and put the file again"
                    raise CommandError(f"{file or 'standard input'}, {fault}; {told}")
                if not group:
                    return written
    finally:
        if file is not None:
            stream.close()


def _opened(file: Path) -> tuple[BinaryIO, int | None]:
    return file.open("rb"), file.stat().st_size


def _groups(stream: BinaryIO) -> Iterator[tuple[list[bytes], int, str | None]]:
    """Lines to write together, how many bytes they took, and what is wrong with the one behind them."""
    group: list[bytes] = []
    length = 0
    for number, line in enumerate(stream, 1):
        text = line.strip()
        fault = _fault(text) if text else None
        if fault is not None:
            yield group, length, f"line {number}: {fault}"
            return
        length += len(line)
        if text:
            group.append(text)
        if len(group) == _RECORDS or length >= _BYTES:
            yield group, length, None
            group, length = [], 0
    if group:
        yield group, length, None


def _fault(line: bytes) -> str | None:
    try:
        record = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"not a JSON object ({error})"
    key = record.get("_key")
    return None if isinstance(key, str) and key else "a record needs a _key, which is text"


_TYPES: Final = [kind.value for kind in CollectionType]
_COLUMNS: Final = (Column.field("type"), Column.field("name"), Column.field("records", right=True))


def _list_options(parser: argparse.ArgumentParser) -> None:
    add_paging_options(parser, "collections", start=False)
    add_view_options(parser)


def _name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("collection", metavar="COLLECTION", help="its name")


def _type(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", choices=_TYPES, help="its type, where two collections have one name")


def _get_options(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    _type(parser)
    parser.add_argument("--prefix", metavar="TEXT", help="only records whose key starts so")
    parser.add_argument("--key", action="append", metavar="KEY", help="only the record with this key (may be repeated)")
    parser.add_argument("--meta", action="store_true", help="add _ts, the time when the record was written")
    parser.add_argument("--after", metavar="KEY", help="only records behind this key")
    add_paging_options(parser, "records", start=False)
    add_view_options(parser)


def _put_options(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="JSON lines (default: standard input)")
    parser.add_argument("--type", choices=_TYPES, help="the type of a new collection (default: s)")
    add_view_options(parser)


def _count_options(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    _type(parser)
    parser.add_argument("--prefix", metavar="TEXT", help="only records whose key starts so")
    add_view_options(parser)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    _type(parser)
    parser.add_argument("--key", action="append", metavar="KEY", help="only the record with this key (may be repeated)")
    parser.add_argument("--prefix", metavar="TEXT", help="only records whose key starts so")
    add_yes_option(parser)
    add_view_options(parser)


def _rename_options(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("new_name", metavar="NEW", help="its new name")
    add_view_options(parser)


async def _list(view: View) -> None:
    found = await view.client.collections.list(view.project)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for one in islice(found, view.output.count(view.options)):
            count = await view.client.collections.count(view.project, one.type, one.name)
            yield {"type": one.type, "name": one.name, "records": count}

    number = await view.output.records(rows(), _COLUMNS)
    await view.output.note(f"{number} of {counted(len(found), 'collection')}")


async def _get(view: View) -> None:
    options, client = view.options, view.client
    kind = await _type_of(view)
    stored = client.collections.iter(
        view.project,
        kind,
        options.collection,
        keys=options.key,
        prefix=options.prefix,
        startafter=options.after,
        count=view.output.count(options),
        meta=("_key", "_ts") if options.meta else ("_key",),
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
    await view.output.note(f"{counted(number, 'record')} of {options.collection}{more}")


async def _put(view: View) -> None:
    name = view.options.collection
    types = await _types(view)
    if view.options.type is None and len(types) > 1:
        raise CommandError(f"there are collections {name!r} of the types {', '.join(types)}; choose one with --type")
    kind = view.options.type or (types[0] if types else CollectionType.STORE.value)
    number = await put_lines(view, kind, view.options.file)
    columns = (*_COLUMNS[:2], Column.field("written", right=True))
    await view.output.records(each_of([{"type": kind, "name": name, "written": number}]), columns)


async def _count(view: View) -> None:
    kind, name = await _type_of(view), view.options.collection
    number = await view.client.collections.count(view.project, kind, name, prefix=view.options.prefix)
    await view.output.records(each_of([{"type": kind, "name": name, "records": number}]), _COLUMNS)


async def _delete(view: View) -> None:
    options, name, collections = view.options, view.options.collection, view.client.collections
    kind = await _type_of(view)
    if options.key and options.prefix is not None:
        raise CommandError("--key and --prefix do not go together")
    if options.key:
        await confirm(view, f"Delete {counted(len(options.key), 'record')} of {name}?")
        await collections.delete_keys(view.project, kind, name, options.key)
    elif options.prefix is not None:
        number = await collections.count(view.project, kind, name, prefix=options.prefix)
        await confirm(view, f"Delete {counted(number, 'record')} of {name}?")
        await collections.delete(view.project, kind, name, prefix=options.prefix)
    else:
        if options.type is not None:
            raise CommandError("--type belongs to --key or --prefix: a collection is deleted in all its types")
        number = await collections.count(view.project, kind, name)
        await confirm(view, f"Delete the collection {name} with {counted(number, 'record')}?")
        await collections.drop(view.project, name)
    await view.output.note("deleted")


async def _rename(view: View) -> None:
    name, new_name = view.options.collection, view.options.new_name
    if not await _types(view):
        raise _unknown(name)
    await view.client.collections.rename(view.project, name, new_name)
    await view.output.note(f"collection {name} is now {new_name}")


async def _types(view: View) -> list[str]:
    name = view.options.collection
    return [one.type for one in await view.client.collections.list(view.project) if one.name == name]


async def _type_of(view: View) -> str:
    name, wanted, types = view.options.collection, view.options.type, await _types(view)
    if wanted is not None:
        types = [kind for kind in types if kind == wanted]
    if not types:
        raise _unknown(name)
    if len(types) > 1:
        raise CommandError(f"there are collections {name!r} of the types {', '.join(types)}; choose one with --type")
    return types[0]


def _unknown(name: str) -> CommandError:
    return CommandError(f"there is no collection {name!r}; `scrapy platform collections` lists them")


SUBCOMMAND: Final = with_actions(
    "collections",
    (
        Action("list", "list the project's collections", _list_options, _list),
        Action("get", "show records", _get_options, _get),
        Action("put", "write records, JSON lines with a _key each", _put_options, _put),
        Action("count", "count records", _count_options, _count),
        Action("rename", "give a collection another name", _rename_options, _rename),
        Action("delete", "delete a collection, or records of it", _delete_options, _delete),
    ),
    (
        ("scrapy platform collections", "the project's collections"),
        ("scrapy platform collections get books_seen --count 10", "ten records"),
        ("scrapy platform collections get books_seen --prefix ab", "records whose key starts with ab"),
        ("scrapy platform collections get books_seen > books.jsonl", "all of them, to a file"),
        ("scrapy platform collections put books_seen books.jsonl", "and back; those with the same key are replaced"),
        ("scrapy platform collections delete books_seen --prefix ab", "some of them, after a question"),
    ),
    in_full=lambda words: ["get", *words],
)

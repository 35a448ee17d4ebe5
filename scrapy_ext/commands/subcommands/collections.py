"""``scrapy platform collections``, whose records are JSON lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from scrapy_ext.api.platform.collections import CollectionType, record_faults
from scrapy_ext.commands.conditions import condition_options, conditions_of
from scrapy_ext.commands.download import Download, download_options, save, wants_file
from scrapy_ext.commands.options import YES, AddOptions, argument, paging_options
from scrapy_ext.commands.output import Column, bar, reading
from scrapy_ext.commands.selection import confirm
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View, with_actions
from scrapy_ext.commands.text import counted

#: Maximum records and bytes of one request.
_RECORDS: Final = 1000
_BYTES: Final = 4 * 2**20
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def put_lines(view: View, kind: str, file: Path | None) -> int:
    """Write the records of a file, or of standard input, and return their number.

    Raises :class:`CommandError` for a line that is not a record; the records before it are written.
    """
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
                    rest = (
                        f"{counted(written, 'record')} before it {are} written; correct the line and put the file again"
                    )
                    raise CommandError(f"{file or 'standard input'}, {fault}; {rest}")
                if not group:
                    return written
    finally:
        if file is not None:
            stream.close()


def _opened(file: Path) -> tuple[BinaryIO, int | None]:
    return file.open("rb"), file.stat().st_size


def _groups(stream: BinaryIO) -> Iterator[tuple[list[bytes], int, str | None]]:
    """Yield groups of lines, the number of their bytes, and the error of the line after them."""
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
    if not isinstance(key, str) or not key:
        return "the record has no _key with text"
    # The server would name the line of its body, not that of the file.
    return next(map(str, record_faults(record, len(line))), None)


_TYPES: Final = [kind.value for kind in CollectionType]
_COLUMNS: Final = (Column.field("type"), Column.field("name"), Column.field("records", right=True))


_COLLECTION: Final = argument("collection", metavar="COLLECTION", help="name of the collection")
_TYPE: Final = argument("--type", choices=_TYPES, help="type of the collection, if several types have this name")
_PREFIX: Final = argument("--prefix", metavar="TEXT", help="only records whose key begins with TEXT")
_KEY: Final = argument("--key", action="append", metavar="KEY", help="only the record with this key (may be repeated)")
_GET: Final[tuple[AddOptions, ...]] = (
    argument("--meta", action="store_true", help="add _ts, the time when the record was written"),
    argument("--after", metavar="KEY", help="only records after this key"),
    *condition_options("records", "price > 20 and name ~ kettle"),
    paging_options("records", start=False),
    download_options(),
)
_PUT: Final[tuple[AddOptions, ...]] = (
    argument("file", nargs="?", type=Path, metavar="FILE", help="JSON lines (default: standard input)"),
    argument("--type", choices=_TYPES, help="type of a new collection (default: s)"),
)


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
    if wants_file(view):
        await _save(view, kind)
        return
    stored = client.collections.iter(
        view.project,
        kind,
        options.collection,
        keys=options.key,
        prefix=options.prefix,
        startafter=options.after,
        count=view.output.count(options),
        meta=("_key", "_ts") if options.meta else ("_key",),
        conditions=conditions_of(options),
    )
    last = ""

    async def keyed() -> AsyncIterator[dict[str, Any]]:
        nonlocal last
        async with reading(stored) as records:
            async for record in records:
                last = str(record["_key"])
                # The key is the first column.
                yield {"_key": last, **record}

    number = await view.output.records(keyed())
    more = f"; the next: --after {last}" if number and number == view.output.count(options) else ""
    await view.output.note(f"{counted(number, 'record')} of {options.collection}{more}")


async def _save(view: View, kind: str) -> None:
    """Save the selected records to a file."""
    options, collections = view.options, view.client.collections
    conditions = conditions_of(options)

    async def read(number: int, last: dict[str, Any] | None) -> AsyncIterator[dict[str, Any]]:
        stored = collections.iter(
            view.project,
            kind,
            options.collection,
            keys=options.key,
            prefix=options.prefix,
            startafter=options.after if last is None else str(last["_key"]),
            count=None if options.count is None else options.count - number,
            meta=("_key", "_ts") if options.meta else ("_key",),
            conditions=conditions,
        )
        async with reading(stored) as records:
            async for record in records:
                yield {"_key": record["_key"], **record}

    chosen = {name: getattr(options, name) for name in ("key", "prefix", "after", "count", "meta")}
    selection = {"project": view.project, "collection": options.collection, "type": kind, **chosen}
    if conditions:
        selection["conditions"] = conditions
    await save(view, Download("record", f"collection {options.collection}", options.count, selection, read))


async def _put(view: View) -> None:
    name = view.options.collection
    types = await _types(view)
    if view.options.type is None and len(types) > 1:
        raise _ambiguous(name, types)
    kind = view.options.type or (types[0] if types else CollectionType.STORE.value)
    number = await put_lines(view, kind, view.options.file)
    columns = (*_COLUMNS[:2], Column.field("written", right=True))
    await view.show([{"type": kind, "name": name, "written": number}], columns)


async def _count(view: View) -> None:
    kind, name = await _type_of(view), view.options.collection
    number = await view.client.collections.count(view.project, kind, name, prefix=view.options.prefix)
    await view.show([{"type": kind, "name": name, "records": number}], _COLUMNS)


async def _delete(view: View) -> None:
    options, name, collections = view.options, view.options.collection, view.client.collections
    kind = await _type_of(view)
    if options.key and options.prefix is not None:
        raise CommandError("--key and --prefix cannot be combined; use one of them")
    if options.key:
        await confirm(view, f"Delete {counted(len(options.key), 'record')} of {name}?")
        await collections.delete_keys(view.project, kind, name, options.key)
    elif options.prefix is not None:
        number = await collections.count(view.project, kind, name, prefix=options.prefix)
        await confirm(view, f"Delete {counted(number, 'record')} of {name}?")
        await collections.delete(view.project, kind, name, prefix=options.prefix)
    else:
        if options.type is not None:
            raise CommandError(
                "--type needs --key or --prefix; without them, a collection is deleted with all its types: leave "
                "--type out"
            )
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
        raise _ambiguous(name, types)
    return types[0]


def _ambiguous(name: str, types: list[str]) -> CommandError:
    return CommandError(f"collections named {name!r} have the types {', '.join(types)}; choose one with --type")


def _unknown(name: str) -> CommandError:
    return CommandError(f"there is no collection {name!r}; `scrapy platform collections` lists them")


SUBCOMMANDS: Final = (
    with_actions(
        "collections",
        (
            CommandAction(
                "list", "list the project's collections", _list, (paging_options("collections", start=False),)
            ),
            CommandAction("get", "show records", _get, (_COLLECTION, _TYPE, _PREFIX, _KEY, *_GET)),
            CommandAction("put", "write records from JSON lines with a _key each", _put, (_COLLECTION, *_PUT)),
            CommandAction("count", "count records", _count, (_COLLECTION, _TYPE, _PREFIX)),
            CommandAction(
                "rename",
                "rename a collection",
                _rename,
                (_COLLECTION, argument("new_name", metavar="NEW", help="new name of the collection")),
            ),
            CommandAction(
                "delete",
                "delete a collection, or some of its records",
                _delete,
                (_COLLECTION, _TYPE, _KEY, _PREFIX, YES),
            ),
        ),
        (
            ("scrapy platform collections", "the project's collections"),
            ("scrapy platform collections get books_seen --count 10", "ten records"),
            ("scrapy platform collections get books_seen --prefix ab", "records whose key begins with ab"),
            ("scrapy platform collections get books_seen > books.jsonl", "all records, to a file"),
            ("scrapy platform collections put books_seen books.jsonl", "write the file; records of a known key change"),
            ("scrapy platform collections delete books_seen --prefix ab", "delete some records, after confirmation"),
        ),
        in_full=lambda words: ["get", *words],
    ),
)

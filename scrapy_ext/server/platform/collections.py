"""``/collections`` (platform-api.md, Collections)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import Response

from scrapy_ext.api.platform.collections import Count, check_name, parse_type, record_faults
from scrapy_ext.api.platform.formats import is_true
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import TEXT, NotFound, empty, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import Page, result, result_of, with_meta
from scrapy_ext.server.platform.filters import Filter, refuse_filters
from scrapy_ext.server.store.collections.collections import Record
from scrapy_ext.server.store.collections.selections import Collection, Range, Selection, key_range, prefix_range

#: Keys or prefixes that one request may name.
_MAX_NAMED: Final = 1000
#: Bytes of records that are checked in a thread.
_MUCH: Final = 256 * 1024
#: Bytes that a record takes beside its own until it is stored.
_RECORD: Final = 400
#: Records that a count with a filter looks at before it says where to go on.
_MAX_LOOKED_AT: Final = 20_000

#: The beginning of an object whose first member is its key, up to the second.
_KEY_FIRST: Final = re.compile(rb'\s*\{\s*"_key"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*')

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


async def collections(call: Call) -> Response:
    """Answer a call."""
    match call.path:
        case [_, "list"]:
            return await _list(call)
        case [_, "delete" | "rename" as action]:
            return await (_drop if action == "delete" else _rename)(call)
        case [_, _, _]:
            return await _whole(call)
        case [_, _, _, "count"] if call.method == "GET":
            return await _count(call)
        case [_, _, _, "deleted"] if call.method == "POST":
            return await _delete_keys(call)
        case [_, _, _, key]:
            return await _one(call, key)
        case [_, _, _, key, "value"]:
            return await _value(call, key)
        case _:
            raise NotFound


def _collection(call: Call) -> Collection:
    check_name(call.path[2])
    return Collection(call.project, parse_type(call.path[1]), call.path[2])


async def _list(call: Call) -> Response:
    _only(call, "GET")
    names = await call.store.collections.names(call.project)

    async def pages() -> AsyncIterator[Page]:
        yield [msgspec.json.encode(name) for name in names]

    return await result(call, pages())


async def _drop(call: Call) -> Response:
    _only(call, "POST")
    name = _parameter(call, "name")
    await call.store.collections.drop(call.project, name)
    purge = BackgroundTask(call.store.purge)
    answer = json({"status": "success", "deleted": name}, 202)
    answer.background = purge
    return answer


async def _rename(call: Call) -> Response:
    _only(call, "POST")
    name, new_name = _parameter(call, "name"), _parameter(call, "new_name")
    check_name(new_name, "new_name")
    if not await call.store.collections.rename(call.project, name, new_name):
        raise NotFound(f"Not Found. Project {call.project} has no collection {name[:60]}.")
    return json({"status": "success", "renamed": new_name})


def _parameter(call: Call, name: str) -> str:
    value = call.query.get(name)
    if not value:
        raise refused(name, "is required", f"Add ?{name}=… to the address.")
    return value


def _only(call: Call, *methods: str) -> None:
    if call.method not in methods:
        raise method_not_allowed(*methods)


async def _whole(call: Call) -> Response:
    _only(call, "GET", "POST", "DELETE")
    if call.method == "POST":
        return await _write(call, None)
    which, selection = _selected(call)
    if call.method == "GET":
        return await result(call, _pages(call, _chosen(call, which, selection)), msgpack=True)
    refuse_filters(call)
    if "count" in call.query:  # to ignore it would be to delete more than was asked
        raise refused("count", "is not supported here", "Leave it out, or delete by key.")
    if not any(name in call.query for name in ("key", "prefix", "startts", "endts")):
        raise refused(
            "selection",
            "of the records to delete is missing",
            "Give key, prefix, startts or endts; POST /collections/<project>/delete?name=… deletes a whole collection.",
        )
    deletion = await call.store.collections.delete(which, selection)
    return json({"deleted": deletion.deleted, "scanned": deletion.scanned})


async def _chosen(call: Call, which: Collection, selection: Selection) -> AsyncIterator[list[Record]]:
    """The selected records that the filter chooses."""
    conditions, left = Filter.of(call), call.number("count")
    async for page in call.store.collections.scan(which, selection, left if conditions is None else None):
        if conditions is not None:
            page = (await asyncio.to_thread(conditions.chosen, page, _json))[:left]  # noqa: PLW2901
            left = None if left is None else left - len(page)
        yield page
        if left == 0 and conditions is not None:
            return


def _json(record: Record) -> bytes:
    return record.value


async def _count(call: Call) -> Response:
    which, selection = _selected(call)
    conditions = Filter.of(call)
    if conditions is None:
        return json(await call.store.collections.count(which, selection))
    total, scanned = 0, 0
    async for page in call.store.collections.scan(which, selection):
        if scanned >= _MAX_LOOKED_AT:
            return json(Count(total, scanned, page[0].key.decode()))
        total += len(await asyncio.to_thread(conditions.chosen, page, _json))
        scanned += len(page)
    return json(Count(total, scanned))


async def _one(call: Call, key: str) -> Response:
    _only(call, "GET", "POST", "DELETE")
    which = _collection(call)
    if call.method == "POST":
        return await _write(call, key)
    if call.method == "DELETE":
        await call.store.collections.delete_keys(which, [key.encode()])
        return empty()

    copies = call.number("copies")
    store = call.store.collections
    found = [await _found(call, which, key)] if copies is None else await store.copies(which, key.encode())
    if not found:
        raise NotFound
    return await result_of(call, list(map(_line(call), found[:copies])), msgpack=True)


async def _value(call: Call, key: str) -> Response:
    _only(call, "GET")
    record = msgspec.json.decode((await _found(call, _collection(call), key)).value)
    if "value" not in record:
        raise NotFound("Not Found. The record has no field named value.")
    value = record["value"]
    return Response(value if isinstance(value, str) else msgspec.json.encode(value), media_type=TEXT)


async def _found(call: Call, which: Collection, key: str) -> Record:
    record = await call.store.collections.get(which, key.encode())
    if record is None:
        raise NotFound
    return record


async def _write(call: Call, key: str | None) -> Response:
    """Records of the body; with ``key``, the one record whose key the path gives."""
    which = _collection(call)
    records: list[tuple[bytes, bytes]] = []
    fault: ContractError | None = None
    async for given in bodies.gathered(call.request, _numbered):
        if fault is not None:
            continue  # the rest may be no JSON, or too much, of which the sender is informed first
        # Others have their turn while much is checked: each number of it is looked at.
        is_much = sum(len(line) for _, line, _ in given) > _MUCH
        try:
            new = await asyncio.to_thread(checked, given, key) if is_much else checked(given, key)
        except ContractError as error:
            fault = error
            continue
        bodies.keep(sum(len(name) + len(record) for name, record in new) + _RECORD * len(new))
        records += new
    if fault is not None:
        raise fault
    if key is not None and len(records) != 1:
        raise refused("body", f"must be one record, got {len(records)}", "Post several to the collection itself.")
    if records:
        await call.store.collections.write(which, records)
        call.wrote(len(records))
    return empty()


def _numbered(line: bytes, number: int) -> tuple[tuple[int, bytes, dict[str, Any]]]:
    return ((number, line, bodies.record(line, number)),)


def checked(given: Sequence[tuple[int, bytes, dict[str, Any]]], key: str | None) -> list[tuple[bytes, bytes]]:
    """Keys and records without them, of (number of the line, line, object); raises ``ContractError``."""
    records: list[tuple[bytes, bytes]] = []
    for number, line, record in given:
        place = f"line {number}"
        if key is not None and record.setdefault("_key", key) != key:
            raise refused(place, f"has _key {record['_key']!r}, and the path says {key!r}", "Make them the same.")
        faults = list(record_faults(record, len(line), place))
        if faults:
            raise ContractError(faults)
        records.append((record["_key"].encode(), _without_key(line, record)))
    return records


def _without_key(line: bytes, record: dict[str, Any]) -> bytes:
    """The record without its key, which is stored apart; the other members keep their bytes."""
    if len(record) == 1:
        return b"{}"
    if (first := _KEY_FIRST.match(line)) and not _perhaps_key(rest := line[first.end() :]):
        return b"{" + rest.strip()
    members = _members(line)
    members.pop("_key", None)
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in members.items()) + b"}"


def _perhaps_key(rest: bytes) -> bool:
    """Whether another member may be named _key, plainly or in escapes."""
    return b'_key"' in rest or b"\\u00" in rest


async def _delete_keys(call: Call) -> Response:
    which = _collection(call)
    async for keys in bodies.strings(call.request):
        await call.store.collections.delete_keys(which, [key.encode() for key in keys])
    return empty()


def _line(call: Call) -> Callable[[Record], bytes]:
    """What a record looks like in a result."""
    meta, nodata = call.meta("_key", "_ts"), is_true(call.query.get("nodata"))

    if not (meta or nodata):
        return lambda record: record.value

    def line(record: Record) -> bytes:
        values: dict[str, str | int] = {"_key": record.key.decode(), "_ts": record.ts}
        return with_meta(b"{}" if nodata else record.value, [(name, values[name]) for name in meta])

    return line


async def _pages(call: Call, records: AsyncIterator[list[Record]]) -> AsyncIterator[Page]:
    line = _line(call)
    async for page in records:
        yield [line(record) for record in page]


def _selected(call: Call) -> tuple[Collection, Selection]:
    """The collection of the path and the records that the parameters choose."""
    keys, prefixes = call.all("key"), call.all("prefix")
    if len(keys) + len(prefixes) > _MAX_NAMED:
        raise refused("key", f"and prefix may be given {_MAX_NAMED} times at most", "Send several requests.")
    if keys and prefixes:
        raise refused("key", "and prefix exclude each other", "Use one of them.")
    ranges: Sequence[Range] = [Range(b"", None)]
    if keys:
        ranges = [key_range(key) for key in sorted({key.encode() for key in keys})]
    elif prefixes:
        ranges = [prefix_range(prefix) for prefix in sorted({prefix.encode() for prefix in prefixes})]
    selection = Selection(
        tuple(_from(call, ranges)), call.number("prefixcount"), call.number("startts"), call.number("endts")
    )
    return _collection(call), selection


def _from(call: Call, ranges: Sequence[Range]) -> list[Range]:
    """The ranges from ``start`` on, or behind ``startafter``; both are keys of records."""
    for name, after in (("start", False), ("startafter", True)):
        key = call.query.get(name)
        if key is not None:
            low = key.encode()
            return [
                part._replace(low=low, after=after) if low >= part.low else part
                for part in ranges
                if part.high is None or low < part.high
            ]
    return list(ranges)

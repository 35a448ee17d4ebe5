"""``/collections`` (platform-api.md, Collections)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.collections import CollectionName, Count, check_name, parse_type
from scrapy_ext.api.platform.formats import is_true
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.formats import Page
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.http import bodies, json_bodies, schemas
from scrapy_ext.server.http.answers import TEXT, empty, found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import result, result_of, with_meta
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.platform.filters import chosen_of, filter_of_call, refuse_filters
from scrapy_ext.server.store.collections.collections import CollectionRecord
from scrapy_ext.server.store.collections.selections import (
    Collection,
    Range,
    RecordSelection,
    key_range,
    prefix_range,
    segments,
)
from scrapy_ext.server.store.collections.writes import checked

_value_of: Final = attrgetter("value")

_DELETE_ALL: Final = "POST /collections/<project>/delete?name=… deletes a whole collection"
#: Maximum keys or prefixes of one request.
_MAX_NAMED: Final = 1000
#: Bytes of records that are checked in a thread.
_MUCH: Final = 256 * 1024
#: Bytes of memory of a record beside its text until it is stored.
_RECORD: Final = 400
#: Records that a count with a filter reads before it returns ``nextstart``.
_MAX_SCANNED: Final = 20_000

ROUTES: Final = Routes(Access.PROCESS)

_SELECTING: Final = (
    schemas.Parameter("key", "records with these keys", schemas.STRINGS),
    schemas.Parameter("prefix", "records whose keys have this prefix", schemas.STRINGS),
    schemas.Parameter("prefixcount", "at most so many for each prefix", schemas.COUNTER),
    schemas.Parameter("startts", "stored at this time (ms) or later", schemas.COUNTER),
    schemas.Parameter("endts", "stored before this time (ms)", schemas.COUNTER),
    schemas.Parameter("start", "from this key on", schemas.STRING),
    schemas.Parameter("startafter", "after this key", schemas.STRING),
)
_RECORD_SCHEMA: Final[schemas.Schema] = schemas.whole(_key=schemas.NAME)
_DELETED: Final[schemas.Schema] = schemas.record(
    {"deleted": schemas.COUNTER, "scanned": schemas.COUNTER, "nextstart": schemas.STRING}, "deleted", "scanned"
)
_WHOLE: Final = "/collections/{project}/{type}/{collection}"
#: A record by its key, which may be encoded or not: clients of the hosted platform do not encode it.
_ONE: Final = f"{_WHOLE}/{{key:path}}"
#: End of the path of the field named value.
_VALUE: Final = "/value"


def _collection(call: Call) -> Collection:
    name = call.part("collection")
    check_name(name)
    return Collection(call.project, parse_type(call.part("type")), name)


@ROUTES.add(
    "GET /collections/{project}/list",
    "List the collections of a project.",
    schemas.lines("Their types and names.", CollectionName),
    parameters=(schemas.COUNT, *schemas.SHAPING),
)
async def _list(call: Call) -> Response:
    names = await call.store.collections.names(call.project)
    return await result_of(call, [msgspec.json.encode(name) for name in names[: call.number("count")]])


@ROUTES.add(
    "POST /collections/{project}/delete",
    "Delete a collection.",
    schemas.value("The collection is deleted.", schemas.OBJECT),
    status=202,
    parameters=(schemas.Parameter("name", "its name", schemas.COLLECTION_NAME, required=True),),
    event=ChangeEvents.COLLECTION_REMOVED,
)
async def _drop(call: Call) -> Response:
    name = _parameter(call, "name")
    await call.store.collections.drop(call.project, name, call.attempt)
    call.noted["collection"] = name
    call.store.deleted.set()
    return json({"status": "success", "deleted": name}, 202)


@ROUTES.add(
    "POST /collections/{project}/rename",
    "Rename a collection.",
    schemas.value("It has its new name.", schemas.OBJECT),
    parameters=(
        schemas.Parameter("name", "its name", schemas.COLLECTION_NAME, required=True),
        schemas.Parameter("new_name", "its new name", schemas.COLLECTION_NAME, required=True),
    ),
    errors=(409,),
    event=ChangeEvents.COLLECTION_RENAMED,
)
async def _rename(call: Call) -> Response:
    name, new_name = _parameter(call, "name"), _parameter(call, "new_name")
    check_name(new_name, "new_name")
    if not await call.store.collections.rename(call.project, name, new_name, call.attempt):
        raise not_found(f"Not Found. Project {call.project} has no collection {name[:60]}. Write a record to make it.")
    call.noted |= {"collection": new_name, "before": name}
    return json({"status": "success", "renamed": new_name})


def _parameter(call: Call, name: str) -> str:
    given = call.query.get(name)
    if not given:
        raise refused(name, "is required", f"Add ?{name}=… to the address.")
    return given


@ROUTES.add(
    f"GET {_WHOLE}",
    "Read records, in the order of their keys.",
    schemas.lines("The records.", schemas.OBJECT, msgpack=True, files=True),
    parameters=(
        *_SELECTING,
        *schemas.FILTERS,
        schemas.COUNT,
        schemas.META,
        schemas.NODATA,
        *schemas.shaping(msgpack=True, files=True),
    ),
    errors=schemas.FILE_ERRORS,
)
async def _read(call: Call) -> Response:
    which, selection = _selected(call)
    if selection.is_short and filter_of_call(call) is None:
        records = await call.store.collections.few(which, selection)
        lines = list(map(_line(call), records[: call.number("count")]))
        return await result_of(call, lines, msgpack=True, files=True)
    return await result(call, _pages(call, _chosen(call, which, selection)), msgpack=True, files=True)


@ROUTES.add(f"POST {_WHOLE}", "Write records.", schemas.DONE, body=schemas.json_lines(_RECORD_SCHEMA))
async def _write_all(call: Call) -> Response:
    return await _write(call, None)


@ROUTES.add(
    f"DELETE {_WHOLE}",
    "Delete the selected records.",
    schemas.value("The number of deleted records.", _DELETED),
    parameters=_SELECTING,
)
async def _delete(call: Call) -> Response:
    which, selection = _selected(call)
    refuse_filters(call)
    if "count" in call.query:  # ignoring it would delete more than requested
        raise refused("count", "is not supported here", "Leave it out, or delete by key.")
    if not any(name in call.query for name in ("key", "prefix", "startts", "endts")):
        raise refused(
            "selection",
            "of the records to delete is missing",
            f"Give key, prefix, startts or endts; {_DELETE_ALL}.",
        )
    if "" in call.all("prefix"):  # in most cases a variable of a script that has no value
        raise refused("prefix", "is empty, and would delete every record", f"Give the start of keys; {_DELETE_ALL}.")
    deletion = await call.store.collections.delete(which, selection, call.attempt)
    return json({"deleted": deletion.deleted, "scanned": deletion.scanned})


async def _chosen(call: Call, which: Collection, selection: RecordSelection) -> AsyncIterator[list[CollectionRecord]]:
    """Yield the selected records that meet the filter."""
    conditions, left = filter_of_call(call), call.number("count")
    async for page in call.store.collections.scan(which, selection, left if conditions is None else None):
        if conditions is not None:
            page = (await chosen_of(conditions, page, _value_of))[:left]  # noqa: PLW2901
            left = None if left is None else left - len(page)
        yield page
        if left == 0 and conditions is not None:
            return


@ROUTES.add(
    f"GET {_WHOLE}/count",
    "Count records.",
    schemas.value("The number; nextstart is where to continue.", Count),
    parameters=(*_SELECTING, *schemas.FILTERS),
)
async def _count(call: Call) -> Response:
    which, selection = _selected(call)
    conditions = filter_of_call(call)
    if conditions is None:
        return json(await call.store.collections.count(which, selection))
    total, scanned = 0, 0
    async for page in call.store.collections.scan(which, selection):
        if scanned >= _MAX_SCANNED:
            return json(Count(total, scanned, page[0].key.decode()))
        total += len(await chosen_of(conditions, page, _value_of))
        scanned += len(page)
    return json(Count(total, scanned))


_OF_ONE: Final = (
    schemas.Parameter(
        "copies", "at most so many of the copies that vs and vcs keep, the newest first", schemas.COUNTER
    ),
    schemas.META,
    schemas.NODATA,
    *schemas.shaping(msgpack=True, files=True),
)
#: Parameters of the paths of one record; any other belongs to the key.
_KNOWN: Final = frozenset({"apikey", *(parameter.name for parameter in _OF_ONE)})


@ROUTES.add(
    f"GET {_ONE}{_VALUE}",
    "Read the field named value of a record.",
    schemas.AnswerShape("Its value.", {schemas.TEXT: schemas.STRING}),
)
@ROUTES.add(
    f"GET {_ONE}",
    "Read a record.",
    schemas.lines("The record, or the copies of it.", schemas.OBJECT, msgpack=True, files=True),
    parameters=_OF_ONE,
    errors=schemas.FILE_ERRORS,
)
async def _read_one(call: Call) -> Response:
    which, keys = _collection(call), _keys(call)
    store, copies = call.store.collections, call.number("copies")
    for key in keys:
        if (record := await store.get(which, key.encode())) is not None:
            records = [record] if copies is None else await store.copies(which, key.encode())
            return await result_of(call, list(map(_line(call), records[:copies])), msgpack=True, files=True)
    owners = [key.removesuffix(_VALUE) for key in keys if key.endswith(_VALUE)]
    if not owners:
        raise not_found()
    return _value(found(await _first(call, which, owners)))


def _value(record: CollectionRecord) -> Response:
    """Return the field named value as text."""
    fields = msgspec.json.decode(record.value)
    if "value" not in fields:
        raise not_found("Not Found. The record has no field named value. Read the whole record, without /value.")
    text = fields["value"]
    return Response(text if isinstance(text, str) else msgspec.json.encode(text), media_type=TEXT)


@ROUTES.add(
    f"POST {_ONE}",
    "Write a record.",
    schemas.DONE,
    body=schemas.Body("application/x-jsonlines", _RECORD_SCHEMA, "One record."),
)
async def _write_one(call: Call) -> Response:
    return await _write(call, _keys(call)[0])


@ROUTES.add(f"DELETE {_ONE}", "Delete a record.", schemas.DONE)
async def _delete_one(call: Call) -> Response:
    which = _collection(call)
    if (record := await _first(call, which, _keys(call))) is not None:
        await call.store.collections.delete_keys(which, [record.key], call.attempt)
    return empty()


def _keys(call: Call) -> list[str]:
    """Return the keys that a path may stand for: decoded, and as it was sent.

    A URL that is a key and is not encoded has a query: parameters that this path does not know belong to the key. So no
    URL is taken for another one.
    """
    query = call.take_unknown_query(_KNOWN)
    sent = call.rest_as_sent() + (b"?" + query if query else b"")
    try:
        return list(dict.fromkeys([unquote_to_bytes(sent).decode(), sent.decode()]))
    except UnicodeDecodeError:
        raise refused("path", "must be UTF-8", "Encode the key as UTF-8.") from None


async def _first(call: Call, which: Collection, keys: Sequence[str]) -> CollectionRecord | None:
    """Return the record of the first of these keys that has one."""
    for key in keys:
        if (record := await call.store.collections.get(which, key.encode())) is not None:
            return record
    return None


async def _write(call: Call, key: str | None) -> Response:
    """Write the records of the body; with ``key``, the one record with the key of the path."""
    which = _collection(call)
    records: list[tuple[bytes, bytes]] = []
    fault: ContractError | None = None
    async for given in bodies.gathered(call.request, _numbered):
        if fault is not None:
            continue  # an error of the rest, such as invalid JSON or its size, takes precedence
        # The check visits each number; for much data, a thread leaves the event loop to other requests.
        is_much = sum(len(line) for _, line, _ in given) > _MUCH
        try:
            new = await in_data_thread(checked, given, key) if is_much else checked(given, key)
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
        await call.store.collections.write(which, records, call.attempt)
        call.wrote(len(records))
    return empty()


def _numbered(line: bytes, number: int) -> tuple[tuple[int, bytes, dict[str, Any]]]:
    return ((number, line, json_bodies.record(line, number)),)


@ROUTES.add(
    f"POST {_WHOLE}/deleted",
    "Delete records by their keys.",
    schemas.DONE,
    body=schemas.json_lines({"anyOf": [schemas.STRING, schemas.STRINGS]}),
)
async def _delete_keys(call: Call) -> Response:
    which = _collection(call)
    async for keys in json_bodies.strings(call.request):
        await call.store.collections.delete_keys(which, [key.encode() for key in keys], call.attempt)
    return empty()


def _line(call: Call) -> Callable[[CollectionRecord], bytes]:
    """Return the function that writes a record in a result."""
    meta, nodata = call.meta("_key", "_ts"), is_true(call.query.get("nodata"))

    if not (meta or nodata):
        return lambda record: record.value

    def line(record: CollectionRecord) -> bytes:
        values: dict[str, str | int] = {"_key": record.key.decode(), "_ts": record.ts}
        return with_meta(b"{}" if nodata else record.value, [(name, values[name]) for name in meta])

    return line


async def _pages(call: Call, records: AsyncIterator[list[CollectionRecord]]) -> AsyncIterator[Page]:
    line = _line(call)
    async for page in records:
        yield [line(record) for record in page]


def _selected(call: Call) -> tuple[Collection, RecordSelection]:
    """Return the collection of the path and the selection of the parameters."""
    keys, prefixes = call.all("key"), call.all("prefix")
    if len(keys) + len(prefixes) > _MAX_NAMED:
        raise refused("key", f"and prefix may be given {_MAX_NAMED} times at most", "Send several requests.")
    if keys and prefixes:
        raise refused("key", "and prefix exclude each other", "Use one of them.")
    ranges: Sequence[Range] = [Range(b"", None)]
    if keys:
        ranges = [key_range(key) for key in sorted({key.encode() for key in keys})]
    each = call.number("prefixcount")
    if prefixes:
        ranges = [prefix_range(prefix) for prefix in _distinct(prefixes, nested=each is not None)]
    parts, nesting = segments(_from(call, ranges))
    return _collection(call), RecordSelection(parts, each, call.number("startts"), call.number("endts"), nesting)


def _distinct(prefixes: Iterable[str], *, nested: bool) -> list[bytes]:
    """Return the prefixes in order; unless ``nested``, without those whose records a shorter one selects, too."""
    found: list[bytes] = []
    for prefix in sorted({prefix.encode() for prefix in prefixes}):
        if nested or not (found and prefix.startswith(found[-1])):
            found.append(prefix)
    return found


def _from(call: Call, ranges: Sequence[Range]) -> list[Range]:
    """Return the ranges from ``start`` on, or after ``startafter``; both are keys of records."""
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

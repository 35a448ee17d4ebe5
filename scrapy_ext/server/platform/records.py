"""The records of jobs: ``/items``, ``/requests`` and ``/logs``, which differ in what a record must be.

Paths: ``/<resource>/<project>[/<spider>[/<job>[/<index>[/<field>]]]]``, ``.../<job>/<field>`` and ``.../<job>/stats``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.formats import is_true
from scrapy_ext.api.platform.items import HIDDEN_PREFIX, MAX_ITEM_BYTES, parse_content_range, too_large
from scrapy_ext.api.platform.keys import MAX_NUMBER, EntityKey
from scrapy_ext.api.platform.stats import Stats
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.platform import bodies
from scrapy_ext.server.platform.answers import NotFound, empty, json, method_not_allowed, refused
from scrapy_ext.server.platform.calls import Call, path_number
from scrapy_ext.server.platform.formats import Page, result, with_meta
from scrapy_ext.server.store.chunks import Chunk, Packer
from scrapy_ext.server.store.records import Position, RecordStore, Slice, Span

#: Indexes that one request may ask for.
_MAX_INDEXES: Final = 1000

Record = dict[str, Any]
Check = Callable[[Record, str], Iterator[Violation]]

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RecordResource:
    """One of the three."""

    def __init__(self, store: RecordStore, check: Check, *, meta_first: bool = False, drop_nulls: bool = False) -> None:
        self._store = store
        self._check = check
        self._meta_first = meta_first
        self._drop_nulls = drop_nulls

    async def __call__(self, call: Call) -> Response:
        """Answer a call."""
        match call.method, len(call.path):
            case "GET", 4 if call.path[3] == "stats":
                return await self._stats(call)
            case "GET", 1 | 2 | 3 | 4 | 5:
                return await self._read(call)
            case "POST", 3:
                return await self._write(call)
            case _, 3:
                raise method_not_allowed("GET", "POST")
            case _, 1 | 2 | 4 | 5:
                raise method_not_allowed("GET")
            case _:
                raise NotFound

    async def _write(self, call: Call) -> Response:
        key, start = call.job, _start(call)
        chunks = [chunk async for chunk in self._chunks(call)]
        await self._store.write(key, start, chunks)
        call.wrote(sum(chunk.records for chunk in chunks))
        return empty()

    async def _chunks(self, call: Call) -> AsyncIterator[Chunk]:
        """The records of the body, checked, compressed as they come: the body itself is never held."""
        packer = Packer(self._store.kind)
        async for first, group in bodies.lines(call.request, bodies.MAX_RECORDS_BODY):
            for number, line in enumerate(group, first):
                stripped = line.strip()
                if not stripped:
                    continue
                place = f"line {number}"
                if len(stripped) > MAX_ITEM_BYTES:
                    raise ContractError([too_large(place, len(stripped))])
                record = bodies.record(stripped, number)
                faults = list(self._check(record, place))
                if faults:
                    raise ContractError(faults)
                if (chunk := packer.add(stripped, record)) is not None:
                    yield chunk
        if (chunk := packer.rest()) is not None:
            yield chunk

    async def _stats(self, call: Call) -> Response:
        stats = await self._store.stats(call.job)
        if not is_true(call.query.get("all")):
            counts = {name: count for name, count in stats.counts.items() if not name.startswith(HIDDEN_PREFIX)}
            stats = Stats(counts, stats.totals)
        return json(stats)

    async def _read(self, call: Call) -> Response:
        call.without_filter()
        field = _field(call.path)
        lines = self._lines(call, field)
        if len(call.path) > 3 and call.path[3].isdigit():
            return await self._read_one(call, lines)
        if call.all("index"):
            numbers = [index_of(text, "index") for text in call.all("index")]
            if len(numbers) > _MAX_INDEXES:
                raise refused("index", f"must be given {_MAX_INDEXES} times at most", "Use start and count.")
            return await result(call, _each(lines, await self._store.at(call.job, numbers)))
        span, start = _span(call), _position(call)
        return await result(call, _every(lines, self._store.scan(span, start, call.number("count"))))

    async def _read_one(self, call: Call, lines: Callable[[Slice], Page]) -> Response:
        slices = await self._store.at(call.job, [path_number(call.path, 3, "index")])
        if not slices or not lines(slices[0]):
            raise NotFound
        return await result(call, _each(lines, slices))

    def _lines(self, call: Call, field: str | None) -> Callable[[Slice], Page]:
        """What a slice's records look like in the result."""
        meta, nodata = call.meta("_key", "_ts"), is_true(call.query.get("nodata"))
        if field is not None:
            return lambda part: [
                bytes(value) for line in part.lines if (value := _members(line).get(field)) is not None
            ]
        if not meta and not nodata and not self._drop_nulls:
            return lambda part: part.lines

        def shaped(part: Slice) -> Page:
            return [
                self._shaped(line, part, number, meta, nodata) for number, line in enumerate(part.lines, part.start)
            ]

        return shaped

    def _shaped(self, line: bytes, part: Slice, number: int, meta: Sequence[str], nodata: bool) -> bytes:
        values: dict[str, str | int] = {"_key": str(part.key.entity(number)) if meta else "", "_ts": part.ts}
        if nodata:
            line = b"{}"
        elif self._drop_nulls and b"null" in line:
            line = _without_nulls(line)
        return with_meta(line, [(name, values[name]) for name in meta], first=self._meta_first)


def _without_nulls(line: bytes) -> bytes:
    members = _members(line).items()
    return msgspec.json.encode({name: value for name, value in members if bytes(value).strip() != b"null"})


async def _each(lines: Callable[[Slice], Page], slices: Sequence[Slice]) -> AsyncIterator[Page]:
    for part in slices:
        yield lines(part)


async def _every(lines: Callable[[Slice], Page], slices: AsyncIterator[Slice]) -> AsyncIterator[Page]:
    async for part in slices:
        yield lines(part)


def _start(call: Call) -> int | None:
    """The start index of a write: a parameter, or the header of the document."""
    parameter, header = call.number("start"), call.request.headers.get("content-range")
    if header is None:
        return parameter
    start = parse_content_range(header)
    if parameter is not None and parameter != start:
        raise refused("start", f"is {parameter}, and Content-Range says {start}", "Send one of the two.")
    return start


def index_of(text: str, name: str) -> int:
    """A number given as a repeatable parameter; raises ``ContractError``."""
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    raise refused(name, f"must be a whole number, got {text[:60]!r}", f"Write {name}=0, for example.")


def _field(path: list[str]) -> str | None:
    if len(path) == 5:
        return path[4]
    return path[3] if len(path) == 4 and not path[3].isdigit() else None


def _span(call: Call) -> Span:
    parts = [
        path_number(call.path, place, name)
        for place, name in enumerate(("project", "spider", "job"))
        if place < len(call.path)
    ]
    return Span(*parts)


def _position(call: Call) -> Position:
    """Where reading starts: at ``start``, or behind ``startafter``; both are full keys."""
    for name, step in (("start", 0), ("startafter", 1)):
        text = call.query.get(name)
        if text is not None:
            key = EntityKey.parse(text, name)
            if key.project != call.project:
                raise refused(name, f"is a key of project {key.project}", f"Read /{key.project} for that.")
            return (key.spider, key.job, min(key.number + step, MAX_NUMBER))
    return (0, 0, 0)

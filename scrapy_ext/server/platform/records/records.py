"""The records of jobs: ``/items``, ``/requests``, ``/logs`` and ``/samples``, which differ in what a record must be.

Paths: ``/<resource>/<project>[/<spider>[/<job>[/<index>[/<field>]]]]``, ``.../<job>/<field>`` and ``.../<job>/stats``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.formats import Format, is_true
from scrapy_ext.api.platform.items import HIDDEN_PREFIX, parse_content_range
from scrapy_ext.api.platform.keys import MAX_NUMBER, EntityKey, number_of
from scrapy_ext.api.platform.stats import Stats
from scrapy_ext.server.http.answers import NotFound, empty, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call, path_number
from scrapy_ext.server.http.formats import Page, Text, format_of, result, result_of, with_meta
from scrapy_ext.server.platform.filters import Filter, TimeWindow, refuse_filters
from scrapy_ext.server.platform.records import ingestion as intake
from scrapy_ext.server.store.read_ahead import closing
from scrapy_ext.server.store.records.records import Position, RecordStore, Slice, Span

#: Indexes that one request may ask for.
_MAX_INDEXES: Final = 1000

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Traits(NamedTuple):
    """In what the resources differ: what their records are, and how they are read.

    ``meta_first``: meta comes before the record's own fields. ``drop_nulls``: fields that are null are left out.
    ``msgpack``: MessagePack is offered, ``msgpack_keys``: with ``_key`` in it. ``plain``: records are no objects, so
    that they have no fields, no meta, no stats, and cannot be chosen by a filter.
    """

    form: intake.Form
    meta_first: bool = False
    drop_nulls: bool = False
    msgpack: bool = False
    msgpack_keys: bool = True
    plain: bool = False


class RecordResource:
    """One of the four."""

    def __init__(self, store: RecordStore, traits: Traits) -> None:
        self._store = store
        self._traits = traits

    async def __call__(self, call: Call) -> Response:
        """Answer a call."""
        match call.method, len(call.path):
            case "GET", 4 if call.path[3] == "stats" and not self._traits.plain:
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
        key, (start, may_skip) = call.job, _start(call)
        chunks = await intake.packed(call.request, self._traits.form, self._store.kind)
        await self._store.write(key, start, chunks, may_skip=may_skip)
        call.wrote(sum(chunk.records for chunk in chunks))
        return empty()

    async def _stats(self, call: Call) -> Response:
        stats = await self._store.stats(call.job)
        if not is_true(call.query.get("all")):
            counts = {name: count for name, count in stats.counts.items() if not name.startswith(HIDDEN_PREFIX)}
            stats = Stats(counts, stats.totals)
        return json(stats)

    async def _read(self, call: Call) -> Response:
        if self._traits.plain and (len(call.path) == 5 or (len(call.path) == 4 and not call.path[3].isdigit())):
            raise NotFound
        shape = self._shape(call)
        if len(call.path) > 3 and call.path[3].isdigit():
            found = await self._store.at(call.job, [path_number(call.path, 3, "index")])
            page = shape.page(found[0]) if found else ()
            if not page:
                raise NotFound
            return await result_of(call, page, msgpack=self._traits.msgpack)
        if call.all("index"):
            numbers = [number_of(text, "index") for text in call.all("index")]
            if len(numbers) > _MAX_INDEXES:
                raise refused("index", f"must be given {_MAX_INDEXES} times at most", "Use start and count.")
            found = await self._store.at(call.job, numbers)
            return await self._result(call, _each([shape.page(part) for part in found]))
        span, start = _span(call), _position(call)
        return await self._result(call, self._scan(shape, span, start))

    async def _result(self, call: Call, pages: AsyncIterator[Page]) -> Response:
        return await result(call, pages, msgpack=self._traits.msgpack)

    async def _scan(self, shape: _Shape, span: Span, start: Position) -> AsyncIterator[Page]:
        # With a filter, how much has to be read for so many records is not known before.
        async with closing(self._store.scan(span, start, shape.left if shape.filter is None else None)) as parts:
            async for part in parts:
                # Others have their turn while conditions are looked at.
                yield shape.page(part) if shape.filter is None else await asyncio.to_thread(shape.page, part)
                if shape.left == 0:
                    return

    def _shape(self, call: Call) -> _Shape:
        traits = self._traits
        if traits.plain:
            refuse_filters(call)
            if call.all("meta") or is_true(call.query.get("nodata")):
                raise refused("meta", "and nodata are not supported here", "Leave them out.")
        meta = call.meta("_key", "_ts")
        if not traits.msgpack_keys and format_of(call, msgpack=traits.msgpack) is Format.MSGPACK:
            meta = tuple(name for name in meta if name != "_key")
        return _Shape(traits, call, meta)


class _Shape:
    """What records look like in a result, and which of them are in it."""

    def __init__(self, traits: Traits, call: Call, meta: Sequence[str]) -> None:
        self._traits = traits
        self._meta = meta
        self._field = _field(call.path)
        self._nodata = is_true(call.query.get("nodata"))
        self.filter = TimeWindow.of(call) if traits.plain else Filter.of(call)
        #: Whether the lines of the result are those that are stored, line breaks and all.
        self._as_text = format_of(call, msgpack=traits.msgpack) is Format.JSON_LINES
        #: How many records may still follow; None: all there are.
        self.left = call.number("count")
        self._plain = self._field is None and not meta and not self._nodata and not traits.drop_nulls

    def page(self, part: Slice) -> Page:
        """The lines of the result that some records give."""
        if self.filter is None and self._plain:
            return Text(part.text) if self._as_text else part.lines
        chosen = self._chosen(part)
        if self._plain:
            return [line for _, line in chosen]
        if self._field is not None:
            return [bytes(value) for _, line in chosen if (value := _members(line).get(self._field)) is not None]
        return [self._shaped(line, part, number) for number, line in chosen]

    def _chosen(self, part: Slice) -> Iterator[tuple[int, bytes]]:
        drop = self._traits.drop_nulls
        for number, stored in enumerate(part.lines, part.start):
            line = _without_nulls(stored) if drop and b"null" in stored else stored
            if self.filter is None:
                yield number, line
            elif self.left == 0:
                return
            elif self.filter.chooses(line):
                if self.left is not None:
                    self.left -= 1
                yield number, line

    def _shaped(self, line: bytes, part: Slice, number: int) -> bytes:
        values: dict[str, str | int] = {"_key": str(part.key.entity(number)) if self._meta else "", "_ts": part.ts}
        members = [(name, values[name]) for name in self._meta]
        return with_meta(b"{}" if self._nodata else line, members, first=self._traits.meta_first)


def _without_nulls(line: bytes) -> bytes:
    members = _members(line).items()
    return msgspec.json.encode({name: value for name, value in members if bytes(value).strip() != b"null"})


async def _each(pages: Sequence[Page]) -> AsyncIterator[Page]:
    for page in pages:
        yield page


def _start(call: Call) -> tuple[int | None, bool]:
    """The start index of a write, and whether it may skip indexes of a job without records.

    The header of the document sets the index. The parameter is the position that an uploader has reached: when the job
    has fewer records than that, some were lost.
    """
    parameter, header = call.number("start"), call.header(b"content-range")
    if header is None:
        return parameter, False
    start = parse_content_range(header)
    if parameter is not None and parameter != start:
        raise refused("start", f"is {parameter}, and Content-Range says {start}", "Send one of the two.")
    return start, True


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

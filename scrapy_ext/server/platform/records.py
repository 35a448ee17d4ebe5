"""The records of jobs: ``/items``, ``/requests``, ``/logs`` and ``/samples``, which have different checks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.compression import GzipPart
from scrapy_ext.api.platform import records
from scrapy_ext.api.platform.conditions import STEP_SECONDS, RecordFilter
from scrapy_ext.api.platform.formats import Format, is_true
from scrapy_ext.api.platform.keys import MAX_NUMBER, EntityKey, number_of
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Page
from scrapy_ext.server.computing.threads import in_data_thread, in_slow_thread
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import empty, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import accepts_gzip, each, format_of, result, result_of, with_meta
from scrapy_ext.server.http.record_writers import Text
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.platform import ingestion
from scrapy_ext.server.platform.filters import TimeWindow, filter_of_call, refuse_filters
from scrapy_ext.server.store.read_ahead import closing
from scrapy_ext.server.store.records.records import Position, RecordStore, Slice, Span
from scrapy_ext.server.store.records.removal import RecordOwner, removal_error

#: Maximum indexes of one request.
_MAX_INDEXES: Final = 1000

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

ROUTES: Final = Routes(Access.JOB)

_READING: Final = (
    schemas.COUNT,
    schemas.Parameter("index", "records with these numbers", schemas.array(schemas.COUNTER)),
    schemas.Parameter("start", "from this key on", schemas.ENTITY_KEY),
    schemas.Parameter("startafter", "after this key", schemas.ENTITY_KEY),
)
_CHOOSING: Final = (schemas.META, schemas.NODATA, *schemas.FILTERS)
_WINDOW: Final = (
    schemas.Parameter("startts", "with this time (ms) or a later one", schemas.COUNTER),
    schemas.Parameter("endts", "with an earlier time (ms)", schemas.COUNTER),
)
_WRITING: Final = (
    schemas.Parameter(
        "start", "the number of the first record; a write that is sent again is stored once", schemas.COUNTER
    ),
    schemas.Parameter(
        "Content-Range",
        "the same as a header: items <start>-/*",
        {"type": "string", "pattern": r"^items [0-9]{1,18}-/\*$"},
        "header",
    ),
    schemas.Parameter(
        "writer",
        "the number of an attempt of the job, whose token is sent, or which is over: start is then the number of the "
        "first record in the stream of that attempt",
        schemas.COUNTER,
    ),
)


class Kind(NamedTuple):
    #: The name of the resource and of its part of the store.
    name: str
    plural: str
    singular: str
    checker: ingestion.RecordChecker
    #: The checker of records of streams, if these may differ.
    stream_checker: ingestion.RecordChecker | None = None
    #: Fields of ``meta`` precede those of the record.
    meta_first: bool = False
    #: Fields with null are omitted.
    drop_nulls: bool = False
    #: MessagePack is offered, with ``_key`` in it.
    msgpack: bool = True
    msgpack_keys: bool = True
    #: Records are arrays: without fields, ``meta``, stats and filters.
    plain: bool = False

    @property
    def formats(self) -> dict[str, bool]:
        """The formats beside those of all resources. Records that are arrays have no columns."""
        return {"msgpack": self.msgpack, "files": not self.plain}

    def store(self, call: Call) -> RecordStore:
        found: RecordStore = getattr(call.store, self.name)
        return found


def _declare(kind: Kind, sent: object, answered: schemas.Schema) -> None:
    """Declare the routes of a kind; ``sent`` and ``answered`` are the schemas of a record."""
    spider = f"/{kind.name}/{{project}}/{{spider}}"
    job, read = f"{spider}/{{job}}", partial(_read, kind)
    errors = () if kind.plain else schemas.FILE_ERRORS
    choosing = _WINDOW if kind.plain else _CHOOSING
    shaping = schemas.shaping(**kind.formats)
    rest = "" if kind.plain else "; with nodata, only what meta adds"
    for path in (f"/{kind.name}/{{project}}", spider, job):
        ROUTES.add(
            f"GET {path}",
            f"Read {kind.plural}, in the order of their keys.",
            schemas.lines(f"The {kind.plural}{rest}.", answered, **kind.formats),
            parameters=(*_READING, *choosing, *shaping),
            errors=errors,
        )(read)
    ROUTES.add(
        f"POST {job}",
        f"Add {kind.plural} to a job.",
        schemas.AnswerShape(
            f"{schemas.DONE.meaning} With writer: where.", {**schemas.DONE.bodies, schemas.JSON: records.StreamPlaces}
        ),
        parameters=_WRITING,
        body=schemas.json_lines(sent, f"One record a line, none over {records.MAX_ITEM_BYTES} bytes."),
        errors=(409,),
    )(partial(_write, kind))
    ROUTES.add(
        f"GET {job}/{{index:int}}",
        f"Read one {kind.singular}.",
        schemas.lines(f"The {kind.singular}{rest}.", answered, **kind.formats),
        parameters=(*choosing, *shaping),
        errors=errors,
    )(partial(_read_one, kind))
    if kind.plain:
        return
    ROUTES.add(
        f"GET {job}/stats",
        f"How many {kind.plural} a job has, how large they are, and how often each field occurs.",
        schemas.value("The stats.", records.Stats),
        parameters=(schemas.Parameter("all", "hidden fields too", schemas.FLAG),),
    )(partial(_stats, kind))
    ROUTES.add(
        f"GET {job}/{{index:int}}/{{field}}",
        "Read a field of one record.",
        schemas.lines("Its value.", schemas.ANY, **kind.formats),
        parameters=shaping,
        errors=errors,
    )(partial(_read_one, kind))
    ROUTES.add(
        f"GET {job}/{{field}}",
        "Read a field of all records that have it.",
        schemas.lines("Its values.", schemas.ANY, **kind.formats),
        parameters=(*_READING, *schemas.FILTERS, *shaping),
        errors=errors,
    )(read)


async def _write(kind: Kind, call: Call) -> Response:
    if (writer := call.number("writer")) is not None:
        return await _write_stream(kind, call, writer)
    key, (start, may_skip), store = call.job, _start(call), kind.store(call)
    chunks = await ingestion.packed(call.request, kind.checker, store.kind)
    await store.write(key, start, chunks, may_skip=may_skip, attempt=call.attempt)
    call.wrote(sum(chunk.records for chunk in chunks))
    return empty()


async def _write_stream(kind: Kind, call: Call, writer: int) -> Response:
    key, start, store = call.job, call.number("start"), kind.store(call)
    if start is None:
        raise refused("start", "is required with writer", "Send the index of the first record in the stream.")
    if call.header(b"content-range") is not None:
        raise refused("Content-Range", "is an index in the job, and start one in the stream", "Send start alone.")
    chunks = await ingestion.packed(call.request, kind.stream_checker or kind.checker, store.kind)
    places = await store.write_stream(key, writer, start, chunks, attempt=call.attempt)
    call.wrote(sum(chunk.records for chunk in chunks))
    return json(places)


async def _stats(kind: Kind, call: Call) -> Response:
    stats = await kind.store(call).stats(call.job)
    if not stats.totals.input_values:
        await _check_readable(kind, call, stats=True)
    if not is_true(call.query.get("all")):
        counts = {name: count for name, count in stats.counts.items() if not name.startswith(records.HIDDEN_PREFIX)}
        stats = records.Stats(counts, stats.totals)
    return json(stats)


async def _read_one(kind: Kind, call: Call) -> Response:
    selection = _selection(kind, call)
    found = await kind.store(call).at(call.job, [call.part_number("index")])
    page = selection.page(found[0]) if found else ()
    if not page:
        await _check_readable(kind, call)
        raise not_found()
    return await result_of(call, page, **kind.formats)


async def _read(kind: Kind, call: Call) -> Response:
    selection, store = _selection(kind, call), kind.store(call)
    if call.all("index"):
        if not call.has_part("job"):
            raise refused("index", "needs the path of a job", "Add the spider and the job to the path, or use start.")
        numbers = list(dict.fromkeys(number_of(text, "index") for text in call.all("index")))
        if len(numbers) > _MAX_INDEXES:
            raise refused("index", f"must be given {_MAX_INDEXES} times at most", "Use start and count.")
        found = await store.at(call.job, numbers)
        if not found:
            await _check_readable(kind, call)
        return await result(call, each([selection.page(part) for part in found]), **kind.formats)
    span = Span(*(call.part_number(name) for name in ("project", "spider", "job") if call.has_part(name)))
    if selection.is_stored_text:
        texts = store.scan_text(span, _position(call), selection.left, packed=accepts_gzip(call))
        return await result(call, _pages_of(texts), **kind.formats)
    return await result(call, _scan(store, selection, span, _position(call)), **kind.formats)


async def _check_readable(kind: Kind, call: Call, *, stats: bool = False) -> None:
    """Raise :class:`ContractError` (410) when the records were removed; for stats, only when their job was deleted."""
    removal = await kind.store(call).removal(call.job)
    if removal is not None and (removal.deleted or not stats):
        raise removal_error(RecordOwner(call.project, kind.name, call.job.spider, call.job.job), removal)


async def _pages_of(texts: AsyncIterator[Sequence[bytes] | GzipPart]) -> AsyncIterator[Page | GzipPart]:
    async with closing(texts):
        async for text in texts:
            yield text if isinstance(text, GzipPart) else Text(text)


async def _scan(store: RecordStore, selection: _Selection, span: Span, start: Position) -> AsyncIterator[Page]:
    # With a filter, the number of records to read for a count is unknown.
    async with closing(store.scan(span, start, selection.left if selection.filter is None else None)) as parts:
        async for part in parts:
            yield selection.page(part) if selection.filter is None else await _filtered(selection, part)
            if selection.left == 0:
                return


async def _filtered(selection: _Selection, part: Slice) -> Page:
    """Return the lines of the result for some records, whose conditions are evaluated in steps in a thread."""
    found, at = list[bytes](), 0
    while at < len(part.lines) and selection.left != 0:
        run = in_slow_thread if selection.is_slow else in_data_thread
        more, at = await run(selection.step, part, at)
        found += more
    return found


def _selection(kind: Kind, call: Call) -> _Selection:
    if kind.plain:
        refuse_filters(call)
        if call.all("meta") or is_true(call.query.get("nodata")):
            raise refused("meta", "and nodata are not supported here", "Leave them out.")
    meta = call.meta("_key", "_ts")
    if not kind.msgpack_keys and format_of(call, **kind.formats) is Format.MSGPACK:
        meta = tuple(name for name in meta if name != "_key")
    return _Selection(kind, call, meta)


class _Selection:
    """The selection and the form of records in a result."""

    def __init__(self, kind: Kind, call: Call, meta: Sequence[str]) -> None:
        self._kind = kind
        self._meta = meta
        self._field = call.part("field") if call.has_part("field") else None
        self._nodata = is_true(call.query.get("nodata"))
        self.filter = TimeWindow.of(call) if kind.plain else filter_of_call(call)
        #: True when the result has the stored lines with their line breaks.
        self._as_text = format_of(call, **kind.formats) is Format.JSON_LINES
        #: Maximum further records; None for all.
        self.left = call.number("count")
        #: Place after the last record of a step.
        self._next = 0
        self._plain = self._field is None and not meta and not self._nodata and not kind.drop_nulls

    @property
    def is_stored_text(self) -> bool:
        """True when the result is the stored lines as they are, with their line breaks."""
        return self.filter is None and self._plain and self._as_text

    @property
    def is_slow(self) -> bool:
        return isinstance(self.filter, RecordFilter) and self.filter.is_slow

    def page(self, part: Slice) -> Page:
        """Return the lines of the result for some records."""
        if self.is_stored_text:
            return Text(part.text)
        if self.filter is None and self._plain:
            return part.lines
        return self._shown(part, self._chosen(part, range(len(part.lines))))

    def step(self, part: Slice, first: int) -> tuple[Page, int]:
        """Return the lines of the result for some of the records from ``first`` on, and where to continue."""
        until = time.monotonic() + STEP_SECONDS
        places = takewhile(lambda place: place == first or time.monotonic() < until, range(first, len(part.lines)))
        return self._shown(part, self._chosen(part, places)), self._next

    def _shown(self, part: Slice, chosen: Iterator[tuple[int, bytes]]) -> Page:
        if self._plain:
            return [line for _, line in chosen]
        if self._field is not None:
            return [bytes(value) for _, line in chosen if (value := _members(line).get(self._field)) is not None]
        return [self._shaped(line, part, number) for number, line in chosen]

    def _chosen(self, part: Slice, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        drop = self._kind.drop_nulls
        for place in places:
            self._next = place + 1
            number, stored = part.start + place, part.lines[place]
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
        return with_meta(b"{}" if self._nodata else line, members, first=self._kind.meta_first)


def _without_nulls(line: bytes) -> bytes:
    members = _members(line).items()
    return msgspec.json.encode({name: value for name, value in members if bytes(value).strip() != b"null"})


def _start(call: Call) -> tuple[int | None, bool]:
    """The start index of a write, and whether it may skip indexes of a job without records.

    The header of the document sets the index. The parameter is the position that an uploader has reached: when the job
    has fewer records than that, some were lost.
    """
    parameter, header = call.number("start"), call.header(b"content-range")
    if header is None:
        return parameter, False
    start = records.parse_content_range(header)
    if parameter is not None and parameter != start:
        raise refused("start", f"is {parameter}, and Content-Range says {start}", "Send one of the two.")
    return start, True


def _position(call: Call) -> Position:
    """Return the position of the first record: at ``start``, or after ``startafter``; both are full keys."""
    for name, step in (("start", 0), ("startafter", 1)):
        text = call.query.get(name)
        if text is not None:
            key = EntityKey.parse(text, name)
            if key.project != call.project:
                raise refused(name, f"is a key of project {key.project}", f"Read /{key.project} for that.")
            if any(call.has_part(part) and call.part_number(part) != getattr(key, part) for part in ("spider", "job")):
                owner = f"{key.project}/{key.spider}/{key.job}"
                raise refused(name, f"is a key of job {owner}", f"Read /{owner} for that.")
            return (key.spider, key.job, min(key.number + step, MAX_NUMBER))
    return (0, 0, 0)


_SAMPLE: Final[schemas.Schema] = {"type": "array", "prefixItems": [{"type": "number", "minimum": 0}], "minItems": 1}

_declare(Kind("items", "items", "record", ingestion.ITEM), schemas.OBJECT, schemas.OBJECT)
_declare(
    Kind(
        "requests",
        "request records",
        "record",
        ingestion.REQUEST,
        ingestion.STREAM_REQUEST,
        meta_first=True,
        drop_nulls=True,
        msgpack=False,
    ),
    records.StreamRequestRecord,
    schemas.OBJECT,
)
_declare(
    Kind("logs", "log lines", "record", ingestion.LOG, meta_first=True, msgpack_keys=False),
    records.LogRecord,
    schemas.OBJECT,
)
_declare(Kind("samples", "samples", "sample", ingestion.SAMPLE, plain=True), _SAMPLE, {"type": "array"})

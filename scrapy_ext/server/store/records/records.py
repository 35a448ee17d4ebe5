"""Reads of items, request records, logs and samples of jobs, by one implementation for all kinds.

``writes`` states the invariants of the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from scrapy_ext.api.compression import GzipPart, part_of
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.records import Stats, StreamPlaces, Totals
from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.read_ahead import READ_AHEAD, ahead, closing, in_thread
from scrapy_ext.server.store.records.chunks import (
    MAX_LINES,
    SMALL,
    RecentChunks,
    RecordChunk,
    RecordKind,
    split_lines,
    unpack_pieces,
)
from scrapy_ext.server.store.records.progress import read_progress
from scrapy_ext.server.store.records.removal import READABLE, RecordOwner, Removal, find_removal, removal_error
from scrapy_ext.server.store.records.segments import cut, time_at, unpack_segments
from scrapy_ext.server.store.records.streams import RecordStream, write_stream
from scrapy_ext.server.store.records.writes import write_records

T = TypeVar("T")

#: Chunks per read: four megabytes of inflated records.
_PAGE_CHUNKS: Final = 4
#: Chunks inflated in advance.
_INFLATED_AHEAD: Final = 2

Position = tuple[int, int, int]
#: Records, the next position (None at the end), and the number of records.
_Read = tuple[list["Slice | _Packed"], Position | None, int]


class Slice:
    """Consecutive records of one job: index of the first, time stored (ms), and lines.

    The lines may be given as ``text`` instead: with their line breaks, in pieces of any length.
    """

    def __init__(
        self, key: JobKey, start: int, ts: int, lines: list[bytes] | None = None, text: Sequence[bytes] = ()
    ) -> None:
        self.key = key
        self.start = start
        self.ts = ts
        self._lines = lines
        self._text = text

    @property
    def lines(self) -> list[bytes]:
        """The lines, without line breaks."""
        if self._lines is None:
            self._lines = split_lines(self._text)
        return self._lines

    @property
    def text(self) -> Sequence[bytes]:
        """The lines with their line breaks, in pieces."""
        return self._text or [b"\n".join([*self.lines, b""])]


class _Packed(NamedTuple):
    """A whole chunk that is not inflated yet."""

    key: JobKey
    start: int
    ts: int
    body: bytes

    def inflated(self) -> Slice:
        return Slice(self.key, self.start, self.ts, text=unpack_pieces(self.body))

    def text(self) -> Sequence[bytes]:
        return unpack_pieces(self.body)


class Span(NamedTuple):
    """The scope of a read: a project, one of its spiders, or a job."""

    project: int
    spider: int | None = None
    job: int | None = None

    @property
    def first(self) -> Position:
        """The position before the first record of the span."""
        return (self.spider or 0, self.job or 0, 0)

    @property
    def last(self) -> Position:
        """The position after the last record of the span."""
        spider = MAX_NUMBER if self.spider is None else self.spider
        return (spider, MAX_NUMBER if self.job is None else self.job, MAX_NUMBER)


class RecordStore:
    def __init__(self, engine: Engine, clock: Callable[[], int], kind: RecordKind) -> None:
        self.kind = kind
        self._engine = engine
        self._clock = clock
        self._recent = RecentChunks()

    async def write(
        self,
        key: JobKey,
        start: int | None,
        chunks: Sequence[RecordChunk],
        *,
        may_skip: bool = False,
        attempt: Attempt | None = None,
    ) -> int:
        """Store records from index ``start`` (None: after the last); return the index of the first.

        Records stored at the same indexes are replaced, so that a repeated write changes nothing. Raises
        :class:`ContractError` when ``start`` would leave a gap; with ``may_skip``, the first records of a job may have
        any index. ``attempt``: that of the process that writes; it fails (403) once the attempt is over.
        """
        if not chunks:
            return start or 0
        owner, now = self._owner(key), self._clock()
        return await self._engine.write(
            write_records, self.kind, owner, start, chunks, now=now, may_skip=may_skip, attempt=attempt
        )

    async def write_stream(
        self, key: JobKey, writer: int, start: int, chunks: Sequence[RecordChunk], *, attempt: Attempt | None = None
    ) -> StreamPlaces:
        """Store records at the indexes from ``start`` on of the stream of an attempt; return their places in the job.

        ``attempt``: that of the process that writes. Raises :class:`ContractError` as
        :func:`.streams.write_stream`.
        """
        stream, now = RecordStream(self._owner(key), writer), self._clock()
        return await self._engine.write(write_stream, self.kind, stream, start, chunks, now=now, attempt=attempt)

    async def stats(self, key: JobKey) -> Stats:
        """Return the stats of a job's records; zeros without any."""
        return await self._engine.read_inline(_stats, self._owner(key))

    async def indexes(self, key: JobKey) -> range:
        return await self._engine.read_inline(_indexes, self._owner(key))

    async def removal(self, key: JobKey) -> Removal | None:
        """Return when and why the records became unreadable; None if they are readable."""
        return await self._engine.read_inline(find_removal, self._owner(key))

    async def progress(self, key: JobKey, points: int) -> list[tuple[int, int]]:
        """Return about ``points`` pairs of time (ms) and number of records, both increasing.

        It makes about as many look-ups, whatever the number of records, and reads no record.
        """
        return await self._engine.read(read_progress, self._owner(key), points)

    async def at(self, key: JobKey, numbers: Sequence[int]) -> list[Slice]:
        """Return the existing records with these indexes."""
        if len(numbers) == 1:
            return await self._one(key, numbers[0])
        return await self._engine.read(_at, self._owner(key), numbers)

    async def _one(self, key: JobKey, number: int) -> list[Slice]:
        owner = self._owner(key)
        row = await self._engine.read_inline(_chunk_of, owner, number)
        if row is None:
            return []
        start, ts, times, body = row
        place = number - start
        line = await self._recent.line(owner, start, body, place)
        return [] if line is None else [Slice(key, number, time_at(ts, times, place), [line])]

    def _owner(self, key: JobKey) -> RecordOwner:
        return RecordOwner(key.project, self.kind.name, key.spider, key.job)

    async def scan(self, span: Span, start: Position, count: int | None = None) -> AsyncIterator[Slice]:
        """Yield the records of a span in the order of their keys, from ``start`` (spider, job, index) on.

        Raises :class:`ContractError` (410) at the end of a job whose records were removed.
        """
        async with closing(self._scan(_opened, span, start, count, with_times=True)) as slices:
            async for part in slices:
                yield part

    async def scan_text(
        self, span: Span, start: Position, count: int | None = None, *, packed: bool = False
    ) -> AsyncIterator[Sequence[bytes] | GzipPart]:
        """Yield the lines of the same records with their line breaks, in pieces of any length; raises as :meth:`scan`.

        ``packed``: long chunks that were stored as joinable gzip streams are not inflated.
        """
        read = _text_or_part if packed else _text
        async with closing(self._scan(read, span, start, count, with_times=False)) as texts:
            async for text in texts:
                yield text

    async def _scan(
        self,
        read: Callable[[Slice | _Packed], asyncio.Future[T]],
        span: Span,
        start: Position,
        count: int | None,
        *,
        with_times: bool,
    ) -> AsyncIterator[T]:
        # Several chunks are inflated in threads while the one before them is sent.
        found = self._parts(span, start, count, with_times=with_times)
        async with closing(ahead(found, read, _INFLATED_AHEAD)) as parts:
            async for part in parts:
                yield part
        # Records that were removed meanwhile look like the end.
        if span.job is not None:
            owner = self._owner(JobKey(span.project, span.spider or 0, span.job))
            if (removal := await self._engine.read_inline(find_removal, owner)) is not None:
                raise removal_error(owner, removal)

    async def _parts(
        self, span: Span, start: Position, count: int | None, *, with_times: bool
    ) -> AsyncIterator[Slice | _Packed]:
        position: Position | None = max(start, span.first)
        left = count
        following = self._read(span, position, left, with_times=with_times)
        try:
            while position is not None and (left is None or left > 0):
                parts, position, taken = await following
                if left is not None:
                    left -= taken
                # The next read runs while the current parts are sent.
                if READ_AHEAD.get():
                    following = self._read(span, position, left, with_times=with_times)
                parts.reverse()
                while parts:
                    # A yielded part is not kept here.
                    yield parts.pop()
                if not READ_AHEAD.get():
                    following = self._read(span, position, left, with_times=with_times)
        finally:
            following.cancel()

    def _read(
        self, span: Span, start: Position | None, count: int | None, *, with_times: bool
    ) -> asyncio.Future[_Read]:
        if start is None or count == 0:
            nothing: asyncio.Future[_Read] = asyncio.get_running_loop().create_future()
            nothing.cancel()
            return nothing
        chunks = _PAGE_CHUNKS if READ_AHEAD.get() else 1
        page = self._engine.read(_page, self.kind, span, start, count, chunks=chunks, with_times=with_times)
        reading = asyncio.ensure_future(page)
        reading.add_done_callback(_noted)
        return reading


def _opened(part: Slice | _Packed) -> asyncio.Future[Slice]:
    return in_thread(_Packed.inflated, part) if isinstance(part, _Packed) else _ready(part)


def _text(part: Slice | _Packed) -> asyncio.Future[Sequence[bytes]]:
    return in_thread(_Packed.text, part) if isinstance(part, _Packed) else _ready(part.text)


def _text_or_part(part: Slice | _Packed) -> asyncio.Future[Sequence[bytes]] | asyncio.Future[GzipPart]:
    if isinstance(part, _Packed) and (found := part_of(part.body)) is not None:
        return _ready(found)
    return _text(part)


def _ready(result: T) -> asyncio.Future[T]:
    ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    ready.set_result(result)
    return ready


def _noted(reading: asyncio.Future[_Read]) -> None:
    """Retrieve an error whose reader has left, so that asyncio does not log it."""
    if not reading.cancelled():
        reading.exception()


async def _stats(tx: Transaction, owner: RecordOwner) -> Stats:
    # One statement needs no transaction.
    rows = await tx.fetch(
        """SELECT t.bytes, t.records, c.field, c.occurrences FROM record_totals t
           LEFT JOIN record_counts c ON c.project = t.project AND c.kind = t.kind AND c.spider = t.spider
               AND c.job = t.job AND c.occurrences > 0
           WHERE t.project = $1 AND t.kind = $2 AND t.spider = $3 AND t.job = $4 ORDER BY c.field""",
        *owner,
    )
    if not rows or not rows[0][1]:  # the counts of a deleted job are removed later
        return Stats({}, Totals(0, 0))
    return Stats({field: count for _, _, field, count in rows if field is not None}, Totals(*rows[0][:2]))


async def _indexes(tx: Transaction, owner: RecordOwner) -> range:
    totals = await tx.fetchrow(
        """SELECT records, skipped FROM record_totals
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND removed IS NULL""",
        *owner,
    )
    if totals is None or not totals[1]:
        return range(totals[0] if totals else 0)
    first = await tx.fetchrow(
        """SELECT start FROM record_chunks WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4
           ORDER BY start LIMIT 1""",
        *owner,
    )
    return range(first[0] if first else 0, sum(totals))


CHUNK_OF: Final = f"""SELECT start, ts, times, body FROM record_chunks
    WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start <= $5 AND {READABLE}
    ORDER BY start DESC LIMIT 1"""


async def _chunk_of(tx: Transaction, owner: RecordOwner, number: int) -> Row | None:
    """Return the chunk of a record, if the record exists."""
    return await tx.fetchrow(CHUNK_OF, *owner, number)


async def _at(tx: Transaction, owner: RecordOwner, numbers: Sequence[int]) -> list[Slice]:
    found = []
    for number in numbers:
        row = await _chunk_of(tx, owner, number)
        if row is not None:
            place = number - row[0]
            for ts, lines in cut(unpack_segments(*row[1:]), place, place + 1):
                found.append(Slice(JobKey(owner.project, owner.spider, owner.job), number, ts, lines))
    return found


#: Chunks of several jobs, and of one. The second has an equation for each column of the key before the last: for
#: comparisons of rows with both ends in one job, PostgreSQL expects one chunk, and sorts all.
PAGE: Final = f"""SELECT spider, job, start, records, ts, times, body FROM record_chunks
    WHERE project = $1 AND kind = $2
    AND (spider, job, start) > ($3, $4, $5) AND (spider, job, start) <= ($6, $7, $8)
    AND NOT (spider = $3 AND job = $4 AND start + records <= $9) AND {READABLE}
    ORDER BY spider, job, start LIMIT $10"""
PAGE_OF_JOB: Final = f"""SELECT spider, job, start, records, ts, times, body FROM record_chunks
    WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4
    AND start > $5 AND start + records > $6 AND {READABLE}
    ORDER BY start LIMIT $7"""


async def _chunks_from(tx: Transaction, kind: RecordKind, span: Span, start: Position, limit: int) -> Sequence[Row]:
    """Return the first chunks of a span that have records from ``start`` on."""
    spider, job, number = start
    first = number - MAX_LINES
    if (spider, job) == (span.spider, span.job):
        return await tx.fetch(PAGE_OF_JOB, span.project, kind.name, spider, job, first, number, limit)
    return await tx.fetch(PAGE, span.project, kind.name, spider, job, first, *span.last, number, limit)


async def _page(
    tx: Transaction, kind: RecordKind, span: Span, start: Position, count: int | None, *, chunks: int, with_times: bool
) -> _Read:
    """Return at most ``count`` records from ``start`` on, of at most ``chunks`` chunks.

    Without ``with_times``, the records of a chunk may have been stored at other times than its first one.
    """
    limit = chunks if count is None else min(chunks, count)
    rows = await _chunks_from(tx, kind, span, start, limit)
    parts: list[Slice | _Packed] = []
    taken, position = 0, start
    for spider, job, at, records, *packed in rows:
        key, low = JobKey(span.project, spider, job), start[2] if (spider, job) == start[:2] else 0
        position = (spider, job, at + records)
        ts, times, body = packed
        if (times is None or not with_times) and low <= at and (count is None or records <= count - taken):
            whole = _Packed(key, at, ts, body)
            parts.append(whole.inflated() if len(body) < SMALL else whole)
            taken += records
        else:
            high = records if count is None else max(low - at, 0) + count - taken
            first = max(low - at, 0)
            for segment_ts, lines in cut(unpack_segments(ts, times, body), first, high):
                parts.append(Slice(key, at + first, segment_ts, lines))
                first += len(lines)
                taken += len(lines)
        if taken == count:
            return parts, None, taken
    return parts, position if len(rows) == limit else None, taken

"""Items, request records and logs of jobs: one implementation, told the kind.

Invariants, each kept within one transaction:

- The chunks of a job and kind cover the indexes 0 to ``record_totals.records`` without gap or overlap.
- ``record_totals`` and ``record_counts`` say of exactly those records what ``RecordKind.tally`` says.
- No chunk has more than ``MAX_LINES`` records, so that the chunk with record n starts above ``n - MAX_LINES``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.stats import Stats, Totals
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.deflate import pack
from scrapy_ext.server.store.chunks import (
    MAX_LINES,
    Chunk,
    RecordKind,
    Tally,
    tally_of_lines,
    unpack_lines,
)
from scrapy_ext.server.store.engine import Engine, Transaction

#: Chunks of one read: eight megabytes of records at most, in all but absurd cases.
_PAGE_CHUNKS: Final = 8

Position = tuple[int, int, int]


class Slice(NamedTuple):
    """Consecutive records of one job: the index of the first, when they were stored (ms), and their lines."""

    key: JobKey
    start: int
    ts: int
    lines: list[bytes]


class Span(NamedTuple):
    """What is read: a project, one of its spiders, or a job."""

    project: int
    spider: int | None = None
    job: int | None = None

    @property
    def first(self) -> Position:
        """The position before which nothing belongs to the span."""
        return (self.spider or 0, self.job or 0, 0)

    @property
    def last(self) -> Position:
        """The position after which nothing belongs to the span."""
        spider = MAX_NUMBER if self.spider is None else self.spider
        return (spider, MAX_NUMBER if self.job is None else self.job, MAX_NUMBER)


class _Owner(NamedTuple):
    """Whose records: a kind and a job, as the tables key them."""

    project: int
    kind: str
    spider: int
    job: int


class RecordStore:
    """The records of one kind."""

    def __init__(self, engine: Engine, clock: Callable[[], int], kind: RecordKind) -> None:
        self.kind = kind
        self._engine = engine
        self._clock = clock

    async def write(self, key: JobKey, start: int | None, chunks: Sequence[Chunk]) -> int:
        """Store records from index ``start`` (None: after the last); returns the index of the first.

        What was stored at the same indexes before is replaced, so that sending again changes nothing. Raises
        :class:`ContractError` when ``start`` would leave a gap.
        """
        return await self._engine.write(_write, self.kind, self._owner(key), start, chunks, now=self._clock())

    async def stats(self, key: JobKey) -> Stats:
        """The stats of a job's records; zeros for a job without any."""
        return await self._engine.read(_stats, self._owner(key))

    async def at(self, key: JobKey, numbers: Sequence[int]) -> list[Slice]:
        """The records with these indexes, those that exist."""
        return await self._engine.read(_at, self._owner(key), numbers)

    def _owner(self, key: JobKey) -> _Owner:
        return _Owner(key.project, self.kind.name, key.spider, key.job)

    async def scan(self, span: Span, start: Position, count: int | None = None) -> AsyncIterator[Slice]:
        """The records of a span in the order of their keys, from ``start`` (spider, job, index) on."""
        position = max(start, span.first)
        left = count
        while left is None or left > 0:
            slices, position_after = await self._engine.read(_page, self.kind, span, position, left)
            for part in slices:
                yield part
                if left is not None:
                    left -= len(part.lines)
            if position_after is None:
                return
            position = position_after


async def _write(
    tx: Transaction, kind: RecordKind, owner: _Owner, start: int | None, chunks: Sequence[Chunk], *, now: int
) -> int:
    end = await _locked_end(tx, owner)
    start = end if start is None else start
    if start > end:
        raise ContractError([_gap(start, end)])
    stop = start + sum(chunk.records for chunk in chunks)
    change = Tally()
    if start < end:
        if await _is_stored(tx, owner, start, chunks):
            return start
        change.subtract(await _clear(tx, kind, owner, start, stop))
    rows, at = [], start
    for chunk in chunks:
        rows.append((at, chunk.records, now, chunk.body))
        change.add(chunk.tally)
        at += chunk.records
    await _insert_chunks(tx, owner, rows)
    await _add_to_totals(tx, owner, max(stop, end) - end, change)
    return start


def _gap(start: int, end: int) -> Violation:
    return Violation(
        "start",
        f"is {start}, but the job has {end} records, so that records {end} to {start - 1} would be missing",
        f"Send the records from index {end} on first.",
    )


async def _locked_end(tx: Transaction, owner: _Owner) -> int:
    """How many records there are; others that write to this job wait from here on. A first writer makes the row."""
    query = """SELECT records FROM record_totals
               WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 FOR UPDATE"""
    row = await tx.fetchrow(query, *owner)
    if row is None:
        await tx.execute(
            """INSERT INTO record_totals (project, kind, spider, job, records, bytes) VALUES ($1, $2, $3, $4, 0, 0)
               ON CONFLICT DO NOTHING""",
            *owner,
        )
        row = await tx.fetchrow(query, *owner)
    assert row is not None  # noqa: S101 - it is there now
    end: int = row[0]
    return end


async def _is_stored(tx: Transaction, owner: _Owner, start: int, chunks: Sequence[Chunk]) -> bool:
    """Whether the very same chunks are there already: the usual case of sending again."""
    for chunk in chunks:
        row = await tx.fetchrow(
            """SELECT 1 FROM record_chunks
               WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start = $5 AND body = $6""",
            *owner,
            start,
            chunk.body,
        )
        if row is None:
            return False
        start += chunk.records
    return True


async def _clear(tx: Transaction, kind: RecordKind, owner: _Owner, low: int, high: int) -> Tally:
    """Take the records ``low`` to ``high - 1`` out of their chunks; returns their tally."""
    rows = await tx.fetch(
        """SELECT start, records, ts, body FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start > $5 AND start < $6""",
        *owner,
        low - MAX_LINES,
        high,
    )
    removed, kept = Tally(), []
    for start, records, ts, body in rows:
        if start + records <= low:
            continue
        lines = unpack_lines(body)
        before, after = lines[: max(low - start, 0)], lines[high - start :]
        removed.add(tally_of_lines(kind, lines[len(before) : len(lines) - len(after)]))
        kept += [(at, len(part), ts, pack(b"\n".join(part))) for at, part in ((start, before), (high, after)) if part]
        await tx.execute(
            "DELETE FROM record_chunks WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start = $5",
            *owner,
            start,
        )
    await _insert_chunks(tx, owner, kept)
    return removed


async def _insert_chunks(tx: Transaction, owner: _Owner, rows: Sequence[tuple[int, int, int, bytes]]) -> None:
    await tx.execute_many(
        """INSERT INTO record_chunks (project, kind, spider, job, start, records, ts, body)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)""",
        [(*owner, *row) for row in rows],
    )


async def _add_to_totals(tx: Transaction, owner: _Owner, records: int, change: Tally) -> None:
    await tx.execute(
        """INSERT INTO record_totals (project, kind, spider, job, records, bytes) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (project, kind, spider, job) DO UPDATE
           SET records = record_totals.records + excluded.records, bytes = record_totals.bytes + excluded.bytes""",
        *owner,
        records,
        change.size,
    )
    await tx.execute_many(
        """INSERT INTO record_counts (project, kind, spider, job, field, occurrences)
           VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (project, kind, spider, job, field) DO UPDATE
           SET occurrences = record_counts.occurrences + excluded.occurrences""",
        [(*owner, field, number) for field, number in change.counts.items() if number],
    )


async def _stats(tx: Transaction, owner: _Owner) -> Stats:
    totals = await tx.fetchrow(
        "SELECT bytes, records FROM record_totals WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4",
        *owner,
    )
    counts = await tx.fetch(
        """SELECT field, occurrences FROM record_counts
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND occurrences > 0 ORDER BY field""",
        *owner,
    )
    return Stats(dict(counts), Totals(*totals) if totals else Totals(0, 0))


async def _at(tx: Transaction, owner: _Owner, numbers: Sequence[int]) -> list[Slice]:
    found = []
    for number in numbers:
        row = await tx.fetchrow(
            """SELECT start, ts, body FROM record_chunks
               WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start <= $5
               ORDER BY start DESC LIMIT 1""",
            *owner,
            number,
        )
        lines = unpack_lines(row[2])[number - row[0] :][:1] if row else []
        if row and lines:
            found.append(Slice(JobKey(owner.project, owner.spider, owner.job), number, row[1], lines))
    return found


async def _page(
    tx: Transaction, kind: RecordKind, span: Span, start: Position, count: int | None
) -> tuple[list[Slice], Position | None]:
    """Some records from ``start`` on, and the position to go on from; None at the end."""
    limit = _PAGE_CHUNKS if count is None else min(_PAGE_CHUNKS, count)
    rows = await tx.fetch(
        """SELECT spider, job, start, ts, body FROM record_chunks
           WHERE project = $1 AND kind = $2
           AND (spider, job, start) > ($3, $4, $5) AND (spider, job, start) <= ($6, $7, $8)
           AND NOT (spider = $3 AND job = $4 AND start + records <= $9)
           ORDER BY spider, job, start LIMIT $10""",
        span.project,
        kind.name,
        *(start[0], start[1], start[2] - MAX_LINES),
        *span.last,
        start[2],
        limit,
    )
    slices: list[Slice] = []
    taken, position = 0, start
    for spider, job, first, ts, body in rows:
        lines = unpack_lines(body)
        position = (spider, job, first + len(lines))
        skipped = max(start[2] - first, 0) if (spider, job) == start[:2] else 0
        lines = lines[skipped : None if count is None else skipped + count - taken]
        if lines:
            slices.append(Slice(JobKey(span.project, spider, job), first + skipped, ts, lines))
            taken += len(lines)
        if taken == count:
            return slices, None
    return slices, position if len(rows) == limit else None

"""Writes of jobs' records.

Invariants, each kept within one transaction:

- The chunks of a job and kind do not overlap. They have ``record_totals.records`` records, the last of which has the
  index ``records + skipped - 1``. A gap exists only below the first records that were written, if that write was
  allowed to skip indexes.
- ``record_totals`` and ``record_counts`` equal ``RecordKind.tally`` of exactly those records.
- No chunk has more than ``MAX_LINES`` records, so that the chunk with record n starts above ``n - MAX_LINES``.

Small writes leave no small chunks behind: a write that ends in one chunk merges the chunks before it that are not
larger. So chunks at the end of a job at least halve in size from one to the next (ten at most), and a record is packed
again ten times at most until its chunk is full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Transaction, only_row
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.records.chunks import (
    MAX_BYTES,
    MAX_LINES,
    RecordChunk,
    RecordKind,
    RecordTally,
    tally_of_lines,
    unpack_lines,
)
from scrapy_ext.server.store.records.removal import RecordOwner, check_not_forgotten, removed_error
from scrapy_ext.server.store.records.segments import (
    Segment,
    StoredChunk,
    cut,
    length,
    pack_segments,
    split,
    unpack_segments,
)

#: Compressed bytes of a chunk that is not merged, however few its records.
_LARGE: Final = MAX_BYTES // 8


class _Change(NamedTuple):
    """Change of the totals of an owner; ``stored`` is in bytes of chunks."""

    records: int
    skipped: int
    bytes: int
    stored: int


class _Row(NamedTuple):
    """A stored chunk and the index of its first record."""

    start: int
    chunk: StoredChunk

    @property
    def end(self) -> int:
        return self.start + self.chunk.records

    def segments(self) -> list[Segment]:
        return unpack_segments(self.chunk.ts, self.chunk.times, self.chunk.body)


async def write_records(
    tx: Transaction,
    kind: RecordKind,
    owner: RecordOwner,
    start: int | None,
    chunks: Sequence[RecordChunk],
    *,
    now: int,
    may_skip: bool,
    attempt: Attempt | None = None,
) -> int:
    """Store records from ``start`` on (None: after the last); return the index of the first.

    ``may_skip``: without records yet, ``start`` may be any index. ``attempt``: that of the process that writes.
    """
    await check_attempt(tx, attempt)
    records, end = await lock_totals(tx, owner)
    start = end if start is None else start
    if start > end and (records or not may_skip):
        raise ContractError([_gap(start, records, end)])
    await store_chunks(tx, kind, owner, start, chunks, end=end, now=now)
    return start


async def store_chunks(
    tx: Transaction,
    kind: RecordKind,
    owner: RecordOwner,
    start: int,
    chunks: Sequence[RecordChunk],
    *,
    end: int,
    now: int,
) -> None:
    """Store records from ``start`` on in a job whose totals are locked; ``end`` is the index after its last record."""
    stop = start + sum(chunk.records for chunk in chunks)
    change, replaced, stored = RecordTally(), 0, 0
    if start < end:
        if stop <= end and await _is_stored(tx, owner, start, chunks):
            return
        removed, replaced, stored = await _clear(tx, kind, owner, start, stop)
        change.subtract(removed)
    rows, at = [], start
    for chunk in chunks:
        rows.append(_Row(at, StoredChunk(chunk.records, now, None, chunk.body)))
        change.add(chunk.tally)
        at += chunk.records
    if start == end and len(rows) == 1 and start:
        rows, merged = await _merged(tx, owner, rows[0])
        stored -= merged
    stored += await _insert(tx, owner, rows)
    added = stop - start - replaced
    await _add_to_totals(tx, owner, _Change(added, max(stop, end) - end - added, change.size, stored), change.counts)


def _gap(start: int, records: int, end: int) -> Violation:
    return Violation(
        "start",
        f"is {start}, but the job has {records} records, so that records {end} to {start - 1} would be missing",
        f"Send the records from index {end} on first.",
    )


async def lock_totals(tx: Transaction, owner: RecordOwner) -> tuple[int, int]:
    """Lock and return the number of records, and the index after the last one.

    Other writers of the same job and kind wait for this transaction. Raises :class:`ContractError` (410) when the
    records were removed.
    """
    row = await tx.fetchrow(
        """SELECT records, skipped, removed FROM record_totals
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 FOR UPDATE""",
        *owner,
    )
    if row is None:
        await check_not_forgotten(tx, owner)
        row = await only_row(
            tx,
            """INSERT INTO record_totals (project, kind, spider, job, records, bytes, stored)
               VALUES ($1, $2, $3, $4, 0, 0, 0)
               ON CONFLICT (project, kind, spider, job) DO UPDATE SET records = record_totals.records
               RETURNING records, skipped, removed""",
            *owner,
        )
    if row[2] is not None:
        raise await removed_error(tx, owner)
    return row[0], row[0] + row[1]


async def _overlapping(tx: Transaction, owner: RecordOwner, low: int, high: int) -> list[_Row]:
    """Return the chunks with any of the records ``low`` to ``high - 1``."""
    rows = await tx.fetch(
        """SELECT start, records, ts, times, body FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start > $5 AND start < $6
           ORDER BY start""",
        *owner,
        low - MAX_LINES,
        high,
    )
    found = [_Row(row[0], StoredChunk(*row[1:])) for row in rows]
    return [row for row in found if row.end > low]


async def _is_stored(tx: Transaction, owner: RecordOwner, start: int, chunks: Sequence[RecordChunk]) -> bool:
    """Return true when exactly these records are stored already, as after a repeated request."""
    for chunk in chunks:
        stop = start + chunk.records
        rows = await _overlapping(tx, owner, start, stop)
        if not (len(rows) == 1 and rows[0].start == start and rows[0].chunk.body == chunk.body):
            parts = [part for row in rows for part in cut(row.segments(), start - row.start, stop - row.start)]
            if [line for part in parts for line in part.lines] != unpack_lines(chunk.body):
                return False
        start = stop
    return True


async def _clear(
    tx: Transaction, kind: RecordKind, owner: RecordOwner, low: int, high: int
) -> tuple[RecordTally, int, int]:
    """Remove the records ``low`` to ``high - 1``; return their tally and number, and the change in stored bytes."""
    removed, number, stored, kept = RecordTally(), 0, 0, []
    for row in await _overlapping(tx, owner, low, high):
        segments = row.segments()
        first, last = max(low - row.start, 0), min(high - row.start, row.chunk.records)
        for part in cut(segments, first, last):
            removed.add(tally_of_lines(kind, part.lines))
            number += len(part.lines)
        for at, rest in ((0, cut(segments, 0, first)), (last, cut(segments, last, row.chunk.records))):
            if rest:
                kept.append(_Row(row.start + at, pack_segments(rest)))
        stored -= await _delete(tx, owner, row)
    return removed, number, stored + await _insert(tx, owner, kept)


async def _merged(tx: Transaction, owner: RecordOwner, new: _Row) -> tuple[list[_Row], int]:
    """Merge the new last chunk with preceding chunks that are not larger; return these chunks' bytes too.

    They are deleted.
    """
    start, records, stored, segments = new.start, new.chunk.records, 0, list[Segment]()
    while start and records < MAX_LINES:
        row = await tx.fetchrow(
            """SELECT start, records, ts, times, body FROM record_chunks
               WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start >= $5 AND start < $6
               ORDER BY start DESC LIMIT 1""",
            *owner,
            start - records,
            start,
        )
        # The chunk before starts earlier: it is larger.
        if row is None:
            break
        before = _Row(row[0], StoredChunk(*row[1:]))
        if before.end < start or before.chunk.records == MAX_LINES or len(before.chunk.body) > _LARGE:
            break
        segments = before.segments() + segments
        start, records = before.start, records + before.chunk.records
        stored += await _delete(tx, owner, before)
    if not segments:
        return [new], 0
    segments += new.segments()
    rows = []
    for part in split(segments):
        rows.append(_Row(start, pack_segments(part)))
        start += length(part)
    return rows, stored


async def _delete(tx: Transaction, owner: RecordOwner, row: _Row) -> int:
    """Delete a chunk; return its bytes."""
    await tx.execute(
        "DELETE FROM record_chunks WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start = $5",
        *owner,
        row.start,
    )
    return len(row.chunk.body)


async def _insert(tx: Transaction, owner: RecordOwner, rows: Sequence[_Row]) -> int:
    """Insert chunks; return their bytes."""
    await tx.execute_many(
        """INSERT INTO record_chunks (project, kind, spider, job, start, records, ts, times, body)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
        [(*owner, row.start, *row.chunk) for row in rows],
    )
    return sum(len(row.chunk.body) for row in rows)


async def _add_to_totals(tx: Transaction, owner: RecordOwner, change: _Change, counts: Mapping[str, int]) -> None:
    await tx.execute(
        """UPDATE record_totals SET records = records + $5, skipped = skipped + $6, bytes = bytes + $7,
                  stored = stored + $8, revision = revision + 1
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4""",
        *owner,
        *change,
    )
    await tx.execute_many(
        """INSERT INTO record_counts (project, kind, spider, job, field, occurrences)
           VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (project, kind, spider, job, field) DO UPDATE
           SET occurrences = record_counts.occurrences + excluded.occurrences""",
        [(*owner, field, number) for field, number in sorted(counts.items()) if number],
    )

"""Streams: the records that one attempt has written to a job, with indexes of their own from 0.

Invariants, each kept within one transaction:

- A record of a stream has one place in the job, and keeps it. The segments of a stream adjoin one another, from index 0
  on.
- New records are appended to the job. If they follow the last segment of their stream there, it grows.
- Of items, log lines and samples, the last segments of a stream are kept alone. What is before them is stored, and is
  not written again. Of request records all are kept, since later records name them as parents; those before the last
  ones are packed, many in a row.
- Only the attempt itself writes to its stream; another attempt of the job does so once that attempt is over, to store
  what a killed process has prepared.

So a write can be repeated, by whichever process: it finds the places of its records. A writer repeats its last write
only. A successor begins with the first items of the last record of a journal, and stores the same bytes, so that it
loses nothing when those before the kept segments are passed over; refused, it could not go on.

The lock of ``record_totals`` covers the streams of a job and kind, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.records import StreamPlaces
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Transaction, only_row
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.records.chunks import REQUESTS, RecordChunk, RecordKind, cut_chunks
from scrapy_ext.server.store.records.parents import with_parents
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.stream_segments import StreamRow, StreamSegment, packed_row
from scrapy_ext.server.store.records.writes import lock_totals, store_chunks

#: Segments of a stream that are kept.
_KEPT: Final = 64
#: Newest segments of request records, each in a row of its own, and older ones in one row: PostgreSQL keeps up to 2 KB
#: of a row in its place.
_PLAIN: Final = 64
_PACKED: Final = 128
_OF_STREAM: Final = "project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND writer = $5"


class RecordStream(NamedTuple):
    """``writer``: number of the attempt whose stream it is."""

    owner: RecordOwner
    writer: int


class _Newest(NamedTuple):
    """The last segment of a stream, and its number there, from 0."""

    segment: StreamSegment
    number: int


async def write_stream(
    tx: Transaction,
    kind: RecordKind,
    stream: RecordStream,
    start: int,
    chunks: Sequence[RecordChunk],
    *,
    now: int,
    attempt: Attempt | None,
) -> StreamPlaces:
    """Store records at the indexes from ``start`` on of a stream.

    Raises :class:`ContractError`: 403 when the attempt may not write to the stream, 400 for a gap, 410 when the records
    of the job were removed.
    """
    await check_attempt(tx, attempt)
    await _check_writer(tx, stream, attempt)
    _, end = await lock_totals(tx, stream.owner)
    segments = await _extend(tx, stream, start, start + sum(chunk.records for chunk in chunks), end)
    if kind is not REQUESTS and segments and segments[-1].place == end:
        await _remove_old(tx, stream)
    answer = StreamPlaces([])
    for segment in segments:
        sent = cut_chunks(kind, chunks, segment.start - start, segment.end - start)
        part, unknown = await with_parents(tx, kind, stream.owner, sent)
        await store_chunks(tx, kind, stream.owner, segment.place, part, end=end, now=now)
        answer.places.append((segment.start, segment.place))
        answer.parents_unknown += unknown
    return answer


async def _check_writer(tx: Transaction, stream: RecordStream, attempt: Attempt | None) -> None:
    """Raise :class:`ContractError` (403) unless the attempt may write to a stream: its own, or that of an attempt of
    the same job that is over.

    An attempt that is over never begins again. One that has not begun has a number that was not given yet.
    """
    key, writer = stream.owner.key, stream.writer
    if attempt is not None and attempt.key == key:
        if writer == attempt.number:
            return
        # One statement, so that an attempt that begins meanwhile is in both numbers or in neither.
        present, last = await only_row(
            tx,
            """SELECT (SELECT count(*) FROM attempts
                       WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4),
                      COALESCE((SELECT last_attempt FROM worker_groups
                                WHERE project = $1 AND spider = $2 AND job = $3), 0)""",
            *key,
            writer,
        )
        if not present and writer <= max(last, attempt.number):
            return
    raise ContractError(
        [
            Violation(
                "writer",
                f"is {writer}, whose stream in job {key} this caller may not write to",
                "Send the token of that attempt, or, once it is over, that of another attempt of the job.",
                403,
            )
        ]
    )


async def _extend(tx: Transaction, stream: RecordStream, start: int, stop: int, end: int) -> list[StreamSegment]:
    """Let a stream reach to the index ``stop``; return its segments from ``start`` to there.

    ``end`` is the index after the last record of the job.
    """
    newest = await _newest(tx, stream)
    if start > newest.segment.end:
        raise ContractError([_gap(stream, start, newest.segment.end)])
    if stop > newest.segment.end:
        newest = await _append(tx, stream, newest, stop - newest.segment.end, end)
    last = newest.segment
    segments = [last] if start >= last.start else await _segments(tx, stream, start, stop)
    return [segment.clipped(start, stop) for segment in segments]


async def _append(tx: Transaction, stream: RecordStream, newest: _Newest, records: int, end: int) -> _Newest:
    """Add records at the end of the job to a stream; return the segment that has them."""
    last = newest.segment
    if last.records and last.place + last.records == end:
        grown = last._replace(records=last.records + records)
        await tx.execute(
            f"UPDATE record_streams SET records = $7 WHERE {_OF_STREAM} AND start = $6",
            *stream.owner,
            stream.writer,
            grown.start,
            grown.records,
        )
        return _Newest(grown, newest.number)
    new, number = StreamSegment(last.end, end, records), newest.number + 1
    await tx.execute(
        """INSERT INTO record_streams (project, kind, spider, job, writer, start, place, records, number)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
        *stream.owner,
        stream.writer,
        *new,
        number,
    )
    older = number + 1 - _PLAIN
    if stream.owner.kind == REQUESTS.name and older > 0 and older % _PACKED == 0:
        await _pack_old(tx, stream)
    return _Newest(new, number)


async def _remove_old(tx: Transaction, stream: RecordStream) -> None:
    """Remove the segments of a stream before those that are kept."""
    await tx.execute(
        f"""DELETE FROM record_streams WHERE {_OF_STREAM} AND start <= (
                SELECT start FROM record_streams WHERE {_OF_STREAM} ORDER BY start DESC LIMIT 1 OFFSET {_KEPT})""",
        *stream.owner,
        stream.writer,
    )


async def _pack_old(tx: Transaction, stream: RecordStream) -> None:
    """Pack the segments of a stream before the newest ones into one row."""
    rows = await tx.fetch(
        f"""SELECT start, place, records FROM record_streams WHERE {_OF_STREAM} AND packed IS NULL
            ORDER BY start DESC LIMIT {_PACKED} OFFSET {_PLAIN}""",
        *stream.owner,
        stream.writer,
    )
    row = packed_row([StreamSegment(*each) for each in reversed(rows)])
    await tx.execute(
        f"DELETE FROM record_streams WHERE {_OF_STREAM} AND start > $6 AND start < $7",
        *stream.owner,
        stream.writer,
        row.start,
        row.start + row.records,
    )
    await tx.execute(
        f"UPDATE record_streams SET records = $7, packed = $8 WHERE {_OF_STREAM} AND start = $6",
        *stream.owner,
        stream.writer,
        row.start,
        row.records,
        row.packed,
    )


def _gap(stream: RecordStream, start: int, end: int) -> Violation:
    return Violation(
        "start",
        f"is {start}, but the stream of writer {stream.writer} has {end} records, so that records {end} to {start - 1} "
        "would be missing",
        f"Send the records from index {end} on first.",
    )


async def _newest(tx: Transaction, stream: RecordStream) -> _Newest:
    """Return the last segment of a stream; one of no records if it has none."""
    row = await tx.fetchrow(
        f"SELECT start, place, records, number FROM record_streams WHERE {_OF_STREAM} ORDER BY start DESC LIMIT 1",
        *stream.owner,
        stream.writer,
    )
    return _Newest(StreamSegment(0, 0, 0), -1) if row is None else _Newest(StreamSegment(*row[:3]), row[3])


async def _segments(tx: Transaction, stream: RecordStream, low: int, high: int) -> list[StreamSegment]:
    """Return the kept segments with any of the records ``low`` to ``high - 1`` of a stream."""
    rows = await tx.fetch(
        f"""SELECT start, place, records, packed FROM record_streams WHERE {_OF_STREAM} AND start < $7
            AND start >= COALESCE(
                (SELECT max(start) FROM record_streams WHERE {_OF_STREAM} AND start <= $6), $6)
            ORDER BY start""",
        *stream.owner,
        stream.writer,
        low,
        high,
    )
    found = (segment for row in rows for segment in StreamRow(*row).segments())
    return [segment for segment in found if segment.end > low and segment.start < high]

"""Growth of a job's records over time, read from the starts and times of its chunks."""

from __future__ import annotations

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.segments import growth


async def read_progress(tx: Transaction, owner: RecordOwner, points: int) -> list[tuple[int, int]]:
    """Return about ``points`` pairs of time (ms) and number of records, evenly spread over the records."""
    totals = await tx.fetchrow(
        """SELECT records, skipped FROM record_totals
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND removed IS NULL""",
        *owner,
    )
    total, skipped = totals if totals else (0, 0)
    step = max(total // points, 1)
    found: list[tuple[int, int]] = []
    at, end = 0, total + skipped
    while at < end:
        # A step beyond the last chunk reads the last chunk.
        start, records, ts, times = await _chunk_from(tx, owner, at) or await _last_chunk(tx, owner)
        # Indexes without a record are nearly always before the first record.
        before = start - min(skipped, start)
        for when, number in growth(ts, times, records):
            # Clocks of machines differ, but the times must not decrease.
            if before + number >= (found[-1][1] if found else 0) + step or before + number == total:
                found.append((max(when, found[-1][0] if found else 0), before + number))
        # The last record is always included.
        at = max(start + records, min(at + step, end - 1))
    return found


async def _chunk_from(tx: Transaction, owner: RecordOwner, at: int) -> tuple[int, int, int, bytes | None] | None:
    """Return the first chunk from an index on, without its records."""
    row = await tx.fetchrow(
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start >= $5 ORDER BY start LIMIT 1""",
        *owner,
        at,
    )
    return None if row is None else (row[0], row[1], row[2], row[3])


async def _last_chunk(tx: Transaction, owner: RecordOwner) -> tuple[int, int, int, bytes | None]:
    row = await tx.fetchrow(
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 ORDER BY start DESC LIMIT 1""",
        *owner,
    )
    assert row is not None  # noqa: S101 - the chunks have all records
    return row[0], row[1], row[2], row[3]

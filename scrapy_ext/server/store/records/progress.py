"""How the records of a job grew in number, told from where its chunks begin and when they were stored."""

from __future__ import annotations

from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.segments import growth
from scrapy_ext.server.store.records.writes import Owner


async def read_progress(tx: Transaction, owner: Owner, points: int) -> list[tuple[int, int]]:
    """Times (ms) and how many records there were then, about ``points`` of them, evenly spread over the records."""
    totals = await tx.fetchrow(
        "SELECT records, skipped FROM record_totals WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4",
        *owner,
    )
    total, skipped = totals if totals else (0, 0)
    step = max(total // points, 1)
    found: list[tuple[int, int]] = []
    at, end = 0, total + skipped
    while at < end:
        # Where a step leads beyond the last chunk, the last chunk is looked at.
        start, records, ts, times = await _chunk_from(tx, owner, at) or await _last_chunk(tx, owner)
        # Indexes without a record are nearly always those before the first one.
        before = start - min(skipped, start)
        for when, number in growth(ts, times, records):
            # Clocks of machines differ: time goes on all the same.
            if before + number >= (found[-1][1] if found else 0) + step or before + number == total:
                found.append((max(when, found[-1][0] if found else 0), before + number))
        # The last of the records is always looked at.
        at = max(start + records, min(at + step, end - 1))
    return found


async def _chunk_from(tx: Transaction, owner: Owner, at: int) -> tuple[int, int, int, bytes | None] | None:
    """The first chunk that begins at an index or after it, without its records."""
    row = await tx.fetchrow(
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start >= $5 ORDER BY start LIMIT 1""",
        *owner,
        at,
    )
    return None if row is None else (row[0], row[1], row[2], row[3])


async def _last_chunk(tx: Transaction, owner: Owner) -> tuple[int, int, int, bytes | None]:
    row = await tx.fetchrow(
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 ORDER BY start DESC LIMIT 1""",
        *owner,
    )
    assert row is not None  # noqa: S101 - the chunks have all records that there are
    return row[0], row[1], row[2], row[3]

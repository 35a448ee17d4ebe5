"""Growth of a job's records over time, and their layout: the numbers of records by the time when they were stored.

Both are read from the starts and times of the chunks.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Transaction, only_row
from scrapy_ext.server.store.records.removal import RecordOwner
from scrapy_ext.server.store.records.segments import growth

#: Numbers of records of a chunk, with the times (ms) when they were stored.
Layout = list[tuple[int, int]]

#: Chunks whose layout one read returns.
_CHUNKS: Final = 1000


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
    row = await only_row(
        tx,
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 ORDER BY start DESC LIMIT 1""",
        *owner,
    )
    return row[0], row[1], row[2], row[3]


async def find_layout(tx: Transaction, key: JobKey, kind: str, after: int) -> list[tuple[int, Layout]]:
    """Return the index of the first record and the layout of some chunks that start after an index."""
    rows = await tx.fetch(
        """SELECT start, records, ts, times FROM record_chunks
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND start > $5 ORDER BY start LIMIT $6""",
        *(key.project, kind, key.spider, key.job),
        after,
        _CHUNKS,
    )
    return [(start, _layout_of(records, ts, times)) for start, records, ts, times in rows]


def _layout_of(records: int, ts: int, times: bytes | None) -> Layout:
    layout, before = [], 0
    for later, number in growth(ts, times, records):
        layout.append((number - before, later))
        before = number
    return layout

"""How the records of a job grew in number, told from where its chunks begin and when they were stored."""

from __future__ import annotations

from scrapy_ext.server.store.engine import Transaction
from scrapy_ext.server.store.record_writes import Owner
from scrapy_ext.server.store.stretches import growth


async def read_progress(tx: Transaction, owner: Owner, points: int) -> list[tuple[int, int]]:
    """Times (ms) and how many records there were then, about ``points`` of them, evenly spread over the records."""
    totals = await tx.fetchrow(
        "SELECT records FROM record_totals WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4", *owner
    )
    step = max(totals[0] // points, 1) if totals else 1
    found: list[tuple[int, int]] = []
    at = 0
    while row := await _chunk_from(tx, owner, at):
        start, records, ts, times = row
        for when, number in growth(ts, times, records):
            # Clocks of machines differ: the number grows all the same.
            if start + number >= (found[-1][1] if found else 0) + step or number == records:
                found.append((max(when, found[-1][0] if found else 0), start + number))
        at = max(start + records, at + step)
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

"""Count of the stored bytes of records that were written before these were counted.

The chunks of a job are measured in pages that lock nothing. The sum is stored only if the records did not change
meanwhile (``record_totals.revision``), else they are measured again later. Jobs that run are counted when they end.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from scrapy_ext.server.store.engine.interface import Engine, Transaction, pause_after
from scrapy_ext.server.store.records.removal import RecordOwner

#: Chunks per page.
_PAGE: Final = 1000
_UNCOUNTED: Final = "stored IS NULL AND removed IS NULL"
_OWNED: Final = "project = $1 AND kind = $2 AND spider = $3 AND job = $4"


async def count_stored(engine: Engine) -> int:
    """Count the stored bytes of all records where they are unknown; return the number of jobs' kinds counted."""
    counted, owner = 0, RecordOwner(-1, "", 0, 0)
    while found := await engine.read(_next, owner):
        owner, revision = found
        size, after, began = 0, -1, time.monotonic()
        while page := await engine.read(_measure, owner, after):
            size, after = size + page[0], page[1]
            await asyncio.sleep(pause_after(time.monotonic() - began))
            began = time.monotonic()
        counted += await engine.write(_store, owner, revision, size)
        await asyncio.sleep(pause_after(time.monotonic() - began))
    return counted


async def _next(tx: Transaction, after: RecordOwner) -> tuple[RecordOwner, int] | None:
    """Return the next totals without stored bytes, and their revision, of a job that is not active."""
    row = await tx.fetchrow(
        """SELECT t.project, t.kind, t.spider, t.job, t.revision FROM record_totals t
            WHERE t.uncounted = 1 AND t.stored IS NULL AND t.removed IS NULL
            AND (t.project, t.kind, t.spider, t.job) > ($1, $2, $3, $4)
            AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.project = t.project AND j.spider = t.spider AND j.job = t.job
                            AND j.state IN ('pending', 'running'))
            ORDER BY t.project, t.kind, t.spider, t.job LIMIT 1""",
        *after,
    )
    return None if row is None else (RecordOwner(*row[:4]), row[4])


async def _measure(tx: Transaction, owner: RecordOwner, after: int) -> tuple[int, int] | None:
    """Return the bytes of the next chunks, and the start of the last one; None at the end."""
    row = await tx.fetchrow(
        f"""SELECT CAST(sum(size) AS BIGINT), max(start) FROM (
                SELECT start, length(body) AS size FROM record_chunks WHERE {_OWNED} AND start > $5
                ORDER BY start LIMIT {_PAGE}) c""",
        *owner,
        after,
    )
    return None if row is None or row[1] is None else (row[0], row[1])


async def _store(tx: Transaction, owner: RecordOwner, revision: int, size: int) -> int:
    return await tx.execute(
        f"UPDATE record_totals SET stored = $6, uncounted = NULL WHERE {_OWNED} AND revision = $5 AND {_UNCOUNTED}",
        *owner,
        revision,
        size,
    )

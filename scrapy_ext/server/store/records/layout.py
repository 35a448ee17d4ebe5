"""Layout of stored records: the numbers of records of each chunk, by the time when they were stored."""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.segments import growth

#: Numbers of records of a chunk, with the times (ms) when they were stored.
Layout = list[tuple[int, int]]

#: Chunks whose layout one read returns.
_CHUNKS: Final = 1000


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

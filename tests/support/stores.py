"""Helpers for tests of stores: the place of a store, a clock that the test moves, and a database without rows."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from scrapy_ext.server.store.engine.address import DatabaseUrl

Where = Path | DatabaseUrl

#: Where the rows of frontiers are, and what is yet to be removed of those that were deleted.
FRONTIER_TABLES = (
    "frontier_feeds",
    "frontier_slots",
    "frontier_batches",
    "frontier_fingerprints",
    "frontier_fingerprint_blocks",
    "frontier_packed_fingerprints",
    "frontier_long_fingerprints",
    "frontier_fingerprint_data",
    "removals",
)


#: For tests that only pass through the store on their way: the other engine is for the long lane.
ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]


#: Spiders and states whose number of jobs is not the one that is kept.
WRONG_COUNTS = """SELECT project, spider, state, sum(jobs) FROM (
    SELECT project, spider, state, jobs FROM job_counts UNION ALL SELECT project, spider, state, -1 FROM jobs
) each_one GROUP BY project, spider, state HAVING sum(jobs) <> 0"""


class Clock:
    """Milliseconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


async def emptied(url: DatabaseUrl) -> DatabaseUrl:
    """The database, with its tables and nothing in them: much faster than a new one."""
    connection = await asyncpg.connect(url.secret)
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    for (name,) in await connection.fetch(f"{tables} AND NOT relispartition AND relname <> 'schema_version'"):
        await connection.execute(f"DELETE FROM {name}")
    await connection.close()
    return url

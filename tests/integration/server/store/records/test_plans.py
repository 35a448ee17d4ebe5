"""Reads of records on PostgreSQL: a job with very many chunks is read by its key, and nothing of it is sorted."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.records import CHUNK_OF, PAGE, PAGE_OF_JOB
from tests.support.stores import Where

_CHUNKS = 20_000
_LAST = 2**63 - 1


async def _fill(tx: Transaction) -> None:
    await tx.execute(
        """INSERT INTO record_chunks (project, kind, spider, job, start, records, ts, body)
           SELECT 1, 'items', 1, 1, number * 1000, 1000, 1, '\\x00' FROM generate_series(0, $1 - 1) AS number""",
        _CHUNKS,
    )
    await tx.execute(
        """INSERT INTO record_totals (project, kind, spider, job, records, bytes, stored)
           VALUES (1, 'items', 1, 1, $1, 1, 1)""",
        _CHUNKS * 1000,
    )


@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_a_read_of_a_job_sorts_nothing(store: Store, where: Where, mode: str) -> None:
    assert isinstance(where, DatabaseUrl)
    await store._engine.write(_fill)
    await store._engine.vacuum()
    middle = _CHUNKS * 500
    reads: dict[str, tuple[Any, ...]] = {
        CHUNK_OF: (middle + 1,),
        PAGE_OF_JOB: (middle - 5000, middle, 4),
        PAGE: (-5000, 1, 1, _LAST, 0, 4),
    }
    connection = await asyncpg.connect(where.secret)
    try:
        await connection.execute(f"SET plan_cache_mode = {mode}")
        for number, (sql, rest) in enumerate(reads.items()):
            first = ("1", "'items'", "0", "0") if sql is PAGE else ("1", "'items'", "1", "1")
            types = ", ".join("text" if value == "'items'" else "bigint" for value in (*first, *rest))
            await connection.execute(f"PREPARE read_{number} ({types}) AS {sql}")
            values = ", ".join(map(str, (*first, *rest)))
            rows = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING off) EXECUTE read_{number} ({values})")
            plan = "\n".join(row[0] for row in rows)
            assert "Sort  (" not in plan, plan
            assert "_pkey on record_chunks" in plan, plan
    finally:
        await connection.close()

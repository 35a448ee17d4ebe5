"""Guarantees of an engine for the operations of a store."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.engine.opening import open_engine
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine
from tests.support.stores import Where


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = await SqliteEngine.open(tmp_path / "test.db")
    await engine.write(_create)
    yield engine
    await engine.close()


@pytest.fixture
async def engine(where: Where) -> AsyncIterator[Engine]:
    """Both, in turn."""
    engine = await open_engine(where)
    await engine.write(_create)
    yield engine
    await engine.close()


async def _create(tx: Transaction) -> None:
    await tx.script("DROP TABLE IF EXISTS t")
    await tx.script("CREATE TABLE t (a BIGINT NOT NULL PRIMARY KEY, b TEXT)")


async def _insert(tx: Transaction, *values: int, fail: bool = False) -> int:
    await tx.execute_many("INSERT INTO t (a, b) VALUES ($1, $2)", [(value, "x") for value in values])
    if fail:
        raise ValueError("changed my mind")
    return len(values)


async def _all(tx: Transaction) -> list[int]:
    return [row[0] for row in await tx.fetch("SELECT a FROM t ORDER BY a")]


async def test_an_operation_that_fails_leaves_nothing_and_its_neighbours_everything(engine: Engine) -> None:
    operations = [engine.write(_insert, n, n + 1000, fail=n % 3 == 0) for n in range(60)]
    outcomes = await asyncio.gather(*operations, return_exceptions=True)
    assert [isinstance(outcome, ValueError) for outcome in outcomes] == [n % 3 == 0 for n in range(60)]
    kept = [n for n in range(60) if n % 3]
    assert await engine.read(_all) == [*kept, *(n + 1000 for n in kept)]


async def test_a_key_that_exists_fails_its_operation_alone(engine: Engine) -> None:
    await engine.write(_insert, 7)
    outcomes = await asyncio.gather(
        engine.write(_insert, 1), engine.write(_insert, 6, 7), engine.write(_insert, 2), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, StoreError, int]
    assert await engine.read(_all) == [1, 2, 7]


async def test_a_result_is_seen_by_other_connections_when_it_is_returned(sqlite: SqliteEngine, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "test.db")
    for n in range(20):
        await sqlite.write(_insert, n)
        assert other.execute("SELECT count(*) FROM t").fetchone() == (n + 1,)
    other.close()


@pytest.mark.long(keep=1)
async def test_readers_cannot_write(engine: Engine) -> None:
    with pytest.raises(StoreError):
        await engine.read(_insert, 1)
    assert await engine.read(_all) == []


async def test_inserting_returns_only_what_was_new(engine: Engine) -> None:
    async def add(tx: Transaction, values: list[int]) -> set[int]:
        rows = await tx.insert_many(
            "INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING a", [(n, "y") for n in values]
        )
        return {row[0] for row in rows}

    assert await engine.write(add, list(range(300))) == set(range(300))
    assert await engine.write(add, [5, 300, 300, 299, 301]) == {300, 301}
    assert await engine.write(add, []) == set()


async def test_an_operation_that_awaits_something_else_is_refused(sqlite: SqliteEngine) -> None:
    async def sleepy(tx: Transaction) -> None:
        await tx.execute("INSERT INTO t (a) VALUES ($1)", 1)
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="other than its transaction"):
        await sqlite.write(sleepy)
    assert await sqlite.read(_all) == []


async def test_a_lock_of_another_process_is_waited_for(sqlite: SqliteEngine, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t (a) VALUES (1)")
    waiting = asyncio.create_task(sqlite.write(_insert, 2))
    assert await sqlite.read(_all) == []  # readers do not wait
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await waiting
    assert await sqlite.read(_all) == [1, 2]


async def test_writes_after_the_end_are_refused_clearly(where: Where) -> None:
    engine = await open_engine(where)
    await engine.close()
    with pytest.raises(StoreError, match="shutting down"):
        await engine.write(_insert, 1)


async def test_rows_that_change_are_counted(engine: Engine) -> None:
    async def change(tx: Transaction) -> list[int]:
        return [
            await tx.execute("UPDATE t SET b = $1 WHERE a > $2", "y", 2),
            await tx.execute("DELETE FROM t WHERE a = $1", 1),
            await tx.execute("DELETE FROM t WHERE a = $1", 1),
            await tx.execute("INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING", 2),
        ]

    await engine.write(_insert, *range(5))
    assert await engine.write(change) == [2, 1, 0, 0]


async def test_a_snapshot_stays_as_it_is(engine: Engine) -> None:
    await engine.write(_insert, 1)
    async with engine.snapshot() as snapshot:
        await engine.write(_insert, 2)
        assert await snapshot.read(_all) == [1]
        assert await snapshot.read(_all) == [1]
        with pytest.raises(StoreError):
            await snapshot.read(_insert, 3)
    assert await engine.read(_all) == [1, 2]


@pytest.mark.long(keep=1)
async def test_an_inline_read_returns_the_same_as_a_read_and_writes_nothing(engine: Engine) -> None:
    await engine.write(_insert, 2, 1)
    assert await engine.read_inline(_all) == await engine.read(_all) == [1, 2]
    with pytest.raises(StoreError):
        await engine.read_inline(_insert, 3)
    assert await engine.read_inline(_all) == [1, 2]


async def test_an_inline_read_of_several_statements_sees_one_state(sqlite: SqliteEngine, tmp_path: Path) -> None:
    await sqlite.write(_insert, 1)
    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)

    async def twice(tx: Transaction) -> tuple[list[int], list[int]]:
        before = await _all(tx)
        (free,) = other.execute("SELECT COALESCE(MAX(a), 0) + 1 FROM t").fetchone()
        other.execute("INSERT INTO t (a, b) VALUES (?, 'x')", (free,))
        return before, await _all(tx)

    for _ in range(3):  # the first one finds out that there are several
        before, after = await sqlite.read_inline(twice)
        assert before == after
    other.close()
    assert len(await sqlite.read_inline(_all)) == 5


async def test_an_inline_read_of_one_row_leaves_no_state_open(sqlite: SqliteEngine, tmp_path: Path) -> None:
    await sqlite.write(_insert, 1, 2)

    async def first(tx: Transaction) -> int | None:
        row = await tx.fetchrow("SELECT a FROM t ORDER BY a")
        return row[0] if row else None

    assert await sqlite.read_inline(first) == 1
    await sqlite.write(_insert, 0)
    assert await sqlite.read_inline(first) == 0
    other = sqlite3.connect(tmp_path / "test.db", timeout=10, isolation_level=None)
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    other.close()


async def test_a_long_inline_read_runs_in_a_thread_and_the_next_one_inline(sqlite: SqliteEngine) -> None:
    threads: list[str] = []

    async def count(tx: Transaction, rows: int) -> int:
        threads.append(threading.current_thread().name)
        (row,) = await tx.fetch(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT count(*) FROM n"
        )
        number: int = row[0]
        return number

    for _ in range(3):
        threads.clear()
        assert await sqlite.read_inline(count, 1_000_000) == 1_000_000
        assert [name.partition("_")[0] for name in threads] == ["MainThread", "store-reader"]
    threads.clear()
    assert await sqlite.read_inline(count, 10) == 10
    assert threads[0] == "MainThread"


async def test_an_inline_read_waits_for_no_writer(sqlite: SqliteEngine, tmp_path: Path) -> None:
    await sqlite.write(_insert, 1)
    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t (a, b) VALUES (2, 'x')")
    assert await sqlite.read_inline(_all) == [1]
    other.execute("COMMIT")
    other.close()
    assert await sqlite.read_inline(_all) == [1, 2]


async def test_a_closed_database_says_that_it_is_closed(where: Where) -> None:
    engine = await open_engine(where)
    await engine.write(_create)
    await engine.close()
    for use in (engine.write, engine.read, engine.read_inline):
        with pytest.raises(StoreError, match="closed"):
            await use(_all)

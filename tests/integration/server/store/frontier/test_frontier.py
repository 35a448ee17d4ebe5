"""The frontier's costs and batches, where HTTP would hide them."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.sqlite.sqlite import SqliteEngine
from scrapy_ext.server.store.frontier import frontier as module
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from tests.support.stores import FRONTIER_TABLES

SLOT = Slot(1, "f", "0")


def requests(first: int, last: int, priority: int = 0, size: int = 0) -> list[QueuedRequest]:
    return [QueuedRequest(b"%d" % n, b'["%d","%s"]' % (n, b"x" * size), None, priority) for n in range(first, last)]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_reading_and_adding_cost_the_same_however_long_the_queue(store: Store) -> None:
    """Counted in steps of SQLite's virtual machine: that no clock decides."""
    steps = []
    for length in (1_000, 30_000):
        slot = Slot(1, "f", str(length))
        await store.frontier.add(slot, requests(0, length))
        half = await store.frontier.read(slot, length // 2)
        await store.frontier.delete_batches(slot, [batch.id for batch in half])
        steps.append(await _steps(store, slot))
    (short_read, short_add), (long_read, long_add) = steps
    assert short_read > 10  # that there is something to compare
    assert long_read <= short_read * 1.2
    assert long_add <= short_add * 1.2


async def _steps(store: Store, slot: Slot) -> tuple[int, int]:
    engine: Any = store._engine
    assert isinstance(engine, SqliteEngine)
    connection: sqlite3.Connection = engine._writer._connection
    counted: list[int] = []

    def step() -> int:
        counted.append(1)
        return 0

    async def cost(operation: Any) -> int:
        counted.clear()
        connection.set_progress_handler(step, 1)
        await operation
        connection.set_progress_handler(None, 1)
        return len(counted)

    read = await cost(engine.write(module.first_batches, slot, 100))  # by the connection that is watched
    # The filter takes one new fingerprint in some hundreds for a known one, which costs a search: seldom three times.
    adds = [await cost(store.frontier.add(slot, requests(first, first + 50))) for first in (10**6, 10**7, 10**8)]
    return read, min(adds)


async def test_a_batch_that_was_read_never_changes(store: Store) -> None:
    await store.frontier.add(SLOT, requests(0, 30))
    first = await store.frontier.read(SLOT, 1)
    await store.frontier.add(SLOT, requests(30, 60))
    await store.frontier.add(SLOT, requests(60, 90))
    assert await store.frontier.read(SLOT, 1) == first
    both = await store.frontier.read(SLOT, 1000)
    assert [batch.size for batch in both] == [30, 60]
    await store.frontier.delete_batches(SLOT, [first[0].id])
    assert await store.frontier.read(SLOT, 1000) == both[1:]


async def test_batches_of_large_requests_stay_small(store: Store) -> None:
    await store.frontier.add(SLOT, requests(0, 20, size=300_000))
    batches = await store.frontier.read(SLOT, 1000)
    assert [batch.size for batch in batches] == [3] * 6 + [2]


async def test_an_id_of_a_deleted_slot_names_nothing_in_its_successor(store: Store) -> None:
    await store.frontier.add(SLOT, requests(0, 5))
    old = await store.frontier.read(SLOT, 1)
    await store.frontier.delete_slot(SLOT)
    assert await store.frontier.add(SLOT, requests(0, 5)) == 5
    await store.frontier.delete_batches(SLOT, [old[0].id])
    assert [batch.size for batch in await store.frontier.read(SLOT, 1)] == [5]


async def test_a_deleted_slot_leaves_no_rows(store: Store, look: Any) -> None:
    await store.frontier.add(SLOT, requests(0, 12_000))
    await store.frontier.delete_slot(SLOT)
    await store.purge()
    for table in FRONTIER_TABLES:
        assert await look(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_counting_goes_on_where_it_stopped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNT_STEP", 2)
    for priority in (0, 1):
        await store.frontier.add(SLOT, requests(1000 * priority, 1000 * priority + 250, priority))
    parts, start = [], None
    while True:
        count = await store.frontier.count(SLOT, start)
        parts.append(count.count)
        start = count.nextstart
        if start is None:
            break
    assert parts == [200, 150, 150]

"""Number of records of a job over time, without reading them."""

from __future__ import annotations

from typing import Any

from scrapy_ext.server.store import Store
from tests.integration.server.store.records.test_records import KEY, packed
from tests.support.stores import Clock


async def write(store: Store, number: int) -> None:
    records: list[dict[str, Any]] = [{"n": n} for n in range(number)]
    await store.items.write(KEY, None, packed(records))


async def test_small_writes_that_share_a_chunk_are_distinguished(store: Store, clock: Clock) -> None:
    began, wanted = clock.now, []
    for number in range(1, 9):
        await write(store, 5)
        wanted.append((clock.now - began, 5 * number))
        clock.now += 1000
    assert [(ts - began, number) for ts, number in await store.items.progress(KEY, 100)] == wanted
    assert [number for _, number in await store.items.progress(KEY, 2)] == [20, 40]
    assert await store.requests.progress(KEY, 100) == []


async def test_of_many_chunks_some_are_looked_at_and_the_last_is_among_them(store: Store, clock: Clock) -> None:
    for _ in range(30):
        await write(store, 1000)
        clock.now += 1000
    found = await store.items.progress(KEY, 5)
    assert 5 <= len(found) <= 8
    assert found[-1] == (clock.now - 1000, 30_000)
    assert found == sorted(found)


async def test_a_clock_that_was_set_back_makes_no_record_come_before_others(store: Store, clock: Clock) -> None:
    for step in (0, 5000, -20_000, 1000):
        clock.now += step
        await write(store, 1000)
    times = [ts for ts, _ in await store.items.progress(KEY, 100)]
    assert times == sorted(times)

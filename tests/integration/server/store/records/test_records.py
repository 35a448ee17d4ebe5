"""Records of jobs: positions, overwriting, and stats that stay exact."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.records import segments as segments_module
from scrapy_ext.server.store.records import writes as record_writes
from scrapy_ext.server.store.records.chunks import ITEMS, MAX_BYTES, MAX_LINES, Packer, RecordChunk
from scrapy_ext.server.store.records.records import Span
from tests.support.stores import ENGINES

KEY = JobKey(1, 2, 3)


def packed(records: list[dict[str, Any]]) -> list[RecordChunk]:
    packer = Packer(ITEMS)
    chunks = packer.add([msgspec.json.encode(record) for record in records], records)
    return [chunk for chunk in (*chunks, packer.rest()) if chunk is not None]


#: Start and length of the chunks that the database has, in order.
CHUNKS = "SELECT start, records FROM record_chunks ORDER BY start"


async def stored(store: Store, key: JobKey = KEY) -> list[dict[str, Any]]:
    span = Span(key.project, key.spider, key.job)
    return [msgspec.json.decode(line) async for part in store.items.scan(span, (0, 0, 0)) for line in part.lines]


async def check_stats(store: Store, records: list[dict[str, Any]]) -> None:
    stats = await store.items.stats(KEY)
    assert stats.totals.input_values == len(records)
    assert stats.totals.input_bytes == sum(len(msgspec.msgpack.encode(record)) for record in records)
    assert stats.counts == Counter(name for record in records for name in record)


async def test_positions_and_stats_are_exact_whatever_is_overwritten(store: Store) -> None:
    chance = random.Random(4)
    expected: list[dict[str, Any]] = []
    for turn in range(40):
        start = chance.randint(0, len(expected))
        length = chance.choice([1, 3, MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 300])
        records = [{"turn": turn, f"field{chance.randint(0, 5)}": number} for number in range(length)]
        assert await store.items.write(KEY, start, packed(records)) == start
        expected[start : start + length] = records
    assert await stored(store) == expected
    await check_stats(store, expected)
    for start in chance.sample(range(len(expected)), 20):
        parts = [part async for part in store.items.scan(Span(1), (2, 3, start), 30)]
        found = [msgspec.json.decode(line) for part in parts for line in part.lines]
        assert found == expected[start : start + 30]
        assert parts[0].start == start


@pytest.mark.parametrize("padding", [0, 700])
async def test_records_that_are_read_one_by_one_are_the_stored_ones(store: Store, padding: int) -> None:
    chance = random.Random(1)

    async def write(start: int, text: str, number: int) -> None:
        pad = "".join(chance.choices("0123456789abcdef", k=padding))
        records = [{"n": start + n, "text": text, "pad": f"{pad}{n}"} for n in range(number)]
        await store.items.write(KEY, start, packed(records))

    async def read(number: int) -> list[tuple[int, str]]:
        found = [msgspec.json.decode(line) for part in await store.items.at(KEY, [number]) for line in part.lines]
        return [(record["n"], record["text"]) for record in found]

    await write(0, "first", 2 * MAX_LINES + 10)
    for number in chance.choices(range(2 * MAX_LINES + 10), k=100):
        assert await read(number) == [(number, "first")]
    await write(500, "second", 3)
    for number in (501, 499, 500, 502, 503, 501, 2 * MAX_LINES, 501):
        assert await read(number) == [(number, "second" if 500 <= number < 503 else "first")]
    for _ in range(3):
        assert await read(2 * MAX_LINES + 10) == []
    await write(2 * MAX_LINES + 10, "third", 1)
    assert await read(2 * MAX_LINES + 10) == [(2 * MAX_LINES + 10, "third")]


async def test_sending_again_changes_nothing_not_even_the_time(store: Store, clock: Any) -> None:
    records = [{"n": n} for n in range(2500)]
    await store.items.write(KEY, 0, packed(records))
    clock.now += 1000
    await store.items.write(KEY, 0, packed(records))
    assert await stored(store) == records
    await check_stats(store, records)
    parts = [part async for part in store.items.scan(Span(1), (0, 0, 0))]
    assert {part.ts for part in parts} == {clock.now - 1000}


async def test_a_gap_is_refused_with_the_place_to_go_on(store: Store) -> None:
    await store.items.write(KEY, 0, packed([{"a": 1}]))
    with pytest.raises(ContractError, match=r"the job has 1 records.*index 1 on"):
        await store.items.write(KEY, 2, packed([{"a": 1}]))
    assert len(await stored(store)) == 1


async def test_what_the_first_index_leaves_out_can_be_filled_in_any_order(store: Store, clock: Any) -> None:
    """Against a plain mapping of indexes to records: random writes that begin anywhere up to the end."""
    chance = random.Random(7)
    assert await store.items.write(KEY, 3000, packed([{"n": n} for n in range(5)]), may_skip=True) == 3000
    expected = {3000 + n: {"n": n} for n in range(5)}
    began = clock.now
    for turn in range(40):
        start = chance.choice([None, chance.randint(0, max(expected) + 1), chance.randint(2900, 3100)])
        start = start if start is None else min(start, max(expected) + 1)
        records = [{"turn": turn, f"field{chance.randint(0, 3)}": n} for n in range(chance.choice([1, 2, 40, 1200]))]
        clock.now += 1
        first = await store.items.write(KEY, start, packed(records))
        assert first == (max(expected) + 1 if start is None else start)
        expected.update(enumerate(records, first))
        await store.items.write(KEY, first, packed(records))
        assert await store.items.indexes(KEY) == range(min(expected), max(expected) + 1)
    parts = [part async for part in store.items.scan(Span(1), (0, 0, 0))]
    found = {part.start + at: msgspec.json.decode(line) for part in parts for at, line in enumerate(part.lines)}
    assert found == expected
    await check_stats(store, [*expected.values()])
    for index in chance.sample(range(max(expected) + 2), 60):
        assert [msgspec.json.decode(part.lines[0]) for part in await store.items.at(KEY, [index])] == (
            [expected[index]] if index in expected else []
        )
    growth = await store.items.progress(KEY, 10)
    assert growth[-1][1] == len(expected)
    assert all(began <= when <= clock.now for when, _ in growth)


async def test_records_that_are_the_same_at_other_places_are_not_taken_for_those_sent_again(store: Store) -> None:
    await store.items.write(KEY, 8, packed([{"a": 1}] * 12), may_skip=True)
    await store.items.write(KEY, 0, packed([{"a": 1}] * 5))
    await store.items.write(KEY, 3, packed([{"a": 1}] * 7))
    await check_stats(store, [{"a": 1}] * 20)
    assert await store.items.indexes(KEY) == range(20)


async def test_progress_counts_records_and_not_the_indexes_before_them(store: Store, clock: Any) -> None:
    for number in range(4):
        await store.items.write(KEY, None if number else 500, packed([{"n": n} for n in range(1000)]), may_skip=True)
        clock.now += 10
    assert [number for _, number in await store.items.progress(KEY, 4)] == [1000, 2000, 3000, 4000]


async def test_without_a_start_records_go_to_the_end(store: Store) -> None:
    assert [await store.items.write(KEY, None, packed([{"a": n}, {}])) for n in range(3)] == [0, 2, 4]


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_many_tiny_writes_are_read_from_anywhere_with_their_times(store: Store, clock: Any) -> None:
    began = clock.now
    for n in range(600):
        await store.items.write(KEY, n, packed([{"n": n}]))
        clock.now += n % 2  # so that neighbours have the same time
    for start in (0, 1, 8, 249, 250, 251, 500, 599, 600):
        parts = [part async for part in store.items.scan(Span(1, 2), (2, 3, start))]
        found = [(part.start + place, part.ts, line) for part in parts for place, line in enumerate(part.lines)]
        assert found == [(n, began + n // 2, b'{"n":%d}' % n) for n in range(start, 600)]
        (one,) = await store.items.at(KEY, [min(start, 599)])
        assert (one.start, one.ts) == (min(start, 599), began + min(start, 599) // 2)


@pytest.mark.parametrize("where", ENGINES, indirect=True)
@pytest.mark.parametrize(("length", "writes"), [(1, 1100), (7, 300), (400, 12), (999, 5)])
async def test_small_writes_leave_few_chunks(store: Store, look: Any, length: int, writes: int) -> None:
    records = [{"n": n} for n in range(length * writes)]
    for start in range(0, len(records), length):
        await store.items.write(KEY, None, packed(records[start : start + length]))
    assert await stored(store) == records
    await check_stats(store, records)
    chunks = await look(CHUNKS)
    assert [start for start, _ in chunks] == [sum(n for _, n in chunks[:place]) for place in range(len(chunks))]
    assert sum(1 for _, n in chunks if n < MAX_LINES // 2) <= 10


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_a_record_is_packed_again_few_times(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    packed_again = 0

    def counted(segments: list[segments_module.Segment]) -> segments_module.StoredChunk:
        nonlocal packed_again
        packed_again += segments_module.length(segments)
        return segments_module.pack_segments(segments)

    monkeypatch.setattr(record_writes, "pack_segments", counted)
    for n in range(1000):
        await store.items.write(KEY, n, packed([{"n": n}]))
    assert packed_again <= 11 * 1000


async def test_small_writes_sent_again_change_nothing_though_they_were_merged(store: Store, clock: Any) -> None:
    records = [{"n": n} for n in range(500)]
    for start in range(0, 500, 20):
        await store.items.write(KEY, start, packed(records[start : start + 20]))
        clock.now += 1
    before = [(part.start, part.ts, part.lines) async for part in store.items.scan(Span(1), (0, 0, 0))]
    for start in range(0, 500, 20):
        await store.items.write(KEY, start, packed(records[start : start + 20]))
    await store.items.write(KEY, 0, packed(records))
    after = [(part.start, part.ts, part.lines) async for part in store.items.scan(Span(1), (0, 0, 0))]
    assert after == before
    await check_stats(store, records)


async def test_large_records_stay_in_chunks_of_bounded_size(store: Store, look: Any) -> None:
    text = "".join(random.Random(1).choices("0123456789abcdef", k=MAX_BYTES // 3))
    records = [{"n": n, "text": text} for n in range(7)]
    for n, record in enumerate(records):
        await store.items.write(KEY, n, packed([record]))
    assert await stored(store) == records
    assert all(n <= 2 for _, n in await look(CHUNKS))


@pytest.mark.parametrize("times", [b"", b"\xc1", b"\x91\x92\x01\xa1\xff", msgspec.msgpack.encode([(1, 0), (5, 1)])])
def test_damaged_times_of_a_chunk_are_reported(times: bytes) -> None:
    (chunk,) = packed([{"n": 1}, {"n": 2}])
    with pytest.raises(StoreError, match="damaged"):
        segments_module.unpack_segments(1, times, chunk.body)


async def test_a_damaged_chunk_is_reported_and_the_others_are_read(store: Store) -> None:
    async def damage(tx: Any) -> None:
        await tx.execute("UPDATE record_chunks SET body = $1 WHERE start = $2", b"\0", MAX_LINES)

    await store.items.write(KEY, 0, packed([{"n": n} for n in range(2 * MAX_LINES)]))
    await store._engine.write(damage)
    assert (await store.items.at(KEY, [0]))[0].lines == [b'{"n":0}']
    with pytest.raises(StoreError, match="damaged"):
        await store.items.at(KEY, [MAX_LINES])


async def test_a_span_stays_within_its_project_spider_and_job(store: Store) -> None:
    keys = [JobKey(p, s, j) for p in (1, 2) for s in (1, 2) for j in (1, 2)]
    for key in keys:
        await store.items.write(key, 0, packed([{"key": str(key)}]))
    for span in (Span(1), Span(1, 2), Span(2, 1, 1), Span(3)):
        parts = [part async for part in store.items.scan(span, (0, 0, 0))]
        assert [part.key for part in parts] == [
            key for key in keys if key[: len([x for x in span if x])] == tuple(x for x in span if x)
        ]


def test_chunks_are_bounded_in_lines_and_bytes() -> None:
    assert [chunk.records for chunk in packed([{"n": n} for n in range(2 * MAX_LINES + 100)])] == [
        MAX_LINES,
        MAX_LINES,
        100,
    ]
    large = [{"text": "x" * (MAX_BYTES // 3)} for _ in range(6)]
    assert [chunk.records for chunk in packed(large)] == [2, 2, 2]

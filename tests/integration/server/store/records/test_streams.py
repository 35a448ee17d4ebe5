"""Streams: each record of a writer has one place in the job, however often and by whom it is written."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import StreamPlaces
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.records import streams
from scrapy_ext.server.store.records.chunks import ITEMS, MAX_LINES, REQUESTS, Packer, RecordChunk, RecordKind
from scrapy_ext.server.store.records.records import RecordStore, Span
from scrapy_ext.server.store.records.removal import remove_records
from scrapy_ext.server.store.removals import purge
from tests.support.attempts import add_workers, end_worker
from tests.support.stores import ENGINES

KEY = JobKey(1, 2, 3)
Record = dict[str, Any]


def packed(records: Sequence[Record], kind: RecordKind = ITEMS) -> list[RecordChunk]:
    packer = Packer(kind)
    chunks = packer.add([msgspec.json.encode(record) for record in records], records)
    return [chunk for chunk in (*chunks, packer.rest()) if chunk is not None]


def items(writer: int, start: int, number: int) -> list[Record]:
    return [{"writer": writer, "n": n} for n in range(start, start + number)]


async def write(
    store: Store, writer: int, start: int, records: Sequence[Record], *, caller: int | None = None
) -> StreamPlaces:
    attempt = Attempt(KEY, caller or writer)
    return await store.items.write_stream(KEY, writer, start, packed(records), attempt=attempt)


async def stored(records: RecordStore) -> list[Record]:
    parts = [part async for part in records.scan(Span(*KEY), (0, 0, 0))]
    return [msgspec.json.decode(line) for part in parts for line in part.lines]


@pytest.fixture
async def store(store: Store) -> Store:
    """A store with a job of four workers, attempts 1 to 4, and one whose attempt 5 is over."""
    await add_workers(store, KEY, range(1, 6))
    await end_worker(store, KEY, 5)
    return store


async def test_the_records_of_several_writers_have_no_gaps_and_keep_their_places(store: Store) -> None:
    """Against plain lists, with writes that are repeated from before they began and with more behind."""
    chance = random.Random(3)
    job: list[Record] = []
    streams: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for turn in range(60):
        writer = chance.choice([*streams])
        places = streams[writer]
        start = max(len(places) - chance.choice([0, 0, 0, 3, 700, 2500]), 0)
        number = chance.choice([1, 4, MAX_LINES - 1, MAX_LINES + 1])
        records = [{f"field{chance.randint(0, 5)}": turn, "n": n} for n in range(start, start + number)]
        added = max(start + number - len(places), 0)
        places += range(len(job), len(job) + added)
        job += [{}] * added
        for place, record in zip(places[start:], records, strict=False):
            job[place] = record
        answer = await write(store, writer, start, records)
        assert answer.places[0] == (start, places[start])
        assert all(places[index] == place for index, place in answer.places)
    assert await stored(store.items) == job
    stats = await store.items.stats(KEY)
    assert stats.totals.input_values == len(job)
    assert stats.totals.input_bytes == sum(len(msgspec.msgpack.encode(record)) for record in job)
    assert stats.counts == Counter(name for record in job for name in record)


async def test_the_same_batch_is_stored_once_at_the_time_of_its_first_write(store: Store, clock: Any) -> None:
    first = [await write(store, 1, 0, items(1, 0, 5)), await write(store, 2, 0, items(2, 0, 3))]
    first.append(await write(store, 1, 5, items(1, 5, 2)))
    began, clock.now = clock.now, clock.now + 1000
    again = [await write(store, 1, 0, items(1, 0, 5)), await write(store, 2, 0, items(2, 0, 3))]
    again.append(await write(store, 1, 5, items(1, 5, 2)))
    assert [answer.places for answer in first] == [[(0, 0)], [(0, 5)], [(5, 8)]]
    assert again == first
    assert (await write(store, 1, 0, items(1, 0, 7))).places == [(0, 0), (5, 8)]  # in one write
    assert await stored(store.items) == [*items(1, 0, 5), *items(2, 0, 3), *items(1, 5, 2)]
    assert {part.ts async for part in store.items.scan(Span(*KEY), (0, 0, 0))} == {began}


async def test_a_batch_that_overlaps_is_stored_from_the_end_of_its_stream_on(store: Store) -> None:
    await write(store, 1, 0, items(1, 0, 5))
    await write(store, 2, 0, items(2, 0, 2))
    assert (await write(store, 1, 3, items(1, 3, 6))).places == [(3, 3), (5, 7)]
    assert await stored(store.items) == [*items(1, 0, 5), *items(2, 0, 2), *items(1, 5, 4)]


async def test_a_stream_goes_on_behind_records_without_one(store: Store) -> None:
    await store.items.write(KEY, 30, packed(items(0, 0, 2)), may_skip=True)
    assert (await write(store, 1, 0, items(1, 0, 2))).places == [(0, 32)]
    assert await store.items.write(KEY, None, packed(items(0, 2, 1))) == 34
    assert (await write(store, 1, 2, items(1, 2, 2))).places == [(2, 35)]
    assert await stored(store.items) == [*items(0, 0, 2), *items(1, 0, 2), *items(0, 2, 1), *items(1, 2, 2)]


@pytest.mark.parametrize("before", [0, 3])
async def test_a_gap_in_a_stream_is_refused_with_the_index_to_go_on(store: Store, before: int) -> None:
    await write(store, 2, 0, items(2, 0, 9))
    if before:
        await write(store, 1, 0, items(1, 0, before))
    with pytest.raises(ContractError, match=rf"writer 1 has {before} records.*index {before} on") as caught:
        await write(store, 1, before + 1, items(1, 0, 1))
    assert caught.value.status == 400
    assert len(await stored(store.items)) == 9 + before


async def test_a_successor_stores_what_a_dead_worker_has_prepared_once(store: Store) -> None:
    await write(store, 1, 0, items(1, 0, 4))
    await write(store, 2, 0, items(2, 0, 1))
    await end_worker(store, KEY, 1)
    with pytest.raises(ContractError, match=ATTEMPT_OVER):
        await write(store, 1, 4, items(1, 4, 1))
    for successor in (3, 2):
        assert (await write(store, 1, 2, items(1, 2, 4), caller=successor)).places == [(2, 2), (4, 5)]
    assert await stored(store.items) == [*items(1, 0, 4), *items(2, 0, 1), *items(1, 4, 2)]


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_the_last_segments_of_a_stream_are_kept_and_earlier_records_stay(store: Store, look: Any) -> None:
    turns = 70
    for turn in range(turns):
        for writer in (1, 2):
            await write(store, writer, 2 * turn, items(writer, 2 * turn, 2))
    before = await stored(store.items)
    assert await look("SELECT count(*), min(start) FROM record_streams GROUP BY writer") == [(64, 12)] * 2
    await end_worker(store, KEY, 1)
    for start, number, places in (
        (0, 4, []),
        (11, 1, []),
        (10, 4, [(12, 24)]),
        (11, 4, [(12, 24), (14, 28)]),
        (138, 2, [(138, 276)]),
    ):
        answer = await write(store, 1, start, items(1, start, number), caller=2)
        assert (answer.places, await stored(store.items)) == (places, before)
    answer = await write(store, 1, 0, items(1, 0, 141), caller=2)
    assert (answer.places[0], answer.places[-1]) == ((12, 24), (140, 280))
    assert await stored(store.items) == [*before, *items(1, 140, 1)]


#: Attempt that calls, its job, and the writer; whether it may.
WRITERS: dict[str, tuple[int | None, JobKey, int, bool]] = {
    "its own stream": (2, KEY, 2, True),
    "that of an attempt that is over": (2, KEY, 5, True),
    "that of a live attempt": (2, KEY, 3, False),
    "that of an attempt that has not begun": (2, KEY, 6, False),
    "a stream of another job": (1, JobKey(1, 2, 4), 2, False),
    "a stream of its number in another job": (1, JobKey(1, 2, 4), 1, False),
    "without an attempt": (None, KEY, 5, False),
}


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_an_attempt_writes_to_its_stream_and_to_those_of_dead_workers(store: Store) -> None:
    await add_workers(store, JobKey(1, 2, 4), [1])
    for what, (caller, job, writer, allowed) in WRITERS.items():
        attempt = None if caller is None else Attempt(job, caller)
        writing = store.items.write_stream(KEY, writer, 0, packed([{"a": 1}]), attempt=attempt)
        if allowed:
            await writing
            continue
        with pytest.raises(ContractError, match="writer: is") as caught:
            await writing
        assert caught.value.status == 403, what


async def test_an_attempt_of_a_job_without_a_group_writes_to_the_streams_of_earlier_ones(
    store: Store, change: Any
) -> None:
    await change("DELETE FROM worker_groups")
    for number in (1, 2, 4):
        await end_worker(store, KEY, number)
    await write(store, 2, 0, items(2, 0, 1), caller=3)
    with pytest.raises(ContractError, match="writer: is 4"):
        await write(store, 4, 0, items(4, 0, 1), caller=3)


# ── parents ──


def request(number: int, parent: int | str | None = None) -> Record:
    fields = {"time": number, "method": "GET", "url": "http://a", "status": 200, "duration": 1, "rs": 1}
    return fields if parent is None else {**fields, "parent": parent}


async def send(store: Store, writer: int, start: int, records: Sequence[Record]) -> StreamPlaces:
    chunks = packed(records, REQUESTS)
    return await store.requests.write_stream(KEY, writer, start, chunks, attempt=Attempt(KEY, writer))


async def test_parents_that_are_named_by_stream_are_stored_as_indexes_of_the_job(store: Store) -> None:
    await send(store, 1, 0, [request(0), request(1), request(2, "1:0")])
    await send(store, 2, 0, [request(3, "1:1"), request(4, "2:0"), request(5, "2:4"), request(6, 2)])
    answer = await send(store, 1, 3, [request(7, "2:2"), request(8, "1:3"), request(9, "1:4")])
    assert answer == StreamPlaces([(3, 7)], 0)
    expected = {2: 0, 3: 1, 4: 3, 6: 2, 7: 5, 8: 7, 9: 8}
    assert await stored(store.requests) == [request(n, expected.get(n)) for n in range(10)]
    assert (await store.requests.stats(KEY)).counts["parent"] == len(expected)


async def test_a_record_whose_parent_is_not_stored_has_none_until_it_is_sent_again(store: Store) -> None:
    children = [request(0, "2:0"), request(1, "2:1"), request(2, "99:0"), request(3)]
    assert (await send(store, 1, 0, children)).parents_unknown == 3
    assert await stored(store.requests) == [request(n) for n in range(4)]
    await send(store, 2, 0, [request(4)])
    assert await send(store, 1, 0, children) == StreamPlaces([(0, 0)], 2)
    assert await stored(store.requests) == [request(0, 4), *(request(n) for n in range(1, 5))]
    stats = await store.requests.stats(KEY)
    assert (stats.counts["parent"], stats.totals.input_values) == (1, 5)
    assert stats.totals.input_bytes == sum(map(len, map(msgspec.msgpack.encode, await stored(store.requests))))


async def test_many_parents_in_many_segments_are_found(store: Store) -> None:
    for n in range(40):
        await send(store, 1 + n % 2, n // 2 * 3, [request(n) for _ in range(3)])
    named = [(1 + n % 2, n // 2) for n in range(120)]
    children = [request(n, f"{writer}:{index}") for n, (writer, index) in enumerate(named)]
    assert (await send(store, 3, 0, [*children, *children] * 5)).parents_unknown == 0
    for place, record in enumerate((await stored(store.requests))[120:]):
        writer, index = named[place % 120]
        assert record["parent"] == (2 * (index // 3) + writer - 1) * 3 + index % 3


async def test_all_segments_of_request_records_are_kept_the_older_ones_packed(
    store: Store, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_PLAIN", 5)
    monkeypatch.setattr(streams, "_PACKED", 8)
    # The second writer has one to three records in each turn.
    ends = {1: 0, 2: 0}
    places: dict[tuple[int, int], int] = {}
    for turn in range(60):
        for writer, number in ((1, 1), (2, 1 + turn % 3)):
            first = len(places)
            await send(store, writer, ends[writer], [request(first + n) for n in range(number)])
            places |= {(writer, ends[writer] + n): first + n for n in range(number)}
            ends[writer] += number
    rows = "SELECT count(*), count(packed) FROM record_streams GROUP BY writer"
    assert await look(rows) == [(60 - 6 * 7, 6)] * 2
    children = [request(n, f"{writer}:{index}") for n, (writer, index) in enumerate(places)]
    children += [request(0, f"1:{ends[1]}"), request(0, f"2:{ends[2]}")]
    for first in range(0, len(children), 50):
        answer = await send(store, 3, first, children[first : first + 50])
        assert answer.parents_unknown == 2 * (first + 50 > len(places))
    found = [record.get("parent") for record in (await stored(store.requests))[len(places) :]]
    assert found == [*places.values(), None, None]
    again = await send(store, 2, 3, [request(places[2, 3 + n]) for n in range(40)])
    spread = [
        place + n
        for (start, place), end in zip(again.places, [*(s for s, _ in again.places[1:]), 43], strict=True)
        for n in range(end - start)
    ]
    assert spread == [places[2, 3 + n] for n in range(40)]


async def test_only_a_record_with_a_named_parent_is_rebuilt(store: Store) -> None:
    kept = b'{ "time":1,"url":"a" , "status":200,"duration":1,"rs":1,"extra":1.50,"parent":0}'
    named = b'{"time":1,"url":"\\u0061","status":200,"parent":"1:0","duration":1,"rs":12345678901234567890123}'
    packer = Packer(REQUESTS)
    packer.add([kept, named], [msgspec.json.decode(line) for line in (kept, named)])
    chunk = packer.rest()
    assert chunk is not None
    await store.requests.write_stream(KEY, 1, 0, [chunk], attempt=Attempt(KEY, 1))
    (part,) = [part async for part in store.requests.scan(Span(*KEY), (0, 0, 0))]
    assert part.lines == [kept, named.replace(b'"1:0"', b"0")]


# ── removal, and several writers at once ──


@pytest.mark.parametrize("where", ENGINES, indirect=True)
async def test_removed_records_get_no_further_ones(store: Store, look: Any) -> None:
    await write(store, 1, 0, items(1, 0, 3))
    await send(store, 1, 0, [request(0)])

    async def is_removed(start: int) -> bool:
        with pytest.raises(ContractError) as caught:
            await write(store, 1, start, items(1, start, 1))
        return caught.value.status == 410

    await store._engine.write(remove_records, KEY, ["items"], 1)
    assert await is_removed(0) and await is_removed(3)  # noqa: PT018
    assert (await send(store, 1, 1, [request(1, "1:0")])).parents_unknown == 0
    assert await store.jobs.delete(KEY.project, [KEY], "someone") == 1
    assert await is_removed(3)
    await purge(store._engine)
    assert await look("SELECT * FROM record_streams") == []


async def test_writers_at_once_do_not_wait_for_each_other_in_a_circle(store: Store, where: Any) -> None:
    """Each call is made twice at once, as after a lost answer; half of the writers use another store."""
    other = await Store.open(where)
    length, batch, writers = 60, 7, (1, 2, 3, 4)

    async def crawl(store: Store, writer: int) -> None:
        for start in range(0, length, batch):
            number = min(batch, length - start)
            sent = [request(n, f"{writer % 4 + 1}:{n}") for n in range(start, start + number)]
            await asyncio.gather(
                *(write(store, writer, start, items(writer, start, number)) for _ in range(2)),
                *(send(store, writer, start, sent) for _ in range(2)),
            )

    try:
        await asyncio.gather(*(crawl((store, other)[writer % 2], writer) for writer in writers))
    finally:
        await other.close()
    found = await stored(store.items)
    assert len(found) == length * len(writers)
    for writer in writers:
        assert [record for record in found if record["writer"] == writer] == items(writer, 0, length)
    assert (await store.requests.stats(KEY)).totals.input_values == length * len(writers)

"""Several processes on one database: two stores, each with connections of its own, that do everything at once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.collections import EXPIRY_MS, CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.collections.selections import Collection, RecordSelection, prefix_range
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.records.chunks import ITEMS, RecordChunk
from scrapy_ext.server.store.records.records import Span
from tests.support.packing import pack_chunk
from tests.support.stores import FRONTIER_TABLES, Where

EVERYTHING = RecordSelection((prefix_range(b""),))


@pytest.fixture
async def stores(where: Where, clock: Any, look: Any) -> AsyncIterator[list[Store]]:
    """Two, and afterwards it is looked whether two of their transactions have ever waited for each other."""
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = await look(deadlocks) if isinstance(where, DatabaseUrl) else None
    both = [await Store.open(where, clock) for _ in range(2)]
    yield both
    for store in both:
        await store.close()
    if before is not None:
        assert await look(deadlocks) == before


def chunk(*records: dict[str, Any]) -> RecordChunk:
    return pack_chunk(ITEMS, [msgspec.json.encode(record) for record in records], records)


async def test_the_count_of_new_requests_is_exact_and_none_is_queued_twice(stores: list[Store]) -> None:
    slot = Slot(1, "f", "0")

    async def add(worker: int) -> int:
        new, chance = 0, random.Random(worker)
        for _ in range(8):
            numbers = chance.sample(range(400), 60)
            new += await stores[worker % 2].frontier.add(
                slot, [QueuedRequest(b"%d" % n, b'["%d",0]' % n, None, n % 3) for n in numbers]
            )
        return new

    async def consume(worker: int) -> list[str]:
        seen: list[str] = []
        for _ in range(12):
            for batch in await stores[worker % 2].frontier.read(slot, 40):
                pairs = msgspec.json.decode(b"[%s]" % batch.requests)
                assert len(pairs) == batch.size
                again = [
                    each for each in await stores[worker % 2 - 1].frontier.read(slot, 10_000) if each.id == batch.id
                ]
                assert again == [batch]  # an ID stands for the same requests for ever
                await stores[worker % 2 - 1].frontier.delete_batches(slot, [batch.id])
                seen += [fp for fp, _ in pairs]
        return seen

    *new, seen = await asyncio.gather(*map(add, range(6)), consume(0))
    rest = await stores[0].frontier.read(slot, 10_000)
    seen += [fp for batch in rest for fp, _ in msgspec.json.decode(b"[%s]" % batch.requests)]
    known = [fp async for page in stores[1].frontier.fingerprints(slot) for fp in page]
    assert sum(new) == len(known)
    assert sorted(seen) == sorted(fp.decode() for fp in known)


async def test_slots_that_come_and_go_keep_no_rows(stores: list[Store], look: Any) -> None:
    slot = Slot(1, "f", "0")

    async def add(worker: int) -> None:
        for n in range(15):
            await stores[worker % 2].frontier.add(slot, [QueuedRequest(b"%d" % n, b'["",0]', None, 0)])

    async def remove(worker: int) -> None:
        for _ in range(8):
            await stores[worker].frontier.delete_slot(slot)
            await stores[worker].purge()

    await asyncio.gather(*map(add, range(4)), remove(0), remove(1))
    await asyncio.gather(*(store.frontier.delete_slot(slot) for store in stores))
    await asyncio.gather(*(store.purge() for store in stores))
    for table in FRONTIER_TABLES:
        assert await look(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_items_that_are_added_at_the_end_have_places_of_their_own(stores: list[Store]) -> None:
    key = JobKey(1, 1, 1)

    async def append(worker: int) -> list[int]:
        return [
            start + place
            for n in range(10)
            for start in [await stores[worker % 2].items.write(key, None, [chunk({"w": worker, f"n{n}": 1}, {})])]
            for place in range(2)
        ]

    places = [place for each in await asyncio.gather(*map(append, range(6))) for place in each]
    assert sorted(places) == list(range(120))
    stats = await stores[0].items.stats(key)
    assert (stats.totals.input_values, stats.counts["w"]) == (120, 60)
    lines = [line async for part in stores[1].items.scan(Span(1), (0, 0, 0)) for line in part.lines]
    assert Counter(name for line in lines for name in msgspec.json.decode(line)) == stats.counts


async def test_the_same_items_sent_to_both_are_stored_once(stores: list[Store]) -> None:
    key = JobKey(1, 1, 1)

    async def write(worker: int) -> None:
        for start in range(0, 40, 2):
            # not cut alike: what overlaps is replaced
            length = 2 + worker % 2 if start < 38 else 2
            records = [{"n": n, f"f{n % 4}": n} for n in range(start, start + length)]
            await stores[worker % 2].items.write(key, start, [chunk(*records)])

    await asyncio.gather(*map(write, range(4)))
    lines = [line async for part in stores[0].items.scan(Span(1), (0, 0, 0)) for line in part.lines]
    records = [msgspec.json.decode(line) for line in lines]
    assert [record["n"] for record in records] == list(range(40))
    stats = await stores[1].items.stats(key)
    assert stats.counts == Counter(name for record in records for name in record)
    assert stats.totals.input_bytes == sum(len(msgspec.msgpack.encode(record)) for record in records)


async def test_of_two_that_rename_a_collection_one_does_and_the_other_finds_none(stores: list[Store]) -> None:
    for turn in range(10):
        which = Collection(turn, CollectionType.STORE, "old")
        await stores[0].collections.write(which, [(b"k", b"1")])
        done = await asyncio.gather(*(store.collections.rename(turn, "old", "new") for store in stores * 2))
        assert sorted(done) == [False, False, False, True]


async def add_job(store: Store, spider: str, state: JobState, unique_key: str | None = None) -> JobKey:
    (added,) = await store.jobs.add(1, [NewJob(spider, state, {}, unique_key)], "x")
    if isinstance(added, DuplicateJobError):
        raise added
    return added


async def test_jobs_have_numbers_without_gaps_and_no_doubles(stores: list[Store]) -> None:
    async def add(worker: int) -> tuple[list[JobKey], int]:
        keys, refused = [], 0
        for n in range(10):
            spider = f"s{n % 3}"
            try:
                keys.append(await add_job(stores[worker % 2], spider, JobState.PENDING))
                keys.append(await add_job(stores[worker % 2], spider, JobState.PENDING, f"k{n}"))
            except DuplicateJobError:
                refused += 1
        return keys, refused

    outcomes = await asyncio.gather(*map(add, range(6)))
    keys = [key for found, _ in outcomes for key in found]
    assert sum(refused for _, refused in outcomes) == 50
    for spider in (1, 2, 3):
        numbers = sorted(key.job for key in keys if key.spider == spider)
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(keys) == 70
    assert sorted(spider.name for spider in await stores[0].spiders.listed(1)) == ["s0", "s1", "s2"]


async def test_a_unique_job_can_be_added_while_its_predecessor_ends(stores: list[Store]) -> None:
    async def run(worker: int) -> int:
        ended = 0
        for _ in range(12):
            try:
                key = await add_job(stores[worker % 2], "s", JobState.RUNNING, "k")
            except DuplicateJobError:
                continue
            assert await stores[worker % 2 - 1].jobs.change(1, [Change(key, JobState.FINISHED, {})], "x") == [
                JobState.RUNNING
            ]
            ended += 1
        return ended

    ended = sum(await asyncio.gather(*map(run, range(6))))
    assert ended > 1
    assert await stores[0].jobs.count(1, JobFilter(states=(JobState.FINISHED,))) == ended
    assert await stores[1].jobs.count(1, JobFilter(states=(JobState.RUNNING,))) == 0


async def test_no_field_and_no_tag_of_a_job_is_lost(stores: list[Store]) -> None:
    keys = [await add_job(stores[0], "s", JobState.RUNNING) for _ in range(4)]

    async def change(worker: int) -> None:
        chance, store = random.Random(worker), stores[worker % 2]
        for n in range(8):
            mine = chance.sample(keys, 4)
            await store.jobs.change(1, [Change(key, None, {f"c{worker}-{n}": 1}) for key in mine], "x")
            await store.jobs.merge(mine[0], {f"m{worker}-{n}": 1})
            await store.jobs.tag(mine, [f"t{worker}-{n}"], [])

    await asyncio.gather(*map(change, range(4)))
    jobs = await stores[1].jobs.listed(1, JobFilter(keys=tuple(keys)), JobPage(10))
    assert len(jobs) == 4
    for job in jobs:
        names = {f"c{worker}-{n}" for worker in range(4) for n in range(8)}
        assert names <= job.metadata.keys()
        assert len(job.metadata["tags"]) == 32
    assert sum(name.startswith("m") for job in jobs for name in job.metadata) == 32
    assert await stores[0].jobs.count(1, JobFilter(has_tags=("t3-7",))) == 4


async def test_of_several_that_end_a_job_one_does_it_and_it_is_reported_once(stores: list[Store]) -> None:
    keys = [await add_job(stores[0], "s", JobState.RUNNING) for _ in range(10)]

    async def end(worker: int) -> list[JobState | None]:
        mine = random.Random(worker).sample(keys, 10)
        was = await stores[worker % 2].jobs.change(1, [Change(key, JobState.FINISHED, {}) for key in mine], str(worker))
        return [state for state in was if state is JobState.RUNNING]

    assert sum(map(len, await asyncio.gather(*map(end, range(4))))) == 10
    messages = [message async for page in stores[1].activity.scan(1) for message in page]
    events = Counter(msgspec.json.decode(message.event)["event"] for message in messages)
    assert events == {"job:started": 10, "job:completed": 10}
    assert await stores[0].jobs.delete(1, keys, "x") == 10
    assert await stores[1].jobs.delete(1, keys, "x") == 0


async def test_a_collection_is_made_once_and_has_what_all_have_written(stores: list[Store], clock: Any) -> None:
    async def write(worker: int, which: Collection) -> None:
        keys = [b"%03d" % n for n in range(60)]
        random.Random(worker).shuffle(keys)
        for n in range(6):
            await stores[worker % 2].collections.write(which, [(key, b"%d" % n) for key in keys[n * 5 : n * 5 + 40]])
            clock.now += EXPIRY_MS // 3  # some expire meanwhile, and are swept while others write them
            await stores[worker % 2].collections.delete_keys(which, keys[:2] if which.type.expires else [b"nothing"])

    for kind in CollectionType:
        which = Collection(1, kind, "c")
        await asyncio.gather(*(write(worker, which) for worker in range(4)))
        if not kind.expires:
            found = [record.key async for page in stores[0].collections.scan(which, EVERYTHING) for record in page]
            assert found == sorted(found)
            assert len(found) == len(set(found)) == 60
    assert len(await stores[1].collections.names(1)) == 4


async def test_collections_that_are_renamed_and_dropped_leave_no_rows_behind(stores: list[Store], look: Any) -> None:
    async def write(worker: int) -> None:
        for n in range(12):
            which = Collection(1, list(CollectionType)[worker % 4], "a")
            await stores[worker % 2].collections.write(which, [(b"%d" % n, b"1"), (b"%d" % -n, b"1")])

    async def move(worker: int) -> None:
        for _ in range(6):
            await stores[worker].collections.drop(1, "b")
            if await stores[worker].collections.rename(1, "a", f"b{worker}"):
                await stores[worker].collections.drop(1, f"b{worker}")
            await stores[worker].purge()

    await asyncio.gather(*map(write, range(4)), move(0), move(1))
    await asyncio.gather(*(store.purge() for store in stores))
    orphans = """SELECT count(*) FROM collection_records r WHERE NOT EXISTS (
        SELECT 1 FROM collections c WHERE c.project = r.project AND c.collection = r.collection)"""
    assert await look(orphans) == [(0,)]
    assert await look("SELECT count(*) FROM removals") == [(0,)]


async def test_deletions_of_overlapping_ranges_count_each_record_once(stores: list[Store]) -> None:
    which = Collection(1, CollectionType.STORE, "c")
    await stores[0].collections.write(which, [(b"%03d" % n, b"1") for n in range(300)])

    async def delete(worker: int) -> int:
        selection = RecordSelection((prefix_range(b"%d" % (worker % 3)), prefix_range(b"%d" % ((worker + 1) % 3))))
        return (await stores[worker % 2].collections.delete(which, selection)).deleted

    assert sum(await asyncio.gather(*map(delete, range(6)))) == 300


async def test_a_secret_is_made_once(stores: list[Store]) -> None:
    made = await asyncio.gather(*(stores[n % 2].keys.keep("secret", str(n)) for n in range(10)))
    assert len(set(made)) == 1


async def test_stores_that_open_at_once_make_the_tables_once(postgresql: Any) -> None:
    url = DatabaseUrl(postgresql.database())
    opened = await asyncio.gather(*(Store.open(url) for _ in range(8)))
    await asyncio.gather(*(store.keys.keep(f"k{n}", "1") for n, store in enumerate(opened)))
    for store in opened:
        await store.close()

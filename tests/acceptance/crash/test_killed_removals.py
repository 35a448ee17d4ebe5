"""A server that is killed while things are deleted: nothing half deleted is readable, all else stays, the rest goes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import aiohttp
import pytest

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from tests.support.crash.deletable import Readers, Thing, new_collection, new_filled_job, new_slot
from tests.support.crash.killed_server import KillAt
from tests.support.crash.lives import Platform
from tests.support.eventually import eventually_async
from tests.support.http import Http

#: Operations whose transactions are the steps of a deletion, and of the removal after it.
STEPS = ("change_jobs", "drop", "_delete_slot", "_purge_step")
#: Removals have small steps, and the server is not killed by itself.
SLOW = KillAt(sys.maxsize, STEPS)
#: Tables with rows of deleted things, and how many rows of each deleted job stay in them: the entries in the journals
#: of frontiers that it has shared, by itself and as a worker of a group.
TABLES = {
    **dict.fromkeys(("record_chunks", "record_counts", "comments", "collection_records"), 0),
    "frontier_batches": 2,
    "frontier_packed_fingerprints": 2,
    "frontier_long_fingerprints": 0,
    "frontier_fingerprint_data": 0,
}
PLACES = [
    pytest.param((1, 6), id="some places"),
    pytest.param(itertools.count(), id="every place", marks=[pytest.mark.full, pytest.mark.timeout(7200)]),
]
KILLS = [
    pytest.param(3, id="3 times"),
    pytest.param(40, id="40 times", marks=[pytest.mark.full, pytest.mark.timeout(7200)]),
]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None


async def rows(platform: Platform) -> dict[str, int]:
    return {table: (await platform.query(f"SELECT count(*) FROM {table}"))[0][0] for table in TABLES}


async def waiting(platform: Platform) -> int:
    """The number of removals whose rows wait."""
    return int((await platform.query("SELECT count(*) FROM removals"))[0][0])


@contextlib.asynccontextmanager
async def reading(platform: Platform) -> AsyncIterator[Readers]:
    """Readers in a task of their own, whose failures end the block."""
    block = asyncio.current_task()
    assert block is not None
    async with Http(platform.url, platform.key) as http:
        readers = Readers(http)
        task = asyncio.create_task(readers.run())
        task.add_done_callback(lambda done: None if done.cancelled() else block.cancel())
        try:
            yield readers
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def delete(http: Http, thing: Thing, readers: Readers, chance: random.Random) -> None:
    """Delete a thing; without an answer, nobody knows whether it was deleted."""
    try:
        answer = await chance.choice(thing.deletions)(http)
    except (aiohttp.ClientError, OSError, *TIMEOUT_ERRORS):
        return
    assert answer.status in (200, 202), answer
    readers.acknowledge(thing)


async def surely_delete(http: Http, thing: Thing, readers: Readers, chance: random.Random) -> None:
    while not readers.is_acknowledged(thing):
        await delete(http, thing, readers, chance)


async def check_removed(platform: Platform, http: Http, before: dict[str, int], jobs: int) -> None:
    """Wait until all rows of deleted things are removed, those of so many jobs among them."""
    left = await waiting(platform)
    while left:  # beside the readers, each of these may take some seconds
        left = await eventually_async(
            lambda: waiting(platform), lambda number, left=left: number < left, details=lambda: platform.log[-3000:]
        )
    assert await rows(platform) == {table: before[table] + TABLES[table] * jobs for table in TABLES}

    async def deleted() -> dict[str, int]:
        usage = (await http.get("/api/projects/1/usage")).json
        return {name: usage["deleted"][name] for name in ("owners", "waiting")}

    await eventually_async(deleted, lambda value: value == {"owners": 0, "waiting": 0})


@pytest.mark.parametrize("places", PLACES)
async def test_a_server_killed_at_a_step_of_a_deletion_shows_nothing_half_deleted_and_removes_the_rest(
    tmp_path: Path, database: str | None, places: Sequence[int]
) -> None:
    chance = random.Random(1)
    platform = Platform(tmp_path, database=database, options=("--no-runner",), kill_at=SLOW)
    try:
        async with reading(platform) as readers, Http(platform.url, platform.key) as http:
            kept = [await make(http) for make in (new_filled_job, new_collection, new_slot)]
            await readers.add(*kept)
            for place in places:
                before = await rows(platform)
                doomed = [await make(http) for make in (new_filled_job, new_collection, new_slot)]
                await readers.add(*doomed)
                await asyncio.to_thread(platform.start_again, KillAt(place, STEPS))
                for thing in doomed:
                    await delete(http, thing, readers, chance)
                await eventually_async(lambda: over(platform), what="its death, or the end of the removal")
                was_killed = platform.was_killed
                await asyncio.to_thread(platform.start_again, SLOW)
                for thing in doomed:
                    is_there = await readers.is_whole(thing)
                    assert not (is_there and readers.is_acknowledged(thing))
                    assert is_there or thing is not doomed[0] or place > 0  # nothing was committed
                    await surely_delete(http, thing, readers, chance)
                    assert not await readers.is_whole(thing)
                assert [await readers.is_whole(thing) for thing in kept] == [True] * 3
                await check_removed(platform, http, before, 1)
                if not was_killed:
                    break
            assert was_killed is not isinstance(places, itertools.count)
        assert readers.checked > 100
    finally:
        platform.close()


async def over(platform: Platform) -> bool:
    return platform.was_killed or not await waiting(platform)


@pytest.mark.parametrize("times", KILLS)
async def test_a_server_killed_at_any_moment_shows_nothing_half_deleted_and_removes_the_rest(
    tmp_path: Path, database: str | None, times: int
) -> None:
    chance = random.Random()
    platform = Platform(tmp_path, database=database, options=("--no-runner",), kill_at=SLOW)
    makes: list[Callable[[Http], Awaitable[Thing]]] = [*[new_filled_job] * 2, new_collection, new_slot]
    try:
        async with reading(platform) as readers, Http(platform.url, platform.key) as http:
            kept = [await make(http) for make in makes[1:]]
            await readers.add(*kept)
            before, doomed = await rows(platform), list[Thing]()
            for _ in range(times):
                new = [await make(http) for make in makes]
                await readers.add(*new)
                deleting = asyncio.gather(*(delete(http, thing, readers, chance) for thing in new))
                await asyncio.sleep(chance.uniform(0, 0.5))
                await asyncio.to_thread(platform.start_again, SLOW)
                await deleting
                for thing in (*new, *chance.sample(doomed, min(3, len(doomed)))):
                    is_there = await readers.is_whole(thing)
                    assert not (is_there and readers.is_acknowledged(thing))
                doomed += new
            for thing in doomed:
                await surely_delete(http, thing, readers, chance)
            assert [await readers.is_whole(thing) for thing in (*kept, *doomed)] == [True] * 3 + [False] * len(doomed)
            await check_removed(platform, http, before, 2 * times)
    finally:
        platform.close()

"""Failures of nodes and their connections on PostgreSQL: no job is lost, runs twice, or waits for a dead process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.jobs.nodes import dead_nodes
from scrapy_ext.server.jobs.nodes.dead_nodes import Detection
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from tests.support.eventually import eventually_async
from tests.support.postgresql import Cluster
from tests.support.servers import ForkedServer

#: Seconds that the database is away in these tests.
OUTAGE = 20.0


@pytest.fixture
def url(postgresql: Cluster) -> str:
    return postgresql.database()


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = await Store.open(DatabaseUrl(url))
    yield store
    await store.close()


async def add(store: Store) -> JobKey:
    (key,) = await store.jobs.add(1, [NewJob("spider", JobState.PENDING, {})], "tests")
    assert isinstance(key, JobKey)
    return key


async def join(store: Store, name: str, units: int = 1) -> None:
    await store.nodes.join(StoredNode(name, "host", units, frozenset(), 1, 1, 1, draining=False))


async def test_an_outage_of_the_database_is_nobodys_death(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(dead_nodes, "elapsing", lambda: now)
    detection = Detection(store, 5)
    await join(store, "node")
    await add(store)
    (attempt,) = await store.attempts.place()
    await detection.poll()
    now += OUTAGE
    await detection.poll()
    assert await store.attempts.numbers(attempt.key) == [attempt.number]
    for _ in range(9):  # it is dead when it is silent while the database answers
        now += 1.0
        await detection.poll()
    assert await store.attempts.numbers(attempt.key) == []


async def test_a_node_that_was_found_dead_knows_it_at_its_next_heartbeat(store: Store) -> None:
    await join(store, "node")
    assert await store.attempts.release_jobs("node", 1, 5) == []
    assert await store.nodes.heartbeat("node", 2) is False


@pytest.mark.long
async def test_a_server_waits_for_rows_that_a_dying_process_has_locked(store: Store, url: str, tmp_path: Path) -> None:
    """Those of a node that was killed: the new one does not fail because of them."""
    locking, looking = await asyncpg.connect(url), await asyncpg.connect(url)
    waits: set[object] = set()
    await locking.execute("BEGIN; LOCK TABLE nodes IN EXCLUSIVE MODE")
    starting = asyncio.create_task(asyncio.to_thread(ForkedServer, tmp_path, database=url))

    async def given_up() -> bool:
        """More waits than one: a first one was ended by the limit of the node's locks."""
        rows = (
            "SELECT query_start FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        waits.update(each[0] for each in await looking.fetch(rows))
        return len(waits) > 1 or starting.done()

    await eventually_async(given_up)
    await asyncio.gather(locking.close(), looking.close())
    with await starting as server:
        assert len(await store.nodes.listed()) == 1
        assert "The node is not started yet; it is tried again" in server.log()


async def test_the_end_of_an_earlier_attempt_ends_no_later_one(store: Store) -> None:
    await join(store, "a")
    key = await add(store)
    (attempt,) = await store.attempts.place()
    await store.attempts.release_jobs("a", 1, 5)
    await join(store, "b")
    (again,) = await store.attempts.place()
    assert await store.attempts.end(attempt, "failed") is False
    assert await store.attempts.numbers(key) == [again.number]
    assert await store.attempts.end(again, "finished") is True


async def test_a_process_that_dies_while_it_places_holds_nobody_up(store: Store, url: str) -> None:
    await join(store, "node", 2)
    await add(store)
    assert len(await store.attempts.place()) == 1  # which has made the row
    dying = await asyncpg.connect(url)
    await dying.execute("BEGIN")
    await dying.execute("SELECT created FROM locks WHERE name = 'placing' FOR UPDATE")
    await add(store)
    assert await store.attempts.place() == []
    dying.terminate()
    assert len(await eventually_async(store.attempts.place)) == 1


async def test_a_connection_that_is_lost_ends_no_heartbeat(store: Store, url: str, postgresql: Cluster) -> None:
    await join(store, "node")
    postgresql.query(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE 'scrapy-ext %'",
    )
    assert await store.nodes.heartbeat("node", 2) is True


async def test_a_job_is_released_once_when_two_nodes_detect_a_dead_one(store: Store) -> None:
    await join(store, "dead")
    key = await add(store)
    (attempt,) = await store.attempts.place()
    assert await store.attempts.release_jobs("dead", 1, 5) == [attempt]
    for name in ("second", "third"):
        await join(store, name)
    (again,) = await store.attempts.place()
    assert await store.attempts.release_jobs("dead", 1, 5) == []
    assert await store.attempts.place() == []
    assert await store.attempts.numbers(key) == [again.number]

"""Notifications of nodes on PostgreSQL: they arrive at once, and no job depends on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import asyncpg
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.jobs.nodes.notifier import Notifier
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import PENDING, StoredNode, channel_of, notify_node
from tests.support.eventually import eventually_async
from tests.support.postgresql import Cluster


class Ends:
    """Stores with notifiers on one database."""

    def __init__(self, postgresql: Cluster) -> None:
        self.postgresql = postgresql
        self.url = DatabaseUrl(postgresql.database())
        self.stack = AsyncExitStack()

    async def store(self) -> Store:
        store = await Store.open(self.url)
        self.stack.push_async_callback(store.close)
        return store

    async def notifier(self, store: Store) -> Notifier:
        notifier = await Notifier.open(store, self.url)
        self.stack.push_async_callback(notifier.stop)
        return notifier

    def count(self, table: str) -> int:
        return int(self.postgresql.query(self.url.secret, f"SELECT count(*) FROM {table}")[0][0])


@pytest.fixture
async def ends(postgresql: Cluster) -> AsyncIterator[Ends]:
    ends = Ends(postgresql)
    async with ends.stack:
        yield ends


async def add_job(store: Store) -> None:
    await store.jobs.add(1, [NewJob("s", JobState.PENDING, {})], "x")


async def test_nodes_hear_of_jobs_that_wait_and_of_those_that_are_theirs(ends: Ends) -> None:
    stores = [await ends.store() for _ in range(3)]
    notifiers = await asyncio.gather(*map(ends.notifier, stores))  # they make the trigger at once
    notified = [0, 0]

    def hear(which: int) -> None:
        notified[which] += 1

    name = "a-host-with-a-name-that-is-longer-than-any-channel-of-a-database-may-be-" + "x" * 60
    names = ["other", name]
    await notifiers[0].listen(names[0], lambda: hear(0))
    await notifiers[1].listen(names[1], lambda: hear(1))
    await eventually_async(lambda: all(notified), what="both listen, and poll once for what they have missed")
    notified[:] = [0, 0]
    await add_job(stores[2])
    await eventually_async(lambda: all(notified), what="both hear of a job that was added")
    notified[:] = [0, 0]
    await stores[2].nodes.join(StoredNode(names[1], "h", 1, frozenset(), 1, 1, 1, False))
    assert len(await stores[2].attempts.place(notifiers[2].notify)) == 1
    await eventually_async(lambda: notified[1], what="the notification of its node")
    assert notified[0] == 0
    notified[:] = [0, 0]
    ends.postgresql.query(
        ends.url.secret,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scrapy-ext queue' "
        "AND datname = current_database()",
    )
    await eventually_async(
        lambda: all(notified), what="a connection that was lost is made again, and who may have missed something looks"
    )
    notified[:] = [0, 0]
    await add_job(stores[2])
    await eventually_async(lambda: all(notified), what="and so it goes on")


async def test_an_outage_is_one_line_of_the_log(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = await ends.notifier(await ends.store())
    tries = asyncio.Queue[None]()

    async def refused(*_: object) -> None:
        tries.put_nowait(None)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("scrapy_ext.server.jobs.nodes.notifier._PAUSE", 0)
    monkeypatch.setattr(notifier, "_until_lost", refused)
    with caplog.at_level("INFO"):
        await notifier.listen("n", lambda: None)
        for _ in range(3):
            await asyncio.wait_for(tries.get(), 60)
        await notifier.stop()
    lines = [record.getMessage() for record in caplog.records if "Listening" in record.getMessage()]
    assert lines == [f"Listening on {channel_of('n')} is tried again: [Errno 111] Connection refused"]


async def test_a_transaction_that_fails_notifies_nobody(ends: Ends) -> None:
    store = await ends.store()
    await ends.notifier(store)
    await store.nodes.join(StoredNode("n", "h", 1, frozenset(), 1, 1, 1, False))
    await add_job(store)
    received = asyncio.Queue[str]()
    connection = await asyncpg.connect(ends.url.secret)
    ends.stack.push_async_callback(connection.close)
    await connection.add_listener(channel_of("n"), lambda _connection, _pid, _channel, text: received.put_nowait(text))

    async def fail(tx: Transaction, node: str, key: JobKey, attempt: int) -> None:
        await notify_node(tx, node, key, attempt)
        raise RuntimeError("after it was sent")

    with pytest.raises(RuntimeError, match="after it was sent"):
        await store.attempts.place(fail)
    assert ends.count("attempts") == 0
    ends.postgresql.query(ends.url.secret, f"SELECT pg_notify('{channel_of('n')}', 'later')")
    assert await asyncio.wait_for(received.get(), 60) == "later"


@pytest.mark.long
async def test_it_ends_when_the_database_hangs(ends: Ends, own_cluster: Cluster) -> None:
    ends.postgresql, ends.url = own_cluster, DatabaseUrl(own_cluster.database())
    notifier = await ends.notifier(await ends.store())
    listens = asyncio.Event()
    await notifier.listen("n", listens.set)
    await asyncio.wait_for(listens.wait(), 60)
    own_cluster.pause()
    try:
        began = time.monotonic()
        await notifier.stop()
        assert time.monotonic() - began < 60  # the bound in it is a second, and the pause has no end
    finally:
        own_cluster.go_on()


async def test_a_database_of_an_earlier_version_keeps_its_tables_and_works(ends: Ends) -> None:
    """Earlier versions sent messages by Procrastinate: their nodes may run beside those of this version."""
    store = await ends.store()
    ends.postgresql.query(ends.url.secret, "CREATE TABLE procrastinate_jobs (queue_name TEXT)")
    ends.postgresql.query(ends.url.secret, "CREATE TABLE queue_schema (applied TEXT)")
    ends.postgresql.query(ends.url.secret, "INSERT INTO procrastinate_jobs VALUES ('node.n')")
    for _ in range(2):
        notifier = await ends.notifier(store)
    assert ends.count("pg_trigger WHERE tgname = 'scrapy_ext_notify_pending'") == 1
    notified = [0]

    def note() -> None:
        notified[0] += 1

    await notifier.listen("n", note)
    await eventually_async(lambda: notified[0], what="it listens")
    await add_job(store)
    await eventually_async(lambda: notified[0] >= 2, what="the notification of a pending job")
    await store.nodes.join(StoredNode("n", "h", 1, frozenset(), 1, 1, 1, False))
    assert len(await store.attempts.place(notifier.notify)) == 1
    await eventually_async(lambda: notified[0] >= 3, what="the notification of the placed job")
    assert ends.count("procrastinate_jobs") == 1


async def test_a_place_without_a_worker_is_notified(ends: Ends) -> None:
    store = await ends.store()
    notifier = await ends.notifier(store)
    await store.nodes.join(StoredNode("n", "h", 2, frozenset(), 1, 1, 1, False))
    await store.jobs.add(1, [NewJob("s", JobState.PENDING, {"job_workers": "2"})], "tests")
    placed = await store.attempts.place()
    notified = [0]

    def note() -> None:
        notified[0] += 1

    await notifier.listen("other", note)
    await eventually_async(lambda: notified[0], what="it listens")
    before = notified[0]
    await store.attempts.give_back(placed[1])
    await eventually_async(lambda: notified[0] > before, what="the notification of the place")


def test_channels_of_nodes_differ_and_are_not_too_long() -> None:
    names = [f"{'h' * 60}-{pid}-{pid:08x}" for pid in range(100)]
    channels = {channel_of(name) for name in names}
    assert len(channels) == 100
    assert max(map(len, channels)) <= 63
    assert PENDING not in channels

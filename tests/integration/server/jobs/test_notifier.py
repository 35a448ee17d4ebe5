"""Notifications of nodes on PostgreSQL: they come at once, and no job depends on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.jobs.nodes import procrastinate as module
from scrapy_ext.server.jobs.nodes.procrastinate import ProcrastinateNotifier
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import SchemaError, StoreError
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.queue_messages import defer, queue_of
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

    async def notifier(self, store: Store) -> ProcrastinateNotifier:
        notifier = await ProcrastinateNotifier.open(store, self.url)
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
    notifiers = await asyncio.gather(*map(ends.notifier, stores))  # they make the tables at once
    heard = [0, 0]

    def hear(which: int) -> None:
        heard[which] += 1

    name = "a-host-with-a-name-that-is-longer-than-any-channel-of-a-database-may-be-" + "x" * 60
    names = ["other", name]
    await notifiers[0].listen(names[0], lambda: hear(0))
    await notifiers[1].listen(names[1], lambda: hear(1))
    await eventually_async(lambda: ends.count("procrastinate_workers") == 2, what="both listen")
    heard[:] = [0, 0]
    await add_job(stores[2])
    await eventually_async(lambda: all(heard), what="both hear of a job that was added")
    heard[:] = [0, 0]
    await stores[2].nodes.join(StoredNode(names[1], "h", 1, frozenset(), 1, 1, 1, False))
    assert len(await stores[2].attempts.place(notifiers[2].notify)) == 1
    await eventually_async(lambda: heard[1], what="its node hears of it")
    await eventually_async(
        lambda: ends.count("procrastinate_jobs") == 0, what="the row that was handed over is deleted"
    )
    assert heard[0] == 0
    heard[:] = [0, 0]
    ends.postgresql.query(
        ends.url.secret,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scrapy-ext queue' "
        "AND datname = current_database()",
    )
    await eventually_async(
        lambda: all(heard), what="a connection that was lost is made again, and who may have missed something looks"
    )
    heard[:] = [0, 0]
    await add_job(stores[2])
    await eventually_async(lambda: all(heard), what="and so it goes on")


async def test_rows_of_nodes_that_are_gone_are_removed(ends: Ends) -> None:
    store = await ends.store()
    notifier = await ends.notifier(store)
    await store.nodes.join(StoredNode("gone", "h", 2, frozenset(), 1, 1, 1, False))
    for _ in range(2):
        await add_job(store)
    assert len(await store.attempts.place(notifier.notify)) == 2
    await notifier.sweep(["gone"])
    assert ends.count("procrastinate_jobs") == 2
    await notifier.sweep(["another"])
    assert ends.count("procrastinate_jobs") == ends.count("procrastinate_events") == 0


async def test_a_transaction_that_fails_sends_nothing(ends: Ends) -> None:
    store = await ends.store()
    await ends.notifier(store)
    await store.nodes.join(StoredNode("n", "h", 1, frozenset(), 1, 1, 1, False))
    await add_job(store)

    async def fail(tx: object, node: str, key: object, attempt: int) -> None:
        await defer(tx, node, key, attempt)
        raise RuntimeError("after it was sent")

    with pytest.raises(RuntimeError, match="after it was sent"):
        await store.attempts.place(fail)
    assert (ends.count("procrastinate_jobs"), ends.count("attempts")) == (0, 0)


async def test_it_ends_when_the_database_hangs(ends: Ends, own_cluster: Cluster) -> None:
    ends.postgresql, ends.url = own_cluster, DatabaseUrl(own_cluster.database())
    notifier = await ends.notifier(await ends.store())
    await notifier.listen("n", lambda: None)
    await eventually_async(lambda: ends.count("procrastinate_workers") == 1, what="it listens")
    own_cluster.pause()
    try:
        began = time.monotonic()
        await notifier.stop()
        assert time.monotonic() - began < 60  # the bounds in it are two seconds together, and the pause has no end
    finally:
        own_cluster.go_on()


async def test_the_schema_is_brought_up_to_date_or_refused(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await ends.store()
    await ends.notifier(store)
    schema = module._schema()
    newest = schema.migrations[-1][0]
    more = schema._replace(migrations=[*schema.migrations, ("99.00.00_01_more", "CREATE TABLE more (n INT)")])
    await store.queue_messages.prepare(more)
    await store.queue_messages.prepare(more)
    assert ends.count("more") == 0
    with pytest.raises(SchemaError, match=rf"99\.00\.00_01_more.*supports {newest}.*Upgrade it"):
        await store.queue_messages.prepare(schema)
    monkeypatch.setattr(module, "version", lambda _: "4.0.1")
    with pytest.raises(StoreError, match=r"Procrastinate 4\.0\.1 is installed.*pip install"):
        await ends.notifier(store)


async def test_the_tables_of_another_application_are_left_alone(ends: Ends) -> None:
    store = await ends.store()
    ends.postgresql.query(ends.url.secret, "CREATE TABLE procrastinate_jobs (n INT)")
    with pytest.raises(SchemaError, match="of another application"):
        await ends.notifier(store)


def test_queues_of_nodes_differ_and_have_channels() -> None:
    names = [f"{'h' * 60}-{pid}-{pid:08x}" for pid in range(100)]
    queues = {queue_of(name) for name in names}
    assert len(queues) == 100
    assert max(len(f"procrastinate_queue_v1#{queue}") for queue in queues) <= 63

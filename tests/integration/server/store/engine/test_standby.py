"""A primary and its standby, as one process of the server sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import SERVER
from scrapy_ext.server.store.engine.errors import StoreBusyError
from scrapy_ext.server.store.engine.postgresql import postgresql as engine_module
from scrapy_ext.server.store.engine.postgresql import retries
from scrapy_ext.server.store.engine.postgresql.connection import connected
from scrapy_ext.server.store.engine.postgresql.primary import primary_of
from scrapy_ext.server.store.records.chunks import ITEMS
from tests.support.eventually import eventually_async
from tests.support.packing import pack_chunk
from tests.support.postgresql import Cluster
from tests.support.replication import Replicated, replicated

KEY = JobKey(1, 1, 1)
CHUNK = pack_chunk(ITEMS, [b"{}"], [{}])


@pytest.fixture
def pair() -> Iterator[Replicated]:
    with replicated() as pair:
        yield pair


@pytest.fixture
async def store(pair: Replicated) -> AsyncIterator[Store]:
    store = await Store.open(DatabaseUrl(pair.url))
    yield store
    await store.close()


async def test_any_user_of_a_database_sees_which_timeline_its_server_has(postgresql: Cluster) -> None:
    """Without that, an old primary is not recognised."""
    url = postgresql.database()
    postgresql.query(url, f"CREATE ROLE ordinary LOGIN PASSWORD '{postgresql.password}'")
    mine = DatabaseUrl(url.replace("scrapy:", "ordinary:"))
    connection = await connected(mine, SERVER, {})
    connection.terminate()
    identity = primary_of(mine)._identity
    assert identity is not None
    assert identity.system
    assert identity.timeline == 1


@pytest.mark.long
async def test_a_standby_is_not_read_even_if_it_is_the_only_one(pair: Replicated) -> None:
    single = DatabaseUrl(pair.standby.url(pair.name))
    with pytest.raises(StoreError, match=r"is a standby, which takes no writes\. Promote it"):
        await Store.open(single)


@pytest.mark.long
async def test_a_commit_whose_wait_was_cancelled_is_not_acknowledged_before_the_standby_has_it(
    pair: Replicated, store: Store
) -> None:
    """PostgreSQL answers such a commit, with a warning that the standby may not have it."""
    await store.items.write(KEY, 0, [CHUNK])
    pair.standby.pause()
    try:
        writing = asyncio.create_task(store.items.write(KEY, 1, [CHUNK]))
        waits = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        url = pair.primary.url("postgres")
        for _ in range(2):  # the commit, and the look-up of its mark
            await eventually_async(lambda: pair.primary.query(url, waits) == [["1"]])
        assert not writing.done()
    finally:
        pair.standby.go_on()
    assert await writing == 1
    assert pair.count(pair.standby, "record_chunks") == pair.count(pair.primary, "record_chunks") > 0


@pytest.mark.long
async def test_an_old_primary_that_lives_on_is_left_and_never_used_again(
    pair: Replicated, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_SEARCH", 1.0)
    await store.items.write(KEY, 0, [CHUNK])
    pair.take_over()
    # Nothing is written meanwhile: reads, too, come from the new one.
    pair.standby.query(pair.standby.url(pair.name), "UPDATE schema_version SET opened = 7 WHERE version = 0")

    async def opened(tx: Any) -> Any:
        return await tx.fetchrow("SELECT opened FROM schema_version WHERE version = 0")

    await eventually_async(lambda: store._engine.read(opened), lambda found: found == (7,))
    assert await store.items.write(KEY, 1, [CHUNK]) == 1
    pair.standby.kill()
    monkeypatch.setattr(retries, "RETRY_SECONDS", 1.0)
    with pytest.raises(StoreBusyError, match=f":{pair.primary.port} is an old primary"):
        await store.items.write(KEY, 2, [CHUNK])
    pair.standby.start()
    assert await store.items.write(KEY, 2, [CHUNK]) == 2


async def test_an_old_primary_refuses_no_write_for_data_that_it_does_not_have(
    pair: Replicated, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but the write itself makes the process find the new primary.
    monkeypatch.setattr(engine_module, "_SEARCH", 3600.0)
    await store.items.write(KEY, 0, [CHUNK])
    pair.take_over()
    # By the address of one server: a process has one primary for each address.
    other = await Store.open(DatabaseUrl(pair.standby.url(pair.name)))
    try:
        assert await other.items.write(KEY, 1, [CHUNK]) == 1
    finally:
        await other.close()
    # The old one has no record 1.
    assert await store.items.write(KEY, 2, [CHUNK]) == 2
    with pytest.raises(ContractError, match="the job has 3 records"):
        await store.items.write(KEY, 4, [CHUNK])

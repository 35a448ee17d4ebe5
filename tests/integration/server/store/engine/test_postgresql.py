"""PostgreSQL's own ways to fail: connections that break at the worst moment, and databases that will not do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import msgspec
import pytest

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.collections.collections import Collection
from scrapy_ext.server.store.collections.selections import RecordSelection, prefix_range
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import NODE, SERVER
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError, StoreUncertainError
from scrapy_ext.server.store.engine.postgresql import connection as connection_module
from scrapy_ext.server.store.engine.postgresql import postgresql as engine_module
from scrapy_ext.server.store.engine.postgresql import retries
from scrapy_ext.server.store.engine.postgresql.connection import application_name
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.inspection import of_database
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.records.chunks import ITEMS
from tests.support.cut_connections import Cutter
from tests.support.eventually import eventually_async
from tests.support.packing import pack_chunk
from tests.support.postgresql import Cluster, cluster
from tests.support.stores import emptied

KEY = JobKey(1, 1, 1)


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A PostgreSQL that may be harmed."""
    with cluster() as own:
        yield own


@pytest.fixture
async def cutter(postgresql: Cluster) -> AsyncIterator[Cutter]:
    cutter = Cutter(postgresql.port)
    yield cutter
    cutter.stop()


@pytest.fixture
async def store(cutter: Cutter, store_database: DatabaseUrl) -> AsyncIterator[Store]:
    await emptied(await opened_once(store_database))
    port = urlsplit(store_database.secret).port
    store = await Store.open(DatabaseUrl(store_database.secret.replace(f":{port}/", f":{await cutter.start()}/")))
    yield store
    await store.close()


async def opened_once(url: DatabaseUrl) -> DatabaseUrl:
    await (await Store.open(url)).close()
    return url


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_write_whose_commit_is_not_answered_is_done_once_and_its_result_right(
    store: Store, cutter: Cutter, when: str
) -> None:
    """None of these would be right if it ran again after all: that is why the database is asked what it did."""
    chunk = pack_chunk(ITEMS, [b'{"a":1}'], [{"a": 1}])
    slot = Slot(1, "f", "0")
    which = Collection(1, CollectionType.VERSIONED_STORE, "c")
    for turn in range(3):
        setattr(cutter, when, 1)
        assert await store.items.write(KEY, None, [chunk]) == turn
        setattr(cutter, when, 1)
        new = [QueuedRequest(b"%d" % turn, b'["x",0]', None, 0), QueuedRequest(b"x", b'["x",0]', None, 0)]
        assert await store.frontier.add(slot, new) == (1 if turn else 2)
        setattr(cutter, when, 1)
        assert await store.jobs.add(1, [NewJob("s", JobState.PENDING, {})], "x") == [JobKey(1, 1, turn + 1)]
        setattr(cutter, when, 1)
        await store.collections.write(which, [(b"k", b"%d" % turn)])
    assert cutter.cut == 12
    assert (await store.items.stats(KEY)).totals.input_values == 3
    record = await store.collections.get(which, b"k")
    assert record is not None
    assert record.value == b"2"


@pytest.mark.long
async def test_a_crash_that_gives_the_transactions_id_to_another_deceives_nobody(
    own: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a transaction whose COMMIT did not get there before the crash, nothing may be on the disk."""
    # A busy machine may need longer than the engine waits for PostgreSQL to start and answer eight times.
    monkeypatch.setattr(retries, "RETRY_SECONDS", 300.0)
    url = own.database()
    await opened_once(DatabaseUrl(url))
    cutter = Cutter(own.port)
    port = await cutter.start()
    store = await Store.open(DatabaseUrl(url.replace(f":{own.port}/", f":{port}/")))
    chunk = pack_chunk(ITEMS, [b"{}"], [{}])
    try:
        for turn in range(3):
            cutter.before, cutter.dark_after_cut = 1, True
            writing = asyncio.create_task(store.items.write(KEY, None, [chunk]))
            await eventually_async(lambda: cutter.dark)
            own.kill()
            own.start()
            for _ in range(8):
                own.query(url, "UPDATE schema_version SET opened = opened")
            cutter.dark = cutter.dark_after_cut = False
            assert await writing == turn
            assert (await store.items.stats(KEY)).totals.input_values == turn + 1
    finally:
        cutter.stop()
        await store.close()


async def test_what_cannot_be_known_is_reported(store: Store, cutter: Cutter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "RETRY_SECONDS", 0.2)
    cutter.after, cutter.dark_after_cut = 1, True
    with pytest.raises(StoreUncertainError, match="may be stored or not"):
        await store.items.write(KEY, 0, [pack_chunk(ITEMS, [b"{}"], [{}])])
    with pytest.raises(StoreBusyError, match="cannot be reached"):
        await store.items.write(KEY, 0, [pack_chunk(ITEMS, [b"{}"], [{}])])
    cutter.dark = cutter.dark_after_cut = False
    assert (await store.items.stats(KEY)).totals.input_values == 1


async def test_a_refusal_that_cannot_be_confirmed_says_that_nothing_was_stored(
    store: Store, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "RETRY_SECONDS", 0.2)
    cutter.after, cutter.dark_after_cut = 1, True
    with pytest.raises(StoreAwayError, match="nothing was stored"):
        await store.items.write(KEY, 7, [pack_chunk(ITEMS, [b"{}"], [{}])])


@pytest.mark.long
async def test_a_database_that_hangs_is_given_up_and_used_again(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "RETRY_SECONDS", 0.5)
    monkeypatch.setattr(connection_module, "_CONNECT_SECONDS", 1.0)
    store = await Store.open(DatabaseUrl(own.database()), limits=SERVER._replace(statement=1.0))
    chunk = pack_chunk(ITEMS, [b"{}"], [{}])
    try:
        for turn in range(3):
            assert await store.items.write(KEY, None, [chunk]) == turn
            own.pause()
            writes = [store.items.write(KEY, None, [chunk]), store.jobs.get(KEY), store.size()]
            errors = await asyncio.gather(*writes, return_exceptions=True)
            assert [isinstance(error, StoreBusyError) for error in errors] == [True] * 3
            own.go_on()
        assert (await store.items.stats(KEY)).totals.input_values == 3
    finally:
        own.go_on()
        await store.close()


@pytest.mark.long
async def test_opening_a_connection_that_hangs_is_tried_again(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0
    connect = asyncpg.connect

    async def counted(**options: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return await connect(**options)

    monkeypatch.setattr(retries, "RETRY_SECONDS", 300.0)
    store = await Store.open(DatabaseUrl(own.database()), limits=SERVER._replace(statement=1.0))
    monkeypatch.setattr(asyncpg, "connect", counted)
    try:
        own.pause()
        writing = asyncio.create_task(store.items.write(KEY, None, [pack_chunk(ITEMS, [b"{}"], [{}])]))
        await eventually_async(lambda: attempts > 1 or writing.done())
        own.go_on()
        assert await writing == 0
    finally:
        own.go_on()
        await store.close()


async def test_a_limit_of_connections_is_obeyed_or_reported(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    url, postgres = own.database(), own.url("postgres")
    own.query(postgres, "CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 2")
    own.query(postgres, f"ALTER DATABASE {url.rpartition('/')[2]} OWNER TO few")
    store = await Store.open(DatabaseUrl(url.replace(f"//scrapy:{own.password}@", "//few:few@")))
    try:  # it has one for writes and one for reads
        await asyncio.gather(*(store.keys.keep(f"{number}", "x") for number in range(20)))
        assert await store.keys.get("19") == "x"
        monkeypatch.setattr(retries, "RETRY_SECONDS", 0.3)
        with pytest.raises(StoreBusyError, match=r"no connection left .*Raise max_connections"):
            async with store._engine.snapshot():
                pass
        own.query(postgres, "ALTER ROLE few CONNECTION LIMIT 20")
        async with store._engine.snapshot():
            pass
    finally:
        await store.close()


async def test_a_snapshot_whose_caller_left_before_it_began_leaves_no_connection(
    own: Cluster, recwarn: pytest.WarningsRecorder
) -> None:
    url = own.database()
    store = await Store.open(DatabaseUrl(url))
    engine: Any = store._engine

    async def use() -> None:
        async with engine.snapshot():
            pass

    others = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{url.rpartition('/')[2]}' AND state LIKE 'idle%'"
    try:
        before = own.query(url, others)
        own.pause()
        using = asyncio.create_task(use())
        await eventually_async(lambda: engine._loop._running)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        own.go_on()
        await eventually_async(lambda: not engine._loop._running)
        await eventually_async(lambda: asyncio.to_thread(own.query, url, others), lambda found: found == before)
        gc.collect()
        assert [each for each in recwarn if each.category is ResourceWarning] == []
    finally:
        own.go_on()
        await store.close()


async def test_a_read_of_several_statements_sees_one_state(store: Store, store_database: DatabaseUrl) -> None:
    engine: Any = store._engine

    async def count(tx: Any) -> list[int]:
        found = []
        for _ in range(3):
            row = await tx.fetchrow("SELECT count(*) FROM access_keys")
            found.append(row[0])
            await asyncio.sleep(0.005)  # others go on
        return found

    done = asyncio.Event()

    async def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            await store.keys.keep(f"key {number}", "x")

    writing = asyncio.create_task(write())
    counts: list[list[int]] = []
    while len({each[0] for each in counts}) < 3:
        counts.append(await engine.read(count))
    done.set()
    await writing
    assert all(len(set(each)) == 1 for each in counts)


async def test_what_is_read_most_is_one_statement(store: Store) -> None:
    which, slot = Collection(1, CollectionType.STORE, "c"), Slot(1, "f", "0")
    await store.collections.write(which, [(b"k", b"1")])
    await store.frontier.add(slot, [QueuedRequest(b"%d" % n, b'["x",0]', None, 0) for n in range(100)])
    await store.jobs.add(1, [NewJob("s", JobState.PENDING, {})], "x")
    commits = store.measures.operations
    assert await store.collections.get(which, b"k") is not None
    assert [len(page) async for page in store.collections.scan(which, RecordSelection((prefix_range(b""),)))] == [1]
    assert len(await store.frontier.read(slot, 100)) == 1  # a full batch, which needs no write either
    assert await store.jobs.get(KEY) is not None
    assert await store.keys.named() == []
    assert (await store.frontier.count(slot)).count == 100
    assert (await store.collections.count(which, RecordSelection((prefix_range(b""),)))).count == 1
    assert (await store.items.stats(KEY)).totals.input_values == 0
    engine: Any = store._engine
    assert not list(engine._multi_statement)
    assert store.measures.operations == commits


async def test_short_reads_are_done_in_the_loop_of_their_callers(store: Store) -> None:
    engine: Any = store._engine
    threads = []

    async def read(tx: Any) -> int:
        threads.append(threading.current_thread())
        row = await tx.fetchrow("SELECT 7")
        return int(row[0])

    assert await engine.read_inline(read) == 7
    assert await engine.read(read) == 7
    assert await asyncio.gather(*(engine.read_inline(read) for _ in range(50))) == [7] * 50
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threading.main_thread()


async def test_a_short_read_whose_connections_are_broken_is_done_again(store: Store, cutter: Cutter) -> None:
    await store.keys.keep("a", "b")
    assert await asyncio.gather(*(store.keys.get("a") for _ in range(10))) == ["b"] * 10
    cutter.sever()
    cutter.dark = False
    assert await asyncio.gather(*(store.keys.get("a") for _ in range(10))) == ["b"] * 10


async def test_a_short_read_whose_caller_leaves_does_not_disturb_the_next(store: Store) -> None:
    engine: Any = store._engine

    async def slow(tx: Any, number: int, seconds: float) -> int:
        row = await tx.fetchrow("SELECT $1::int FROM pg_sleep($2)", number, seconds)
        return int(row[0])

    for number in range(10):
        reading = asyncio.create_task(engine.read_inline(slow, -1, 60.0))
        await asyncio.sleep(0.002 * number)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await engine.read_inline(slow, number, 0.0) == number


@pytest.mark.long
async def test_readers_cannot_write(store: Store) -> None:
    engine: Any = store._engine

    async def once(tx: Any) -> None:
        await tx.fetch("DELETE FROM access_keys")

    async def twice(tx: Any) -> None:
        await tx.fetch("SELECT 1")
        await tx.fetch("DELETE FROM access_keys")

    await store.keys.keep("a", "b")
    for operation in (once, twice):
        with pytest.raises(StoreError):
            await engine.read(operation)
        with pytest.raises(StoreError):
            await engine.read_inline(operation)
    assert await store.keys.get("a") == "b"


async def test_a_caller_that_goes_away_leaves_a_whole_write(store: Store) -> None:
    records = [{"n": n} for n in range(200)]
    chunk = pack_chunk(ITEMS, [msgspec.json.encode(record) for record in records], records)
    for delay in range(5):
        task = asyncio.create_task(store.items.write(KEY, delay * 200, [chunk]))
        await asyncio.sleep(delay * 0.002)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert await store.items.write(KEY, delay * 200, [chunk]) == delay * 200
    stats = await store.items.stats(KEY)
    assert (stats.totals.input_values, stats.counts) == (1000, {"n": 1000})


async def test_text_may_have_every_character_that_json_has(store: Store) -> None:
    names = ["a\0b", "\0", "\ufdd0", "\ufdd00", "\ufdd01\0", "é", "z", "Z", "\U0001f600"]
    record = dict.fromkeys(names, 1)
    await store.items.write(KEY, 0, [pack_chunk(ITEMS, [msgspec.json.encode(record)], [record])])
    assert (await store.items.stats(KEY)).counts == record
    for name in names:
        await store.frontier.add(Slot(1, "f", name), [QueuedRequest(b"x", b'["x",0]', None, 0)])
    assert sorted(await store.frontier.slots(1, "f")) == sorted(names)
    plain = [name for name in await store.frontier.slots(1, "f") if "\0" not in name and "\ufdd0" not in name]
    assert plain == ["Z", "z", "é", "\U0001f600"]  # by bytes, whatever the server's language


async def refusal(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        await Store.open(DatabaseUrl(url))
    cause: BaseException | None = caught.value
    assert "opensesame" not in str(cause)
    return str(cause)


async def test_every_reason_not_to_open_is_named_with_its_remedy(postgresql: Cluster, monkeypatch: Any) -> None:
    monkeypatch.setattr(engine_module, "_RETRY_AT_START", 0.1)
    port = postgresql.port
    assert "password" in await refusal(f"postgresql://scrapy:opensesame@127.0.0.1:{port}/postgres")
    without_tls = await refusal(f"{postgresql.url('postgres')}?sslmode=require")
    assert "has no TLS" in without_tls
    assert "Leave sslmode out" in without_tls
    assert "cannot be reached" not in without_tls
    assert "createdb nothing" in await refusal(postgresql.url("nothing"))
    assert "cannot be reached" in await refusal("postgresql://scrapy:opensesame@127.0.0.1:1/x")
    assert "the name of the host is not known" in await refusal(
        "postgresql://scrapy:opensesame@no-such-host.invalid:1/x"
    )
    for wrong in ("mysql://a:opensesame@b/c", "postgresql://a:open/sesame@b/c", "postgresql://a:opensesame@b", "x"):
        with pytest.raises(StoreError, match="is malformed") as caught:
            DatabaseUrl(wrong)
        assert "sesame" not in str(caught.value)
    url = postgresql.database()
    monkeypatch.setattr(connection_module, "OLDEST", 99)
    assert "99 or later is needed" in await refusal(url)
    monkeypatch.undo()
    await opened_once(DatabaseUrl(url))
    postgresql.query(url, "INSERT INTO schema_version (version) VALUES (9999)")
    assert "Upgrade scrapy-ext" in await refusal(url)


async def test_a_database_of_another_encoding_is_refused(postgresql: Cluster) -> None:
    url = postgresql.url("latin")
    postgresql.query(postgresql.url("postgres"), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    assert "--encoding=UTF8" in await refusal(url)


async def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("postgresql", "connection"):
        monkeypatch.delitem(sys.modules, f"scrapy_ext.server.store.engine.postgresql.{module}")
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    assert 'pip install "scrapy-ext[postgresql]"' in await refusal("postgresql://a:opensesame@b/c")


def test_an_address_shows_no_password() -> None:
    url = DatabaseUrl("postgresql://me:opensesame@db.example:5433/crawls?password=opensesame&sslmode=require")
    assert str(url) == "postgresql://me@db.example:5433/crawls"
    assert repr(url) == "DatabaseUrl('postgresql://me@db.example:5433/crawls')"


async def test_what_a_stopped_process_has_locked_is_free_for_who_takes_its_jobs_over(
    store: Store, store_database: DatabaseUrl
) -> None:
    """Stopped in the middle of a command: none of PostgreSQL's limits ends its session then."""
    name = "a-host-4242-00c0ffee"
    await store.nodes.join(StoredNode(name, "a-host", 1, frozenset(), 1, 1, 1, draining=False))
    await store.jobs.add(1, [NewJob("spider", JobState.PENDING, {})], "tests")
    (attempt,) = await store.attempts.place()
    stopped = await asyncpg.connect(
        store_database.secret, server_settings={"application_name": application_name("a-host", 4242)}
    )
    other = await asyncpg.connect(store_database.secret, server_settings={"application_name": "scrapy-ext a-host 42"})
    await stopped.execute("BEGIN")
    await stopped.execute("SELECT FROM attempts FOR SHARE")
    runner = await store.with_pool(store_database, NODE)
    with pytest.raises(StoreBusyError):
        await runner.attempts.release_jobs(name, 1, 5)
    assert await runner.attempts.orphaned() == [name]
    assert await runner.attempts.release_jobs(name, 0, 5) == [attempt]
    assert await other.fetchval("SELECT 1") == 1, "sessions of others go on"
    await other.close()
    stopped.terminate()
    await runner.close()


#: Columns of rows that are written again and again.
CHANGING = {
    "record_totals": ("records", "skipped", "bytes", "stored", "revision"),
    "record_streams": ("records",),
    "frontier_slots": ("last_batch", "runs", "stamp"),
    "nodes": ("heartbeat",),
    "last_commits": ("mark", "at"),
}
INDEXED = """SELECT i.indrelid::regclass::text, a.attname FROM pg_index i
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum > 0
    WHERE i.indrelid = ANY ($1::text[]::regclass[])
    AND (a.attnum = ANY (i.indkey) OR pg_get_expr(i.indpred, i.indrelid) ~ ('\\y' || a.attname || '\\y'))"""


async def test_what_changes_with_each_write_is_in_no_index_and_in_no_condition_of_one(
    store_database: DatabaseUrl,
) -> None:
    """Each update would add an entry to every index of the table, which a vacuum has to remove."""
    await opened_once(store_database)
    connection = await asyncpg.connect(store_database.secret)
    try:
        indexed = {tuple(row) for row in await connection.fetch(INDEXED, list(CHANGING))}
    finally:
        await connection.close()
    assert ("record_totals", "removed") in indexed
    assert not indexed & {(table, column) for table, columns in CHANGING.items() for column in columns}


async def test_an_inspection_knows_the_buffers_and_the_indexes_of_collections(postgresql: Cluster) -> None:
    url = DatabaseUrl(postgresql.database())
    assert (await of_database(url)).keys == 0
    await (await Store.open(url)).close()
    found = await of_database(url)
    connection = await asyncpg.connect(url.secret)
    version = await connection.fetchval("SHOW server_version")
    await connection.close()
    assert found.engine == f"PostgreSQL {version.split()[0]}"
    assert found.buffers == 64 << 20
    assert found.keys > 0

"""Space of deleted data: its removal, its return to the file system, and the use of storage, on both engines."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import msgspec
import pytest
from scrapy.settings import Settings

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.commands.platform import load, parser_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.store import projects as project_store
from scrapy_ext.server.store import removals as removing
from scrapy_ext.server.store import usage as usage_store
from scrapy_ext.server.store.collections.collections import Collection
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.records.chunks import ITEMS
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.store.removals import Freed
from tests.support.eventually import eventually_async
from tests.support.packing import pack_chunk
from tests.support.stores import Clock, Where

#: Random bytes of a record, which has twice as many.
_LARGE = 250_000


def large(number: int) -> list[tuple[bytes, bytes]]:
    return [(b"%d" % n, b'"%b"' % os.urandom(_LARGE).hex().encode()) for n in range(number)]


def collection(name: str, project: int = 1) -> Collection:
    return Collection(project, CollectionType.STORE, name)


async def query(store: Store, sql: str) -> list[Row]:
    async def operation(tx: Transaction) -> list[Row]:
        return await tx.fetch(sql)

    return await store._engine.read(operation)


async def finished(store: Store, project: int = 1, *, items: int = 10) -> JobKey:
    (key,) = await store.jobs.add(project, [NewJob("s", JobState.FINISHED, {})], "x")
    assert isinstance(key, JobKey)
    lines = [b'{"n":%d}' % n for n in range(items)]
    await store.items.write(key, 0, [pack_chunk(ITEMS, lines, [{"n": n} for n in range(items)])])
    return key


async def test_the_removal_goes_on_after_the_highest_number_of_a_project(store: Store, look: Any) -> None:
    for project in (MAX_NUMBER, 1):
        await store.collections.write(collection("c", project), [(b"k", b"1")])
        await store.collections.drop(project, "c")
        assert (await store.purge()).owners == 1
    await store.collections.write(collection("c", 1), [(b"k", b"1")])
    await store.collections.write(collection("c", MAX_NUMBER), [(b"k", b"1")])
    for project in (1, MAX_NUMBER):
        await store.collections.drop(project, "c")
    assert (await store.purge()).owners == 2
    assert await look("SELECT count(*) FROM removals") == [(0,)]


@pytest.mark.long
async def test_the_file_of_a_new_store_shrinks_after_a_deletion_while_it_is_written_to(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for n in range(4):
        await store.collections.write(collection("old"), [(b"%d %b" % (n, k), v) for k, v in large(20)])
        await store.collections.write(collection("kept"), [(b"%d %b" % (n, k), v) for k, v in large(5)])
    full = await store.size()
    await store.collections.drop(1, "old")
    await store.purge()
    assert (await store.space()).free
    written = asyncio.create_task(store.collections.write(collection("new"), large(3)))
    assert await store.return_space() > 25_000_000
    await written
    await eventually_async(store.size, lambda size: size < full - 25_000_000)
    assert await store.return_space() == 0  # the rest is kept for new data
    await store.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT count(*) FROM collection_records").fetchone() == (23,)


@pytest.mark.long
async def test_vacuum_converts_a_file_of_an_earlier_version_that_a_server_has_open(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, opened BIGINT)")
    store = await Store.open(tmp_path)
    await store.collections.write(collection("old"), large(40))
    await store.collections.drop(1, "old")
    await store.purge()
    assert await store.return_space() == 0
    await asyncio.to_thread(_vacuum, tmp_path)
    await store.collections.write(collection("new"), large(40))
    await store.collections.drop(1, "new")
    await store.purge()
    assert await store.return_space() > 0
    await store.collections.write(collection("last"), large(2))
    await store.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _vacuum(folder: Path) -> None:
    chosen = load("vacuum")
    assert chosen.run(Settings(), parser_of(chosen).parse_args(["--data", str(folder)])) == 0


async def test_every_project_has_its_turn_and_the_oldest_deletion_is_removed_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for project, names in ((1, ("b", "a")), (2, ("c",))):
        for name in names:
            await store.collections.write(collection(name, project), [(b"%02d" % n, b"1") for n in range(20)])
    numbers = {
        name: number
        for number, name in await query(store, "SELECT collection, name FROM collections WHERE project = 1")
    }
    monkeypatch.setattr(removing, "_now", iter(range(10**9)).__next__)
    for project, name in ((1, "b"), (1, "a"), (2, "c")):
        await store.collections.drop(project, name)
    monkeypatch.undo()
    order = []
    project = -1
    for _ in range(3):
        step = await store._engine.write(removing._purge_step, project, 0.001, alone=False)
        assert step.project is not None
        order.append(project := step.project)
    assert order == [1, 2, 1]
    left = dict(await query(store, "SELECT collection, count(*) FROM collection_records WHERE project = 1 GROUP BY 1"))
    assert (left[numbers["a"]], left[numbers["b"]]) == (20, 10)
    await store.purge()
    assert await query(store, "SELECT count(*) FROM collection_records") == [(0,)]


async def test_two_servers_purge_one_after_the_other(store: Store, where: Where) -> None:
    await store.collections.write(collection("c"), [(b"%04d" % n, b"1") for n in range(50)])
    await store.collections.drop(1, "c")
    first = await store._engine.write(removing._purge_step, -1, 0.001, alone=True)
    assert first.freed.rows == 5
    await store._engine.write(_set_turn, removing._now() + 5000)
    other = await Store.open(where)
    second = await other._engine.write(removing._purge_step, -1, 0.001, alone=True)
    assert (second.project, second.freed) == (None, Freed())
    assert 0 < second.wait <= 5
    # The clock of a server may be wrong.
    await store._engine.write(_set_turn, removing._now() + 10**7)
    assert (await other._engine.write(removing._purge_step, -1, 1, alone=True)).freed.rows == 45
    await other.close()


async def _set_turn(tx: Transaction, until: int) -> None:
    await tx.execute("UPDATE locks SET created = $1 WHERE name = 'purge'", until)


async def test_what_was_removed_is_counted_by_project(store: Store) -> None:
    key = await finished(store)
    await store.collections.write(collection("c", 2), [(b"k", b"12345")])
    (stored,) = (await query(store, "SELECT stored FROM record_totals WHERE kind = 'items'"))[0]
    before = await store.usage.of_project(1)
    assert {part.name: part.bytes for part in before.kinds}["items"] == stored > 0
    assert [(part.name, part.jobs, part.records) for part in before.spiders] == [("s", 1, 10)]
    assert [(part.name, part.jobs) for part in before.ages] == [("7d", 1)]
    await store.jobs.delete(1, [key], "x")
    await store.collections.drop(2, "c")
    waiting = (await store.usage.of_project(1)).deleted
    assert (waiting.waiting, waiting.removed_bytes) == (stored, 0)
    freed = await store.purge()
    assert freed.owners == 7  # with the staged items
    assert freed == store.freed
    after = await store.usage.of_project(1)
    assert "items" not in {part.name for part in after.kinds if part.bytes}
    gone = after.deleted
    assert (gone.owners, gone.waiting, gone.removed_bytes) == (0, 0, stored)
    whole = await store.usage.of_all()
    assert whole.deleted.removed_bytes == stored + 5
    assert await store.projects.holdings(1) == {}


async def test_use_of_storage_has_every_kind_and_nothing_of_what_was_deleted(store: Store) -> None:
    await store.collections.write(collection("c"), [(b"%05d" % n, b"123") for n in range(4500)])
    await store.collections.write(collection("gone"), [(b"12345", b"12345")])
    await store.frontier.add(Slot(1, "f", "0"), [QueuedRequest(b"%d" % n, b'["%d",0]' % n, None, 0) for n in range(9)])
    await store.activity.add(1, [b'{"event":"x"}'])
    await store.collections.drop(1, "gone")
    usage = await store.usage.of_project(1)
    kinds = {part.name: part for part in usage.kinds}
    assert usage.counted is not None
    assert (kinds["collections"].records, kinds["collections"].bytes) == (4500, 4500 * 8)
    assert kinds["frontiers"].records == 9
    assert kinds["activity"].records == 1
    assert usage.deleted.waiting == 10
    assert usage.bytes == sum(part.bytes for part in usage.kinds)
    assert [part.name for part in (await store.usage.of_all()).projects] == ["1"]


async def test_a_count_that_took_long_is_kept_longer_also_after_deletions(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await finished(store)
    first = await store.usage.of_project(1)
    monkeypatch.setattr(usage_store, "_WAIT", 0.0)  # any count takes longer
    await store.jobs.delete(1, [key], "x")
    assert await store.usage.of_project(1) == msgspec.structs.replace(first, deleted=ANY)
    clock.now += 30_000
    monkeypatch.setattr(usage_store, "_WAIT", 60.0)
    assert "items" not in {part.name for part in (await store.usage.of_project(1)).kinds if part.bytes}


async def test_the_size_of_a_large_project_is_counted_again_after_half_a_minute(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await finished(store)
    small = await store.projects.holdings(1)
    await finished(store)
    assert (await store.projects.holdings(1))["items"].records == 2 * small["items"].records
    monkeypatch.setattr(project_store, "LARGE", 1)
    large = await store.projects.holdings(1)
    await finished(store)
    assert await store.projects.holdings(1) == large
    clock.now += project_store.KEPT
    assert (await store.projects.holdings(1))["items"].records == 3 * small["items"].records


async def test_bytes_of_records_of_earlier_versions_are_counted(store: Store) -> None:
    keys = [await finished(store), await finished(store)]
    (running,) = await store.jobs.add(1, [NewJob("s", JobState.RUNNING, {})], "x")
    assert isinstance(running, JobKey)
    await store.items.write(running, 0, [pack_chunk(ITEMS, [b"{}"], [{}])])
    counted = "SELECT job, stored FROM record_totals WHERE kind = 'items' ORDER BY job"
    before = await query(store, counted)

    async def forget(tx: Transaction) -> None:
        await tx.execute("UPDATE record_totals SET stored = NULL, uncounted = 1")

    await store._engine.write(forget)
    assert await store.count_stored() == len(keys)
    assert await query(store, counted) == [*before[:2], (running.job, None)]
    await store.jobs.delete(1, keys, "x")
    assert await store.count_stored() == 0


#: Purges a few rows at a time, and is killed within the step of a number, before its commit.
_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from scrapy_ext.server.store import Store, removals
from scrapy_ext.server.store.engine.address import DatabaseUrl

step, number = removals._purge_step, 0

async def killed(*arguments, **options):
    global number
    number += 1
    done = await step(*arguments, **options)
    if number == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return done

async def main():
    where = sys.argv[1]
    store = await Store.open(DatabaseUrl(where) if "://" in where else Path(where))
    store._purge._share = 0.001
    await store.purge()

removals._purge_step, removals._STEP_SECONDS, removals.PAUSE = killed, (0, 100), 0
asyncio.run(main())
"""


@pytest.mark.long
async def test_a_removal_that_is_killed_at_any_step_ends_later_and_takes_nothing_else(
    store: Store, where: Where
) -> None:
    gone, kept = await finished(store), await finished(store)
    for name in ("gone", "kept"):
        await store.collections.write(collection(name), [(b"%02d" % n, b"1") for n in range(12)])
    await store.jobs.delete(1, [gone], "x")
    await store.collections.drop(1, "gone")
    place = where.secret if isinstance(where, DatabaseUrl) else str(where)
    for step in (1, 2, 4):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, place, str(step))
        assert await process.wait() == -signal.SIGKILL
        assert [part.key async for part in store.items.scan(Span(1), (0, 0, 0))] == [kept]
        assert len(await query(store, "SELECT 1 FROM removals")) > 0
    await store.purge()
    assert await query(store, "SELECT count(*) FROM removals") == [(0,)]
    assert await query(store, "SELECT job, count(*) FROM record_chunks GROUP BY job") == [(kept.job, 1)]
    assert await query(store, "SELECT count(*) FROM collection_records") == [(12,)]


@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
async def test_autovacuum_of_large_tables_begins_early(store: Store, where: Any) -> None:
    assert isinstance(where, DatabaseUrl)
    rows = await query(
        store,
        """SELECT c.relname, array_to_string(c.reloptions, ','), array_to_string(t.reloptions, ',')
           FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.relispartition""",
    )
    assert len(rows) == 40
    assert all("autovacuum_vacuum_scale_factor=0.02" in options for row in rows for options in row[1:])

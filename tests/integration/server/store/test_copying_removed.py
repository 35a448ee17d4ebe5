"""Backups and copies while rows are being removed: they have what the store has afterwards, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.versions import SpiderInfo
from scrapy_ext.server.store import Store, copying, removals
from scrapy_ext.server.store.collections.collections import Collection, RecordSelection
from scrapy_ext.server.store.collections.selections import prefix_range
from scrapy_ext.server.store.comments import CommentSubject
from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.records.chunks import ITEMS, LOGS, MAX_LINES, REQUESTS, SAMPLES
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.store.records.removal import remove_records
from scrapy_ext.server.store.records.segments import Segment, pack_segments
from scrapy_ext.server.store.versions import NewVersion
from tests.support.packing import pack_chunk
from tests.support.stores import Clock

#: Share of a whole step of a removal: a few rows.
SHARE = 0.002
STAGED = Collection(1, CollectionType.STORE, "scrapy_commits")
SNAPSHOTS = Collection(1, CollectionType.CACHED_STORE, "scrapy_snapshots")
#: Tables that report removals.
REPORTS = {"removals", "freed"}
RECORDS = {
    ITEMS: {"name": "a"},
    LOGS: {"time": 1, "level": 20, "message": "a"},
    REQUESTS: {"time": 1, "method": "GET", "url": "http://a/", "status": 200, "duration": 1, "rs": 1},
    SAMPLES: [1, 2, 3, 4, 5],
}


async def new_job(store: Store) -> JobKey:
    """A finished job with data of each kind."""
    (key,) = await store.jobs.add(1, [NewJob("books", JobState.FINISHED, {})], "x")
    assert isinstance(key, JobKey)
    own, journal = f"job-{key.spider}-{key.job}", f"commits-{key.spider}-{key.job}"
    for kind, record in RECORDS.items():
        for _ in range(2):  # the largest chunks, which are not merged
            packed = pack_chunk(kind, [b"{}"] * MAX_LINES, [record] * MAX_LINES)
            await getattr(store, kind.name).write(key, None, [packed])
    for number in range(6):
        await store.comments.add(CommentSubject(key.entity(0), f"f{number}"), "a", "text")
    for frontier, slot in ((own, "0"), (own, "dead-letters"), (own, journal), ("shared", journal)):
        queued = [QueuedRequest(b"%d" % number, b"[]", b"1", number) for number in range(6)]
        await store.frontier.add(Slot(1, frontier, slot), queued)
    staged = [f"{frontier}/{journal}/a/{number}.0" for frontier in (own, "shared") for number in range(6)]
    await store.collections.write(STAGED, [(name.encode(), b"{}") for name in staged])
    await store.collections.write(SNAPSHOTS, [(f"{own}/snapshots/{number}".encode(), b"{}") for number in range(6)])
    return key


async def delete_some(store: Store) -> JobKey:
    """Fill the store, delete one of each kind, and return the job that stays."""
    doomed, kept = await new_job(store), await new_job(store)
    for name in ("gone", "kept"):
        await store.collections.write(Collection(1, CollectionType.STORE, name), [(b"%d" % n, b"1") for n in range(6)])
        await store.frontier.add(Slot(1, name, "0"), [QueuedRequest(b"%d" % n, b"[]", None, n) for n in range(6)])
    for number in range(2):
        deploy = await store.versions.begin(1, NewVersion(f"v{number}", "egg", "", 2, "f", ""), "x")
        for piece in range(3):
            await store.versions.put(1, deploy, piece, b"piece")
        await store.versions.arrived(1, deploy)
        await store.versions.ready(1, deploy, [SpiderInfo("s")])
    assert await store.jobs.delete(1, [doomed], "x") == 1
    await store.collections.drop(1, "gone")
    await store.frontier.delete_slot(Slot(1, "gone", "0"))
    assert await store.versions.remove(1, "v0")
    await store._engine.write(remove_records, kept, ["logs"], 1)
    return kept


async def copied(store: Store, folder: Path) -> dict[str, copying.Digest]:
    """Copy the store into a data directory, with the check of the copy; return its contents."""
    folder.mkdir()
    async with copying.new_file(folder / FILE, 1) as target, store._engine.snapshot() as snapshot:
        return await copying.copy(snapshot, target, "a", 1, name="b", replace=False, report=lambda *_: None)


async def contents(store: Store) -> dict[str, copying.Digest]:
    """Return digests of the rows that a copy has, without the tables that report removals."""
    async with store._engine.snapshot() as snapshot:
        return {
            table.name: await copying._digest(snapshot, table, lambda *_: None)
            for table in copying.tables()
            if table.name not in REPORTS
        }


@pytest.mark.long
async def test_a_copy_at_any_step_of_a_removal_is_the_copy_after_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removals, "_STEP_SECONDS", (0, 100))  # one owner in each step
    kept = await delete_some(store)
    first = await copied(store, tmp_path / "first")
    found = []
    while await store._engine.read(removals._any_left):
        found.append(await contents(store))
        await store._engine.write(removals._purge_step, -1, SHARE, alone=False)
    last = await contents(store)
    assert len(found) > 20
    assert [place for place, each in enumerate(found) if each != last] == []
    assert {name: digest for name, digest in first.items() if name not in REPORTS} == last
    # Nothing that stays is left out.
    rows = {name: await store._engine.read(_count, name) for name in last}
    assert rows == {name: digest.rows for name, digest in last.items()}
    assert (rows["record_chunks"], rows["comments"], rows["collection_records"]) == (6, 6, 24)
    await check_readable(tmp_path / "first", kept)


async def _count(tx: Any, table: str) -> int:
    row = await tx.fetchrow(f"SELECT count(*) FROM {table}")
    return int(row[0])


async def check_readable(folder: Path, kept: JobKey) -> None:
    """A server on a copy shows what stays, nothing of what was deleted, and removes nothing else."""
    store = await Store.open(folder, Clock())
    gone = kept._replace(job=kept.job - 1)
    try:
        for _ in range(2):
            every = RecordSelection((prefix_range(b""),))
            staged = [record.key async for page in store.collections.scan(STAGED, every) for record in page]
            assert len(staged) == 12
            assert all(b"/commits-1-2/" in key for key in staged)
            snapshots = [record.key async for page in store.collections.scan(SNAPSHOTS, every) for record in page]
            assert len(snapshots) == 6
            assert all(key.startswith(b"job-1-2/") for key in snapshots)
            assert [part.key async for part in store.items.scan(Span(1), (0, 0, 0))] == [kept] * 2
            removed = [await store.items.removal(gone), await store.logs.removal(kept), await store.items.removal(kept)]
            assert [each is not None for each in removed] == [True, True, False]
            assert [version.version for version in await store.versions.listed(1)] == ["v1"]
            await store.purge()
    finally:
        await store.close()


async def test_a_copy_during_a_restore_has_the_job_archived(store: Store, tmp_path: Path) -> None:
    (key,) = await store.jobs.add(1, [NewJob("books", JobState.FINISHED, {})], "x")
    assert isinstance(key, JobKey)
    await store.items.write(key, None, [pack_chunk(ITEMS, [b"{}"], [{}])])
    await store._engine.write(remove_records, key, ["items"], 1, "file:///archive")
    await store.purge()
    restore = await store.restores.claim(key)
    assert await store.restores.prepare(restore)
    await store.restores.write(restore, "items", [(0, pack_segments([Segment(1, [b"{}"])]))])
    assert (await copied(store, tmp_path / "copy"))["record_chunks"].rows == 0
    # The restore of the source goes on, and the copy can restore the job itself.
    await store.restores.finish(restore)
    other = await Store.open(tmp_path / "copy")
    try:
        state = await other.restores.state(key)
        assert state is not None
        assert state.state == "archived"
        assert await other.restores.prepare(await other.restores.claim(key))
    finally:
        await other.close()
    assert (await copied(store, tmp_path / "after"))["record_chunks"].rows == 1

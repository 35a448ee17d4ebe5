"""Old rows are removed in steps, on both engines; what is younger, in use or a user's own stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.collections import EXPIRY_MS, CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.collections.collections import Collection
from scrapy_ext.server.store.comments import CommentSubject
from scrapy_ext.server.store.expiry import expiry as expiry_jobs
from scrapy_ext.server.store.expiry import steps as expiry_steps
from scrapy_ext.server.store.expiry.expiry import DAY, GIVEN_UP
from scrapy_ext.server.store.expiry.frontiers import GRACE
from scrapy_ext.server.store.expiry.steps import Steps
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.versions import NewVersion
from tests.integration.server.store.records.test_records import packed
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import ForkedServer
from tests.support.stores import ENGINES, Clock

Look = Callable[[str], Any]
STAGED = Collection(1, CollectionType.STORE, "scrapy_commits")


async def removed(steps: Steps) -> int:
    return sum([rows async for rows in steps])


async def added(store: Store, state: JobState = JobState.RUNNING, spider: str = "books") -> JobKey:
    (key,) = await store.jobs.add(1, [NewJob(spider, state, {"tags": ["t"]})], "me")
    assert isinstance(key, JobKey)
    return key


async def finished(store: Store, key: JobKey, reason: str = "finished") -> None:
    await store.jobs.change(1, [Change(key, JobState.FINISHED, {"close_reason": reason})], "me")


# ── deleted jobs ──


async def test_a_deleted_job_is_listed_for_the_days_and_then_nothing_of_it_is_left(
    store: Store, clock: Clock, look: Look
) -> None:
    key, other = await added(store), await added(store)
    await store.items.write(key, 0, packed([{"a": 1}]))
    await store.comments.add(CommentSubject(EntityKey(*key, 0)), "me", "fine")
    assert await store.jobs.delete(1, [key], "me") == 1
    clock.now += 30 * DAY
    assert await removed(store.expiry.deleted_jobs(30)) == 0  # its data waits to be removed
    assert await store.jobs.get(key) is not None
    await store.purge()
    clock.now -= 1
    assert await removed(store.expiry.deleted_jobs(30)) == 0
    clock.now += 1
    assert await removed(store.expiry.deleted_jobs(30)) == 1
    assert await store.jobs.get(key) is None
    assert await store.jobs.get(other) is not None
    for table in ("record_totals", "record_counts", "record_chunks", "comments", "removals"):
        assert await look(f"SELECT count(*) FROM {table}") == [(0,)]
    assert await look("SELECT job FROM jobs UNION ALL SELECT job FROM job_tags") == [(other.job,)] * 2
    # Its number and its data do not come back.
    assert (await added(store)).job == other.job + 1
    with pytest.raises(ContractError):
        await store.items.write(key, 0, packed([{"a": 1}]))
    with pytest.raises(ContractError):
        await store.comments.add(CommentSubject(EntityKey(*key, 0)), "me", "late")


async def test_a_job_stays_while_a_node_has_it_and_while_the_clock_is_set_back(
    store: Store, clock: Clock, change: Any
) -> None:
    key = await added(store)
    await store.jobs.delete(1, [key], "me")
    await store.purge()
    await change(
        f"""INSERT INTO attempts (project, spider, job, attempt, node, units, placed)
            VALUES (1, 1, {key.job}, 1, 'n', 1, 1)"""
    )
    assert await removed(store.expiry.deleted_jobs(0)) == 0
    await change("DELETE FROM attempts")
    clock.now -= 5 * DAY
    assert await removed(store.expiry.deleted_jobs(0)) == 0
    clock.now += 5 * DAY
    assert await removed(store.expiry.deleted_jobs(0)) == 1


async def test_records_that_came_after_the_removal_are_removed_before_the_job_is_forgotten(
    store: Store, look: Look, change: Any
) -> None:
    key = await added(store)
    await store.jobs.delete(1, [key], "me")
    await store.purge()
    await change(
        f"""INSERT INTO record_chunks (project, kind, spider, job, start, records, ts, body)
            VALUES (1, 'items', 1, {key.job}, 0, 1, 1, {{bytes:00}})"""
    )
    assert await removed(store.expiry.deleted_jobs(0)) == 0
    assert await store.jobs.get(key) is not None
    await store.purge()
    assert await removed(store.expiry.deleted_jobs(0)) == 1
    assert await look("SELECT count(*) FROM record_chunks") == [(0,)]


async def test_an_interrupted_removal_of_jobs_continues_and_two_servers_share_it(
    store: Store, where: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry_jobs, "_AT_ONCE", 2)
    keys = [await added(store) for _ in range(9)]
    await store.jobs.delete(1, keys, "me")
    await store.purge()
    interrupted = store.expiry.deleted_jobs(0)
    assert await anext(interrupted) == 2
    await interrupted.aclose()
    again = await Store.open(where, clock)
    try:
        counts = await asyncio.gather(removed(store.expiry.deleted_jobs(0)), removed(again.expiry.deleted_jobs(0)))
        assert sum(counts) + await removed(again.expiry.deleted_jobs(0)) == 7
    finally:
        await again.close()
    assert [await store.jobs.get(key) for key in keys] == [None] * 9


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_server_that_was_killed_forgets_deleted_jobs_at_its_next_start(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue("postgresql").database() if engine == "postgresql" else None
    with ForkedServer(tmp_path / "data", database=database, options=["--no-runner"]) as first:
        async with Http(first.url, first.platform_key) as http:
            job = (await http.post("/api/run.json", {"project": "1", "spider": "books"})).json["jobid"]
            deleted = await http.post("/api/jobs/delete.json", {"project": "1", "job": job})
            assert deleted.status == 200
        first.kill()
    with ForkedServer(tmp_path / "data", database=database, options=["--no-runner", "--keep-deleted", "0"]) as second:
        async with Http(second.url, second.platform_key) as http:
            forgotten = 'scrapy_ext_housekeeping_removed_total{task="deleted jobs"} 1'
            await eventually_async(lambda: metrics(http), lambda text: forgotten in text)
            assert (await http.get(f"/api/jobs/list.json?project=1&job={job}&state=deleted")).json["jobs"] == []


async def metrics(http: Http) -> str:
    return (await http.get("/metrics")).body.decode()


# ── activity ──


async def numbers(store: Store, project: int = 1) -> list[int]:
    return [message.number async for page in store.activity.scan(project) for message in page][::-1]


async def test_activity_goes_by_age_and_by_number_and_the_newest_message_stays(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry_steps, "STEP_BYTES", 5)
    for _ in range(4):
        await store.activity.add(1, [b'{"a":1}'])
        await store.activity.add(2, [b'{"a":1}'])
        clock.now += DAY
    assert await removed(store.expiry.messages(4, 100)) == 2  # equal age
    assert await numbers(store) == await numbers(store, 2) == [2, 3, 4]
    clock.now -= 3 * DAY
    assert await removed(store.expiry.messages(4, 100)) == 0
    clock.now += 3 * DAY
    assert await removed(store.expiry.messages(100, 2)) == 2
    assert await numbers(store) == [3, 4]
    assert await removed(store.expiry.messages(0, 100)) == 2
    assert await numbers(store) == [4]
    await store.activity.add(1, [b'{"a":2}'])
    assert await store.activity.newest(1) == 5


# ── records of collections ──


async def test_expired_records_of_idle_collections_go_and_others_stay(
    store: Store, clock: Clock, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry_steps, "STEP_BYTES", 2)
    plain, cached, versioned = (Collection(1, CollectionType(kind), "c") for kind in ("s", "cs", "vcs"))
    for which in (plain, cached, versioned):
        await store.collections.write(which, [(b"%d" % number, b"{}") for number in range(5)])
    clock.now += EXPIRY_MS - 1
    await store.collections.write(cached, [(b"0", b'{"new":1}')])
    assert await removed(store.expiry.expired_records()) == 0
    clock.now += 1
    assert await removed(store.expiry.expired_records()) == 4 + 5
    assert await look("SELECT count(*) FROM collection_records") == [(5 + 1,)]
    assert await store.collections.get(cached, b"0") is not None


# ── frontiers and staged items ──


async def queue(store: Store, frontier: str, *slots: str) -> None:
    for slot in slots:
        await store.frontier.add(Slot(1, frontier, slot), [QueuedRequest(b"a", b'["a",null]', None, 0)])


async def drained(store: Store, frontier: str, slot: str) -> None:
    for batch in await store.frontier.read(Slot(1, frontier, slot), 1):
        await store.frontier.delete_batches(Slot(1, frontier, slot), [batch.id])


def own(key: JobKey) -> str:
    return f"job-{key.spider}-{key.job}"


def journal(key: JobKey) -> str:
    return f"commits-{key.spider}-{key.job}"


async def test_frontiers_of_complete_jobs_go_and_those_of_jobs_that_may_be_resumed_stay(
    store: Store, clock: Clock
) -> None:
    complete, stopped, running = [await added(store) for _ in range(3)]
    for key in (complete, stopped, running):
        await queue(store, own(key), "0", journal(key))
        await drained(store, own(key), "0")
    await queue(store, "job-1-99", "0")
    await queue(store, "job-1-1-mine", "0")
    await queue(store, "shared", "0", journal(complete))
    await finished(store, complete)
    await finished(store, stopped, "shutdown")
    clock.now += GRACE - 1
    assert await removed(store.expiry.frontiers(30)) == 0
    clock.now += 1
    assert await removed(store.expiry.frontiers(30)) == 2
    assert await store.frontier.frontiers(1) == sorted(
        ["job-1-1-mine", own(stopped), own(running), "job-1-99", "shared"]
    )


async def test_a_complete_job_that_runs_again_keeps_its_frontier(store: Store, clock: Clock) -> None:
    key = await added(store)
    await queue(store, own(key), journal(key))
    await finished(store, key)
    clock.now += GRACE
    await store.jobs.change(1, [Change(key, JobState.RUNNING, {})], "me")
    assert await removed(store.expiry.frontiers(0)) == 0


async def test_dead_letters_stay_for_the_days_and_while_another_job_works_on_them(store: Store, clock: Clock) -> None:
    key = await added(store)
    await queue(store, own(key), "dead-letters", journal(key))
    await finished(store, key)
    clock.now += 30 * DAY - 1
    assert await removed(store.expiry.frontiers(30)) == 0
    clock.now += 1
    later = await added(store)
    await queue(store, own(key), journal(later))
    assert await removed(store.expiry.frontiers(30)) == 0
    await finished(store, later)
    clock.now += 30 * DAY
    assert await removed(store.expiry.frontiers(30)) == 3
    assert await store.frontier.frontiers(1) == []
    await store.purge()


async def test_staged_items_of_jobs_that_are_over_go_and_others_stay(store: Store, clock: Clock, look: Look) -> None:
    over, stopped = await added(store), await added(store)
    keys = [f"{own(key)}/{journal(key)}/p/{number}.0" for key in (over, stopped) for number in range(3)]
    keys += [f"shared/{journal(over)}/p/1.0", "job-1-99/commits-1-99/p/1.0", f"{own(over)}/odd", "other"]
    await store.collections.write(STAGED, [(key.encode(), b"{}") for key in keys])
    await finished(store, over)
    await finished(store, stopped, "cancelled")
    assert await removed(store.expiry.staged_items()) == 0
    clock.now += GRACE
    assert await removed(store.expiry.staged_items()) == 3
    rows = await look("SELECT key FROM collection_records")
    assert sorted(bytes(row[0]).decode() for row in rows) == sorted(keys[3:])


# ── versions ──


async def test_an_upload_that_was_given_up_goes_with_its_pieces(store: Store, clock: Clock, look: Look) -> None:
    new = NewVersion("1.0", "egg", "", 4, "f" * 64, "")
    deploy = await store.versions.begin(1, new, "me")
    await store.versions.put(1, deploy, 0, b"ab")
    clock.now += GIVEN_UP - 1
    assert await removed(store.expiry.uploads()) == 0
    clock.now += 1
    assert await removed(store.expiry.uploads()) == 1
    await store.purge()
    with pytest.raises(ContractError, match="Deploy the version again"):
        await store.versions.put(1, deploy, 1, b"cd")
    assert await look("SELECT count(*) FROM version_pieces") == [(0,)]

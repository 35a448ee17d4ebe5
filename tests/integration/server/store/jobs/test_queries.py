"""Lists and counts of jobs, on both engines: the same whichever way they are read, and none reads all jobs."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.imports import FinishedImport, ImportedSpider
from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store, schema
from scrapy_ext.server.store.jobs import queries, windows
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, tags_of
from scrapy_ext.server.store.jobs.states import Change
from tests.support.archives import chunks_of
from tests.support.stores import WRONG_COUNTS, Clock

_SPIDERS = ("books", "shops", "news")
_TAGS = ("daily", "rare")
_FILTERS = (
    JobFilter(),
    JobFilter(states=SHOWN_STATES),
    JobFilter(spider="shops", states=SHOWN_STATES),
    JobFilter(spider="unknown"),
    JobFilter(spider_id=3, states=(JobState.RUNNING, JobState.PENDING)),
    JobFilter(spider_ids=(1, 3), states=(JobState.FINISHED, JobState.RUNNING)),
    JobFilter(spider_ids=(2,)),
    JobFilter(spider_ids=()),
    JobFilter(has_tags=("rare",)),
    JobFilter(has_tags=("rare", "daily"), states=SHOWN_STATES),
    JobFilter(has_tags=("rare",), spider="books", states=SHOWN_STATES),
    JobFilter(has_tags=("daily",), lacks_tags=("rare",)),
    JobFilter(lacks_tags=("daily",), states=(JobState.FINISHED,)),
    JobFilter(startts=1_700_000_000_004, endts=1_700_000_000_008),
    JobFilter(has_tags=("daily",), startts=1_700_000_000_003),
    JobFilter(keys=(JobKey(1, 1, 1), JobKey(1, 2, 3), JobKey(1, 9, 9), JobKey(1, 2, 3))),
    JobFilter(keys=(JobKey(1, 1, 1), JobKey(1, 2, 3), JobKey(1, 3, 3)), has_tags=("daily",)),
)


async def fill(store: Store, clock: Clock, number: int = 60) -> list[StoredJob]:
    """Add jobs of some spiders, tags and states, several of them at the same time; return all of them."""
    chance, keys = random.Random(1), []
    for place in range(number):
        tags = [tag for tag in _TAGS if chance.random() < (0.8 if tag == "daily" else 0.1)]
        new = NewJob(chance.choice(_SPIDERS), JobState.RUNNING, {"tags": tags})
        keys += await store.jobs.add(1, [new], "me")
        clock.now += place % 5 == 0
    chance.shuffle(keys)
    for state, some in ((JobState.FINISHED, keys[: number // 2]), (JobState.DELETED, keys[: number // 6])):
        for key in some:
            await store.jobs.change(1, [Change(key, state, {})], "me")
            clock.now += chance.random() < 0.3
    await store.jobs.add(1, [NewJob(name, JobState.PENDING, {"tags": ["rare"]}) for name in _SPIDERS], "me")
    return [job async for page in store.jobs.scan(1) for job in page]


def expected(jobs: list[StoredJob], which: JobFilter) -> list[StoredJob]:
    def matches(job: StoredJob) -> bool:
        tags = set(tags_of(job.metadata))
        return (
            which.spider in (None, job.spider)
            and which.spider_id in (None, job.key.spider)
            and (which.spider_ids is None or job.key.spider in which.spider_ids)
            and (not which.states or job.state in which.states)
            and (not which.has_tags or bool(tags.intersection(which.has_tags)))
            and not tags.intersection(which.lacks_tags)
            and (which.startts is None or job.changed >= which.startts)
            and (which.endts is None or job.changed < which.endts)
            and (not which.keys or job.key in which.keys)
        )

    return sorted(filter(matches, jobs), key=lambda job: (job.changed, job.key), reverse=True)


@pytest.mark.parametrize("few", [0, 2000])
@pytest.mark.long(keep=2)
async def test_every_filter_lists_and_counts_the_same_jobs_whichever_way_they_are_read(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(queries, "_FEW", few)
    jobs = await fill(store, clock)
    for which in _FILTERS:
        wanted = expected(jobs, which)
        assert await store.jobs.listed(1, which, JobPage(1000)) == wanted, which
        assert await store.jobs.listed(1, which, JobPage(3, 2)) == wanted[2:5], which
        reverse = JobPage(3, 2, oldest_first=True)
        assert await store.jobs.listed(1, which, reverse) == wanted[::-1][2:5], which
        window = await store.jobs.window(1, which, size=4)
        assert [job.key for job in window.jobs] == [job.key for job in wanted[:4]], which
        assert window.more == (len(wanted) > 4), which
        monkeypatch.setattr(queries, "_DEEP", 0)
        assert await store.jobs.listed(1, which, JobPage(3, 2)) == wanted[2:5], which
        monkeypatch.setattr(queries, "_DEEP", 2000)
        assert await store.jobs.count(1, which) == len(wanted), which
        # A deleted job has the place that it had before.
        for place, job in enumerate(wanted):
            if job.state is not JobState.DELETED:
                assert await store.jobs.listed(1, which, JobPage(1000, 0, job.key)) == wanted[:place], which
                break
    by_state = await store.jobs.states(1)
    assert by_state == {state: len(expected(jobs, JobFilter(states=(state,)))) for state in JobState}
    assert await store.jobs.states_of_all() == {1: by_state}


async def test_a_window_has_the_newest_jobs_with_few_fields_and_their_numbers_of_records(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_STEP", 2)
    fields = {
        "close_reason": "failed",
        "tags": ["a"],
        "running_time": 1,
        "finished_time": 5,
        "frameworkstats": {"n": 1},
    }
    keys = []
    for number in range(5):
        (key,) = await store.jobs.add(1, [NewJob("books", JobState.FINISHED, {**fields, "number": number})], "me")
        assert isinstance(key, JobKey)
        await store.items.write(key, None, chunks_of(store.items, [{"a": 1}] * number) if number else [])
        keys.append(key)
        clock.now += 1
    found = await store.jobs.window(1, JobFilter(), counts=("items", "errors"))
    assert [job.key for job in found.jobs] == keys[::-1]
    assert [job.counts.items for job in found.jobs] == [4, 3, 2, 1, 0]
    assert not found.more
    read = found.jobs[0].metadata
    assert (read["close_reason"], read["tags"]) == ("failed", ["a"])
    assert "frameworkstats" not in read
    assert [job.key for job in (await store.jobs.window(1, JobFilter(), size=3)).jobs] == keys[:1:-1]


async def test_a_window_ends_where_the_metadata_of_its_jobs_is_large(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_MOST_BYTES", 250_000)
    for _ in range(5):
        await store.jobs.add(1, [NewJob("books", JobState.FINISHED, {"tags": ["a"], "text": "x" * 100_000})], "me")
        clock.now += 1
    found = await store.jobs.window(1, JobFilter())
    assert (len(found.jobs), found.more) == (3, True)
    assert all(job.metadata["tags"] == ["a"] for job in found.jobs)


async def test_imported_jobs_are_counted_while_and_after_they_are_imported(store: Store) -> None:
    (spider,) = await store.imports.add_spiders(1, [ImportedSpider("books")])
    key = JobKey(1, spider, 7)
    for _ in range(2):  # it continues where it was
        await store.imports.begin(key, "elsewhere/1/1/7", 0, "me")
    assert (await store.jobs.states(1))[JobState.RUNNING] == 1
    end = FinishedImport("elsewhere/1/1/7", {"finished_time": 5}, ["items"])
    for _ in range(2):
        await store.imports.finish(key, end, "me")
    assert await store.jobs.states(1) == {**dict.fromkeys(JobState, 0), JobState.FINISHED: 1}


class _Plans:
    """A transaction that keeps the plans of its queries of jobs."""

    def __init__(self, tx: Any, explain: str) -> None:
        self._tx = tx
        self._explain = explain
        self.plans: list[str] = []

    async def fetch(self, sql: str, *arguments: Any) -> list[Any]:
        rows = await self._tx.fetch(f"{self._explain} {sql}", *arguments)
        self.plans.append("\n".join(str(row) for row in rows))
        found: list[Any] = await self._tx.fetch(sql, *arguments)
        return found

    async def fetchrow(self, sql: str, *arguments: Any) -> Any:
        return await self._tx.fetchrow(sql, *arguments)


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_lists_are_read_in_the_order_of_an_index_and_counts_from_the_kept_numbers(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_FEW", 0)
    await fill(store, clock, 10)

    async def plan(tx: Any, operation: Callable[..., Any], *arguments: Any, **options: Any) -> list[str]:
        plans = _Plans(tx, "EXPLAIN QUERY PLAN")
        await operation(plans, 1, *arguments, **options)
        return plans.plans

    for which in _FILTERS:
        *_, listed = await store._engine.read(plan, queries.list_jobs, which, JobPage(5), counts=False)
        *_, unlimited = await store._engine.read(plan, queries.list_jobs, which, JobPage(5, 5000), counts=False)
        (keys, _, _), (deep, _, _) = listed.partition("SCAN page"), unlimited.partition("SCAN page")
        is_sorted = bool(which.keys) or which.spider_ids == ()
        # Before the last step, which sorts the keys of a page of each state, nothing is sorted.
        assert is_sorted or keys.count("TEMP B-TREE") <= deep.count("UNION ALL") + 1, (which, listed)
        assert is_sorted or "TEMP B-TREE" not in deep, (which, deep)
        (counted,) = await store._engine.read(plan, queries.count_by_state, which)
        assert "SCAN jobs" not in counted
        if not (which.has_tags or which.lacks_tags or which.keys or which.startts):
            assert "SEARCH job_counts" in counted
    *_, totals, errors = await store._engine.read(plan, queries.list_jobs, JobFilter(), JobPage(5), counts=True)
    assert "t USING PRIMARY KEY (project=? AND kind=? AND spider=? AND job=?)" in totals
    assert "t USING PRIMARY KEY (project=? AND kind=? AND spider=? AND job=? AND field=?)" in errors


async def test_the_jobs_of_an_older_database_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    present = schema.migrations()
    older = [migration for migration in present if migration[0] < 107]
    monkeypatch.setattr(schema, "migrations", lambda: older)
    await (await Store.open(tmp_path)).close()
    with sqlite3.connect(tmp_path / "platform.db") as database:
        database.executemany(
            """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, metadata)
               VALUES (1, ?, ?, 'books', ?, 1, 1, '{}')""",
            [(number % 3, number, ("pending", "finished")[number % 2]) for number in range(20)],
        )
    database.close()
    monkeypatch.setattr(schema, "migrations", lambda: present)
    store = await Store.open(tmp_path)
    assert await store.jobs.states(1) == {**dict.fromkeys(JobState, 0), JobState.PENDING: 10, JobState.FINISHED: 10}
    await store.close()
    with sqlite3.connect(tmp_path / "platform.db") as database:
        assert database.execute(WRONG_COUNTS).fetchall() == []
    database.close()

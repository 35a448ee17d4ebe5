"""Selection of jobs by the conditions of a rule, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform.deliveries import rule_of as delivery_rule_of
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.retention import rule_of
from scrapy_ext.api.platform.rules import DAY_MS, JobConditions
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.states import Move, count_moves
from scrapy_ext.server.store.rules.rows import DELIVERY, RETENTION, delivered_by, removed_by
from scrapy_ext.server.store.rules.selection import START, Left, Wanted, match_of, match_page
from tests.support.stored_jobs import add_finished, add_items, new_job
from tests.support.stores import Clock

ITEMS = ("items",)
#: All jobs that have records, and all jobs.
FILLED, ANY = Left("1 = 1", "1 = 0"), Left("1 = 1", "1 = 1")


async def matches(store: Store, clock: Clock, *, limit: int = 500, wanted: Any = {}, **conditions: Any) -> list[str]:  # noqa: B006
    """The keys of the jobs of project 1 that match, page by page; the check of one job agrees with the pages."""
    chosen = Wanted(JobConditions(**conditions), **{"kinds": ITEMS, "left": FILLED, **wanted})
    keys: list[JobKey] = []
    after: Any = START
    while after is not None:
        page = await store._engine.read(match_page, 1, chosen, clock.now, after, limit=limit)
        keys += [match.key for match in page.matches]
        after = page.after
    for job in [job async for jobs in store.jobs.scan(1) for job in jobs]:
        assert (await store._engine.read(match_of, job.key, chosen, clock.now) is not None) == (job.key in keys)
    return [str(key) for key in keys]


async def test_jobs_match_by_their_age_since_their_end(store: Store, clock: Clock) -> None:
    await add_finished(store, "books", 1)
    clock.now += DAY_MS
    await add_finished(store, "books", 1)
    assert await matches(store, clock, older_than=1) == []
    clock.now += 1
    assert await matches(store, clock, older_than=1) == ["1/1/1"]
    clock.now += DAY_MS
    assert await matches(store, clock, older_than=1) == ["1/1/1", "1/1/2"]
    assert await matches(store, clock, older_than=2) == ["1/1/1"]
    assert await matches(store, clock, older_than=1, limit=1) == ["1/1/1", "1/1/2"]


async def test_pending_and_running_jobs_never_match(store: Store, clock: Clock) -> None:
    await new_job(store, "books", "pending")
    running = await new_job(store, "books", "running")
    await add_items(store, running, 1)
    clock.now += 100 * DAY_MS
    for left in (FILLED, ANY):
        assert await matches(store, clock, older_than=1, wanted={"left": left}) == []


async def test_a_job_whose_process_still_runs_on_a_node_does_not_match(store: Store, clock: Clock) -> None:
    key = await add_finished(store, "books", 1)
    clock.now += 2 * DAY_MS

    async def placed(tx: Any) -> None:
        await tx.execute(
            """INSERT INTO attempts (project, spider, job, attempt, node, units, placed)
               VALUES ($1, $2, $3, 1, 'a', 1, 0)""",
            *key,
        )

    await store._engine.write(placed)
    assert await matches(store, clock, older_than=1) == []


async def test_the_newest_jobs_of_each_spider_stay(store: Store, clock: Clock) -> None:
    for _ in range(3):
        for spider in ("books", "films"):
            await add_finished(store, spider, 1)
            clock.now += 1000
    assert await matches(store, clock, keep_last=1) == ["1/1/1", "1/2/1", "1/1/2", "1/2/2"]
    assert await matches(store, clock, keep_last=2) == ["1/1/1", "1/2/1"]
    assert await matches(store, clock, keep_last=3) == []
    assert await matches(store, clock, keep_last=2, spider="films") == ["1/2/1"]
    assert await matches(store, clock, keep_last=1, spider="unknown") == []


async def test_a_job_matches_both_conditions_only_when_old_and_outside_the_newest(store: Store, clock: Clock) -> None:
    for _ in range(4):
        await add_finished(store, "books", 1)
        clock.now += DAY_MS
    assert await matches(store, clock, older_than=1) == ["1/1/1", "1/1/2", "1/1/3"]
    assert await matches(store, clock, older_than=1, keep_last=2) == ["1/1/1", "1/1/2"]
    assert await matches(store, clock, older_than=3, keep_last=1) == ["1/1/1"]


async def test_jobs_with_the_tag_keep_neither_match_nor_count(store: Store, clock: Clock) -> None:
    keys = [await add_finished(store, "books", 1) for _ in range(4)]
    await store.jobs.tag([keys[0], keys[3]], ["keep"], [])
    assert await matches(store, clock, keep_last=1) == ["1/1/2"]
    assert await matches(store, clock, keep_last=1, wanted={"with_kept": True}) == ["1/1/1", "1/1/2", "1/1/3"]


async def test_jobs_without_data_do_not_count_as_the_newest(store: Store, clock: Clock) -> None:
    for items in (1, 1, 0, 0):
        await add_finished(store, "books", items)
    assert await matches(store, clock, keep_last=1) == ["1/1/1"]
    # A rule about whole jobs removes those without records, too, but not the newest.
    assert await matches(store, clock, keep_last=1, wanted={"left": ANY}) == ["1/1/1"]
    assert await matches(store, clock, keep_last=2, wanted={"left": ANY}) == []


@pytest.mark.parametrize(
    ("items", "kept", "gone"),
    [
        ((0, 0, 0, 0), 2, ["1/1/1", "1/1/2"]),
        ((0, 0, 0, 0), 4, []),
        ((1, 0, 0, 0, 0), 2, ["1/1/2", "1/1/3"]),
        ((0, 0, 0, 1), 2, ["1/1/1", "1/1/2"]),
        ((0, 1, 0, 1), 2, ["1/1/1"]),
    ],
    ids=range(5),
)
async def test_old_jobs_without_data_go_where_few_jobs_have_data(
    items: tuple[int, ...], kept: int, gone: list[str], store: Store, clock: Clock
) -> None:
    for number in items:
        await add_finished(store, "books", number)
        clock.now += 1000
    assert await matches(store, clock, keep_last=kept, wanted={"left": ANY}) == gone
    assert await matches(store, clock, keep_last=kept) == []


async def test_a_tag_limits_the_jobs_that_match_and_those_that_count(store: Store, clock: Clock) -> None:
    keys = [await add_finished(store, "books", 1) for _ in range(5)]
    await store.jobs.tag([keys[0], keys[2]], ["nightly"], [])
    assert await matches(store, clock, keep_last=1, tag="nightly") == ["1/1/1"]
    assert await matches(store, clock, keep_last=2, tag="nightly") == []
    assert await matches(store, clock, keep_last=1, tag="other") == []


async def test_a_clock_that_was_set_back_makes_no_new_job_old(store: Store, clock: Clock) -> None:
    old = [await add_finished(store, "books", 1) for _ in range(2)]
    clock.now -= 10 * DAY_MS
    newest = await add_finished(store, "books", 1)
    # Neither the newest by time nor the newest by number goes, and jobs that ended in the future are not old.
    assert await matches(store, clock, keep_last=1) == [str(old[0])]
    assert await matches(store, clock, older_than=1) == []
    clock.now += 5 * DAY_MS
    assert await matches(store, clock, older_than=1) == [str(newest)]


async def test_times_that_a_client_sets_do_not_change_the_age(store: Store, clock: Clock) -> None:
    key = await add_finished(store, "books", 1)
    for value in (0, "yesterday", 10**15, None):
        await store.jobs.merge(key, {"finished_time": value})
        assert await matches(store, clock, older_than=1) == []
    clock.now += DAY_MS + 1
    assert await matches(store, clock, older_than=1) == [str(key)]


@pytest.mark.parametrize("tag", ["' OR '1'='1", "%", "$1", "?", "日本", "a'; DROP TABLE jobs; --"])
async def test_names_are_values_never_sql(store: Store, clock: Clock, tag: str) -> None:
    await add_finished(store, "books", 1)
    key = await add_finished(store, tag, 1)
    clock.now += 2 * DAY_MS
    assert await matches(store, clock, older_than=1, tag=tag) == []
    assert await matches(store, clock, older_than=1, spider=tag) == [str(key)]
    await store.jobs.tag([key], [tag], [])
    assert await matches(store, clock, older_than=1, tag=tag) == [str(key)]


@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
async def test_a_page_of_jobs_reads_only_what_belongs_to_them(store: Store, clock: Clock) -> None:
    async def fill(tx: Any) -> None:
        numbers = range(1, 3001)
        await tx.execute_many(
            """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, metadata)
               VALUES (1, 1, $1, 'books', 'finished', $1, $1, $2)""",
            [(number, b"{}") for number in numbers],
        )
        await tx.execute_many(
            "INSERT INTO job_tags (project, tag, spider, job) VALUES (1, 'daily', 1, $1)", [(n,) for n in numbers]
        )
        await tx.execute_many(
            """INSERT INTO record_totals (project, kind, spider, job, records, bytes, stored)
               VALUES (1, 'items', 1, $1, 1, 1, 1)""",
            [(number,) for number in numbers],
        )
        await count_moves(tx, 1, [Move(1, None, JobState.FINISHED)] * len(numbers))

    class Explained:
        def __init__(self, tx: Any) -> None:
            self._tx = tx
            self.plan = ""

        async def fetch(self, sql: str, *arguments: Any) -> list[Any]:
            rows = await self._tx.fetch(f"EXPLAIN (VERBOSE) {sql}", *arguments)
            self.plan += "\n".join(row[0] for row in rows)
            found: list[Any] = await self._tx.fetch(sql, *arguments)
            return found

    async def plan(tx: Any, wanted: Wanted) -> str:
        explained = Explained(tx)
        await match_page(explained, 1, wanted, clock.now)  # type: ignore[arg-type]
        return explained.plan

    await store._engine.write(fill)
    await store._engine.vacuum()
    removing = rule_of({"what": ["jobs"], "older_than": 1, "tag": "daily"})
    delivering = delivery_rule_of({"what": ["items"], "target": "file:///archive"})
    for wanted in (
        removed_by(RETENTION.unstored(1, removing), clock.now),
        delivered_by(DELIVERY.unstored(1, delivering), clock.now),
    ):
        found = await store._engine.read(plan, wanted)
        tables = {line.split(" on ")[1].split()[0] for line in found.splitlines() if "Seq Scan on" in line}
        assert tables <= {"public.attempts", "public.deliveries"}  # they have no rows

"""Removal of the data that rules cover, on both engines."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.retention import Rule, rule_of
from scrapy_ext.api.platform.rules import DAY_MS
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.housekeeping import Retention
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.collections.selections import Collection
from scrapy_ext.server.store.jobs.states import Move, count_moves
from scrapy_ext.server.store.retention import Removed, remove_jobs
from tests.support.stored_jobs import add_finished, add_items, add_log, new_job
from tests.support.stores import Clock


async def add_rule(store: Store, project: int | None = 1, **fields: Any) -> Rule:
    rule: Rule = await store.retention.add(project, rule_of({"enabled": True, **fields}))
    return rule


async def applied(store: Store, rule: Rule, project: int = 1) -> Removed:
    total = Removed()
    async for done in store.retention.apply(rule, project, pause=False):
        total = total.plus(done)
    return total


async def events(store: Store, project: int = 1) -> list[dict[str, Any]]:
    messages = [msgspec.json.decode(message.event) async for page in store.activity.scan(project) for message in page]
    return [message for message in messages if message["event"] == "retention:removed"]


async def state(store: Store, key: JobKey) -> str:
    job = await store.jobs.get(key)
    assert job is not None
    return job.state.value


async def test_a_rule_about_jobs_deletes_them_with_all_their_data_and_one_message(store: Store, clock: Clock) -> None:
    keys = [await add_finished(store, "books", 2) for _ in range(3)]
    rule = await add_rule(store, what=["jobs"], keep_last=1)
    done = await applied(store, rule)
    assert (done.jobs, done.records) == (2, 4)
    assert [await state(store, key) for key in keys] == ["deleted", "deleted", "finished"]
    assert await store.items.removal(keys[0]) is not None
    assert await store.items.removal(keys[2]) is None
    (event,) = await events(store)
    assert event["jobs"] == ["1/1/1", "1/1/2"]
    assert (event["user"], event["bytes"]) == ("retention rule 1", done.bytes)
    assert event["message"].startswith("Deleted 2 jobs (")
    assert await applied(store, rule) == Removed()
    assert store.retention.removed == done
    assert store.deleted.is_set()


async def test_a_rule_about_records_leaves_the_job_and_its_other_records(store: Store, clock: Clock) -> None:
    key = await add_finished(store, "books", 2)
    await add_log(store, key)
    clock.now += 2 * DAY_MS
    assert (await applied(store, await add_rule(store, what=["items"], older_than=1))).records == 2
    assert await state(store, key) == "finished"
    assert await store.items.removal(key) is not None
    assert await store.logs.removal(key) is None
    assert (await applied(store, await add_rule(store, what=["items", "logs"], older_than=1))).records == 1
    assert await store.logs.removal(key) is not None


async def test_a_rule_of_the_server_covers_every_project(store: Store, clock: Clock) -> None:
    keys = [await add_finished(store, "books", 1, project) for project in (1, 2)]
    clock.now += 2 * DAY_MS
    await add_rule(store, None, what=["jobs"], older_than=1)
    await Retention(store).run()
    assert [await state(store, key) for key in keys] == ["deleted", "deleted"]
    assert (await events(store, 2))[0]["user"] == "retention rule 1 of the server"
    assert await store.jobs.projects() == [1, 2]


async def test_each_of_several_rules_removes_the_data_that_it_covers(store: Store, clock: Clock) -> None:
    key = await add_finished(store, "books", 1)
    await add_log(store, key)
    await add_rule(store, what=["items"], older_than=30)
    await add_rule(store, what=["items"], older_than=10)
    await add_rule(store, what=["logs"], older_than=5)
    clock.now += 6 * DAY_MS
    await Retention(store).run()
    assert (await store.items.removal(key), await store.logs.removal(key) is None) == (None, False)
    clock.now += 5 * DAY_MS
    await Retention(store).run()
    assert await store.items.removal(key) is not None


async def test_a_job_that_got_the_tag_keep_after_the_selection_stays(store: Store, clock: Clock) -> None:
    keys = [await add_finished(store, "books", 1) for _ in range(3)]
    clock.now += 2 * DAY_MS
    rule = await add_rule(store, what=["jobs"], older_than=1)
    await store.jobs.tag([keys[1]], ["keep"], [])
    done = await store._engine.write(remove_jobs, clock.now, rule, keys)
    assert done.jobs == 2
    assert [await state(store, key) for key in keys] == ["deleted", "finished", "deleted"]


async def test_jobs_that_are_active_or_gone_when_a_batch_runs_are_left(store: Store, clock: Clock) -> None:
    pending, running = await new_job(store, "books", "pending"), await new_job(store, "books", "running")
    await add_items(store, running, 1)
    clock.now += 2 * DAY_MS
    rule = await add_rule(store, what=["jobs"], older_than=1)
    keys = [pending, running, JobKey(1, 1, 99), JobKey(1, 7, 1)]
    assert await store._engine.write(remove_jobs, clock.now, rule, keys) == Removed()
    assert await events(store) == []


@pytest.mark.parametrize("change", ["disable", "remove"])
async def test_a_rule_that_is_not_in_force_removes_nothing(store: Store, clock: Clock, change: str) -> None:
    key = await add_finished(store, "books", 1)
    clock.now += 2 * DAY_MS
    rule = await add_rule(store, what=["jobs"], older_than=1)
    if change == "remove":
        await store.retention.remove(1, rule.id)
    else:
        await store.retention.enable(1, rule.id, False)
    assert await applied(store, rule) == Removed(over=True)
    await Retention(store).run()
    assert await state(store, key) == "finished"


async def test_a_rule_that_is_enabled_again_is_applied_at_the_next_look(store: Store, clock: Clock) -> None:
    rule = await add_rule(store, what=["jobs"], older_than=1)
    retention = Retention(store)
    await retention.run()
    key = await add_finished(store, "books", 1)
    clock.now += 2 * DAY_MS
    await retention.run()
    assert await state(store, key) == "finished"
    await store.retention.enable(1, rule.id, False)
    await store.retention.enable(1, rule.id, True)
    await retention.run()
    assert await state(store, key) == "deleted"


async def test_old_records_of_collections_go_and_newer_ones_stay(store: Store, clock: Clock) -> None:
    prices, other = (Collection(1, CollectionType.STORE, name) for name in ("prices", "other"))
    internal = Collection(1, CollectionType.STORE, "scrapy_commits")
    for which in (prices, other, internal):
        await store.collections.write(which, [(b"%05d" % number, b'{"a":1}') for number in range(1200)])
    clock.now += DAY_MS
    await store.collections.write(prices, [(b"00007", b"{}"), (b"new", b"{}")])
    clock.now += 1
    named = await add_rule(store, what=["collections"], collections=["prices"], older_than=1)
    preview = await store.retention.preview(named, [1])
    assert (preview.collections, preview.records, preview.bytes) == (1, 1199, 1199 * 7)
    done = await applied(store, named)
    assert (done.records, done.bytes) == (1199, 1199 * 7)
    sizes = [event["records"] for event in await events(store)]
    assert (sum(sizes), max(sizes)) == (1199, 500)
    assert (await applied(store, named)).records == 0
    every = await add_rule(store, what=["collections"], collections=["*"], older_than=1)
    assert (await applied(store, every)).records == 1200
    assert {event["collection"] for event in await events(store)} == {"prices", "other"}


async def test_a_preview_shows_what_goes_now_and_which_jobs_go_next_and_when(store: Store, clock: Clock) -> None:
    first = await add_finished(store, "books", 3)
    clock.now += DAY_MS
    second = await add_finished(store, "books", 1)
    clock.now += 1
    rule = await add_rule(store, what=["items"], older_than=1, enabled=False)
    preview = await store.retention.preview(rule, [1])
    assert (preview.jobs, preview.records, preview.bytes > 0) == (1, 3, True)
    assert [(each.job, each.due) for each in preview.next] == [
        (str(first), clock.now),
        (str(second), clock.now - 1 + DAY_MS),
    ]
    assert await store.retention.next_jobs([rule], [1], 1) == preview.next[:1]


@pytest.mark.long
async def test_ten_thousand_jobs_go_in_bounded_steps(store: Store, clock: Clock) -> None:
    await add_finished(store, "books", 1)

    async def add_many(tx: Any) -> None:
        await tx.execute_many(
            """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, metadata)
               VALUES (1, 1, $1, 'books', 'finished', $2, $2, $3)""",
            [(number, clock.now, b'{"state":"finished"}') for number in range(2, 10_001)],
        )
        await count_moves(tx, 1, [Move(1, None, JobState.FINISHED)] * 9999)
        await tx.execute_many(
            """INSERT INTO record_totals (project, kind, spider, job, records, bytes, stored)
               VALUES (1, 'items', 1, $1, 5, 50, 20)""",
            [(number,) for number in range(2, 10_001)],
        )

    await store._engine.write(add_many)
    # As PostgreSQL does by itself after a while: until then, it plans as for tables with few rows.
    await store._engine.write(lambda tx: tx.execute("ANALYZE"))
    rule = await add_rule(store, what=["items"], keep_last=10)
    assert (await store.retention.preview(rule, [1])).jobs == 9990
    steps = [done.jobs async for done in store.retention.apply(rule, 1, pause=False)]
    assert (sum(steps), max(steps)) == (9990, 50)
    left = await store._engine.read(_readable)
    assert left == list(range(9991, 10_001))
    assert len(await events(store)) == -(-9990 // 50)


async def _readable(tx: Any) -> list[int]:
    rows = await tx.fetch("SELECT job FROM record_totals WHERE kind = 'items' AND removed IS NULL ORDER BY job")
    return [row[0] for row in rows]


async def test_rules_are_limited_in_number(store: Store) -> None:
    for _ in range(50):
        await add_rule(store, what=["items"], older_than=1)
    with pytest.raises(ContractError, match="Remove one of them"):
        await add_rule(store, what=["items"], older_than=1)
    await add_rule(store, None, what=["items"], older_than=1)

"""Results of monitors, incidents and messages, on both engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.alerts import NewTarget
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitors import Monitor, monitor_of
from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.server.monitors import evaluating
from scrapy_ext.server.monitors.evaluating import Evaluator
from scrapy_ext.server.monitors.item_schemas import ItemSchemas
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.monitors.previews import preview
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import LeaseLostError
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.records.chunks import ITEMS
from tests.support.packing import pack_chunk
from tests.support.stored_jobs import add_finished, finish, new_job
from tests.support.stores import Clock

_MINUTE = 60_000
_HOUR = 60 * _MINUTE
URL = "https://crawls.example"


async def enabled(store: Store, project: int | None = 1, **fields: Any) -> Monitor:
    return await store.monitors.add(project, monitor_of({**fields, "enabled": True}))


@pytest.fixture
async def schemas() -> AsyncIterator[ItemSchemas]:
    schemas = ItemSchemas()
    yield schemas
    await schemas.stop()


@pytest.fixture
def check(store: Store, schemas: ItemSchemas) -> Callable[[], Any]:
    """Checks what is due, as the loop of a server does."""
    return Evaluator(store, Messages(URL), schemas).run_due


async def events(store: Store, prefix: str = "monitor:") -> list[dict[str, Any]]:
    """Return the activity messages about monitors, oldest first."""
    messages = [msgspec.json.decode(each.event) for each in reversed(await store.activity.page(1, 10**9, 100))]
    return [each for each in messages if each["event"].startswith(prefix)]


async def texts(store: Store, target: int = 1) -> list[tuple[str, str, str]]:
    """Return kind, title and body of the messages to a target, which are claimed with that; oldest first."""
    found = []
    while (claimed := await store.alerts.claim(1, target)) is not None:
        await store.alerts.accepted(claimed, "accepted")
        found.append((claimed.kind, claimed.title, claimed.body))
    return found


async def test_a_finished_job_has_one_result_of_each_monitor_that_covers_it(store: Store, check: Any) -> None:
    few = await enabled(store, name="enough items", checks=["items >= 100", "errors == 0"])
    await enabled(store, checks=["items >= 1"], spider="others")
    await store.monitors.add(1, monitor_of({"checks": ["items >= 1000"]}))  # off
    key = await add_finished(store, "books", 12)
    assert await check() is False
    (result,) = await store.monitors.of_job(key)
    assert (result.monitor, result.outcome, result.job) == (few.id, "failed", str(key))
    assert [(each.outcome, each.value, each.limit) for each in result.checks] == [("failed", 12, 100), ("passed", 0, 0)]
    assert result.checks[0].sentence == "items is 12, expected at least 100"
    (event,) = await events(store)
    assert event["event"] == "monitor:failed"
    assert event["job"] == str(key)
    assert event["message"] == "enough items of books failed: items is 12, expected at least 100"
    await check()
    assert len(await events(store)) == 1
    assert await store.monitors.results(1, few.id, 10, False) == [result]


async def test_jobs_that_finished_before_a_monitor_was_enabled_are_left_alone(store: Store, check: Any) -> None:
    key = await add_finished(store, "books", 1)
    await enabled(store, checks=["items >= 100"])
    await check()
    assert await store.monitors.of_job(key) == []


async def test_a_median_is_of_complete_runs_with_the_same_arguments(store: Store, clock: Clock, check: Any) -> None:
    await enabled(store, checks=["items >= 0.8 x median of 4 after 2 runs"])
    sizes = [(10, "de"), (100, "de"), (20, "de"), (900, "us"), (9, "de"), (13, "de")]
    keys = []
    for items, country in sizes:
        clock.now += _MINUTE
        keys.append(
            await add_finished(store, "books", items, spider_args={"country": country}, close_reason="finished")
        )
    clock.now += _MINUTE
    await add_finished(store, "books", 0, spider_args={"country": "de"}, close_reason="cancelled")
    await check()
    found = [(await store.monitors.of_job(key))[0] for key in keys]
    none = "not applicable"
    assert [each.outcome for each in found] == [none, none, "failed", none, "failed", "passed"]
    assert found[2].checks[0].sentence == "items is 20, expected at least 44 (0.8 x the median of 2 runs)"
    assert found[5].checks[0].limit == pytest.approx(0.8 * 15)
    assert found[5].checks[0].runs == 4


async def test_runs_of_a_script_with_other_arguments_are_compared_and_followed_apart(
    store: Store, clock: Clock, check: Any
) -> None:
    await enabled(store, checks=["items >= median of 4 after 1 run"])
    keys = []
    for items, command in ((10, "--days 7"), (900, "--days 365"), (12, "--days 7"), (800, "--days 365"), (9, "")):
        clock.now += _MINUTE
        keys.append(await add_finished(store, "py:report.py", items, cmd_args=command, close_reason="finished"))
    await check()
    none = "not applicable"
    assert [(await store.monitors.of_job(key))[0].outcome for key in keys] == [none, none, "passed", "failed", none]
    assert [each.job for each in await store.monitors.incidents(1)] == [str(keys[3])]


async def test_two_servers_store_the_results_of_a_job_once(store: Store, schemas: ItemSchemas) -> None:
    await enabled(store, checks=["items >= 100"])
    for _ in range(5):
        await add_finished(store, "books", 1)
    servers = [Evaluator(store, Messages(None), schemas) for _ in range(3)]
    await asyncio.gather(*(each.run_due() for each in servers))
    for each in servers:
        await each.run_due()
    assert len(await events(store)) == 5
    assert len(await store.monitors.results(1, None, 100, False)) == 5


async def test_a_job_that_is_resumed_and_ends_again_has_the_results_of_its_last_end(
    store: Store, clock: Clock, check: Any
) -> None:
    await enabled(store, checks=["items >= 2", "outcome == finished"])
    key = await add_finished(store, "books", 3, close_reason="shutdown")
    await check()
    assert (await store.monitors.of_job(key))[0].outcome == "failed"
    clock.now += 1000
    await store.jobs.change(1, [Change(key, JobState.RUNNING, {})], "test")
    await store.jobs.change(1, [Change(key, JobState.FINISHED, {"close_reason": "finished"})], "test")
    await check()
    assert [each.outcome for each in await store.monitors.of_job(key)] == ["passed"]


async def test_results_are_removed_with_their_job(store: Store, check: Any) -> None:
    await enabled(store, checks=["items >= 2"])
    first, second = await add_finished(store, "books", 1), await add_finished(store, "books", 1)
    await store.jobs.delete(1, [second], "test")
    await check()
    assert await store.monitors.of_job(second) == []
    await store.jobs.delete(1, [first], "test")
    assert await store.monitors.of_job(first) == []
    assert await store.monitors.results(1, None, 10, False) == []


async def test_failures_of_a_spider_are_one_message_then_a_reminder_and_a_recovery(
    store: Store, clock: Clock, check: Any
) -> None:
    await store.alerts.add(1, NewTarget("on-call", "json://localhost"))
    await enabled(store, name="enough items", checks=["items >= 100"])
    for _ in range(5):
        await add_finished(store, "books", 7)
    last = await add_finished(store, "books", 12)
    await check()
    assert await texts(store) == []  # within the window
    clock.now += 2 * _MINUTE
    await check()
    ((kind, title, body),) = await texts(store)
    assert (kind, title) == ("alert", "books (project 1): enough items fails")
    assert "items is 12, expected at least 100" in body
    assert "6 jobs" in body
    assert f"{URL}/ui/{last}" in body
    for _ in range(3):  # nothing has changed
        clock.now += _HOUR
        await add_finished(store, "books", 7)
        await check()
    assert await texts(store) == []
    clock.now += 24 * _HOUR
    await check()
    ((kind, title, body),) = await texts(store)
    assert (kind, title) == ("reminder", "books (project 1): still enough items fails")
    assert "9 jobs" in body
    await add_finished(store, "books", 200)
    await check()
    clock.now += 2 * _MINUTE
    await check()
    ((kind, title, _),) = await texts(store)
    assert (kind, title) == ("recovery", "books (project 1): over, enough items passes again")
    clock.now += 100 * _HOUR
    await check()
    assert await texts(store) == []
    assert [each["event"] for each in await events(store)][-2:] == ["monitor:passed", "monitor:recovered"]
    assert await store.monitors.incidents(1) == []


async def test_a_run_with_other_arguments_does_not_end_an_incident(store: Store, clock: Clock, check: Any) -> None:
    await store.alerts.add(1, NewTarget("on-call", "json://localhost"))
    await enabled(store, checks=["items >= 10"])
    for items, country in ((1, "de"), (20, "us"), (1, "fr")):
        await add_finished(store, "books", items, spider_args={"country": country})
    await check()
    clock.now += 2 * _MINUTE
    await check()
    assert len(await texts(store)) == 1
    assert len(await store.monitors.incidents(1)) == 2
    await add_finished(store, "books", 20, spider_args={"country": "de"})
    await check()
    assert [each.jobs for each in await store.monitors.incidents(1)] == [1]
    await add_finished(store, "books", 20, spider_args={"country": "fr"})
    await check()
    clock.now += 2 * _MINUTE
    await check()
    assert [kind for kind, _, _ in await texts(store)] == ["recovery"]


async def test_a_disabled_monitor_has_no_incidents_and_sends_no_message(store: Store, clock: Clock, check: Any) -> None:
    await store.alerts.add(1, NewTarget("on-call", "json://localhost"))
    monitor = await enabled(store, checks=["items >= 10"])
    await add_finished(store, "books", 1)
    await check()
    await store.monitors.enable(1, monitor.id, False)
    clock.now += 2 * _MINUTE
    await check()
    assert await texts(store) == []
    assert await store.monitors.incidents(1) == []


async def test_a_run_that_did_not_happen_is_reported_once_and_over_with_the_next(
    store: Store, clock: Clock, check: Any
) -> None:
    await store.alerts.add(1, NewTarget("on-call", "json://localhost"))
    await add_finished(store, "books", 1, close_reason="finished")
    await enabled(store, name="daily", spider="books", expect="24h")
    await check()
    clock.now += 25 * _HOUR
    await add_finished(store, "books", 1, close_reason="cancelled")
    await check()
    await check()
    (missed,) = [each for each in await events(store) if each["event"] == "monitor:missed"]
    assert missed["message"].startswith(
        "books: no run has finished successfully for 25 h, expected at least every 24 h. The last one is job 1/1/1"
    )
    clock.now += 2 * _MINUTE
    await check()
    assert [kind for kind, _, _ in await texts(store)] == ["alert"]
    await add_finished(store, "books", 1, close_reason="finished")
    await check()
    assert [each["event"] for each in await events(store)] == ["monitor:missed", "monitor:recovered"]
    clock.now += 2 * _MINUTE
    await check()
    assert [kind for kind, _, _ in await texts(store)] == ["recovery"]


async def test_a_new_monitor_of_a_spider_that_never_ran_waits_its_time(store: Store, clock: Clock, check: Any) -> None:
    await enabled(store, spider="books", expect="2h")
    await check()
    clock.now += _HOUR
    await check()
    assert await events(store) == []
    clock.now += 2 * _HOUR
    await check()
    assert [each["event"] for each in await events(store)] == ["monitor:missed"]


def schedule() -> PeriodicJob:
    return PeriodicJob(
        id=0,
        project=1,
        disabled=False,
        type="spider",
        description="",
        cron="0 * * * *",
        addtags=[],
        tasks=[Task(name="books")],
    )


async def test_a_periodic_job_that_does_not_start_in_time_is_reported(store: Store, clock: Clock, check: Any) -> None:
    await enabled(store, name="on time", expect="schedule")
    made = await store.periodic.add(schedule())

    async def run_after(hours: int) -> None:
        clock.now = (clock.now // _HOUR + hours) * _HOUR + _MINUTE
        for due in await store.periodic.due():
            await store.periodic.run(due)
        await check()

    async def messages() -> list[str]:
        return [each["message"] for each in await events(store, "monitor:missed")]

    await run_after(1)
    assert await messages() == []  # the job has half an hour to start
    clock.now += 40 * _MINUTE
    await check()
    assert len(await messages()) == 1
    assert "job 1/1/1 still waits for a node" in (await messages())[0]
    await run_after(1)
    assert "job 1/1/1 of an earlier run has not ended" in (await messages())[1]
    await store.jobs.change(1, [Change(JobKey(1, 1, 1), JobState.RUNNING, {})], "test")
    await store.jobs.change(1, [Change(JobKey(1, 1, 1), JobState.FINISHED, {})], "test")
    await run_after(1)
    await store.jobs.change(1, [Change(JobKey(1, 1, 2), JobState.RUNNING, {})], "test")
    clock.now += 40 * _MINUTE
    await check()
    assert len(await messages()) == 2
    assert [each["event"] for each in await events(store)][-1] == "monitor:recovered"
    await store.jobs.change(1, [Change(JobKey(1, 1, 2), JobState.FINISHED, {})], "test")
    clock.now = (clock.now // _HOUR + 5) * _HOUR - _MINUTE  # no server, and the newest missed minute is an hour ago
    await store.periodic.edit(1, made.id, lambda job: job)
    (due,) = await store.periodic.due()
    await store.periodic.run(due)
    await check()
    await store.periodic.remove(1, made.id)
    assert await store.monitors.incidents(1) == []


async def test_old_results_and_messages_expire(store: Store, clock: Clock, check: Any) -> None:
    await store.alerts.add(1, NewTarget("on-call", "json://localhost"))
    await enabled(store, checks=["items >= 2"])
    old = await add_finished(store, "books", 1)
    await check()
    clock.now += 2 * _MINUTE
    await check()
    assert len(await texts(store)) == 1
    clock.now += 89 * 24 * _HOUR
    new = await add_finished(store, "books", 1)
    await check()
    clock.now += 2 * 24 * _HOUR
    assert sum([rows async for rows in store.expiry.monitor_results(90)]) == 2
    assert await store.monitors.of_job(old) == []
    assert len(await store.monitors.of_job(new)) == 1
    assert [each.kind for each in await store.alerts.rows(1, 1, 10)] == ["reminder"]  # which was not sent


async def test_a_target_shows_since_when_its_messages_are_not_accepted(store: Store, clock: Clock, check: Any) -> None:
    await store.alerts.add(1, NewTarget("on-call", "json://localhost"))
    await enabled(store, checks=["items >= 2"])
    await add_finished(store, "books", 1)
    await check()
    clock.now += 2 * _MINUTE
    await check()
    since = clock.now
    for settle, outcome, failing in (
        (store.alerts.refused, "no connection", since),
        (store.alerts.refused, "answered 500", since),
        (store.alerts.accepted, "accepted", None),
    ):
        claimed = await store.alerts.claim(1, 1)
        assert claimed is not None
        await settle(claimed, outcome)
        (target,) = await store.alerts.listed(1)
        assert (target.failing_since, target.outcome) == (failing, outcome)
        clock.now += _MINUTE
    assert (store.alerts.sent_count, store.alerts.failures) == (1, 2)


async def test_a_job_that_cannot_be_checked_is_retried_and_then_reported(
    store: Store, clock: Clock, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("broken")

    await enabled(store, checks=["items >= 2"])
    key = await add_finished(store, "books", 1)
    monkeypatch.setattr(evaluating, "result_of", broken)
    for _ in range(20):
        await check()
        clock.now += _HOUR
    (result,) = await store.monitors.of_job(key)
    assert result.outcome == "not applicable"
    assert "could not be checked" in result.checks[0].sentence


async def test_a_server_that_has_lost_its_lease_stores_nothing(store: Store, clock: Clock, check: Any) -> None:
    await enabled(store, checks=["items >= 2"])
    key = await add_finished(store, "books", 1)
    lease = await store.leases.take("monitors", "one", 1000)
    assert lease is not None
    (row,) = (await store.monitors.work()).rows
    clock.now += 2000
    assert await store.leases.take("monitors", "other", 1000) is not None
    with pytest.raises(LeaseLostError):
        await store.monitors.settle(lease, row, None)
    await check()  # the other one has it
    assert await store.monitors.of_job(key) == []
    clock.now += 2000
    await check()
    assert len(await store.monitors.of_job(key)) == 1


async def test_jobs_are_resumed_and_deleted_while_they_are_checked(
    store: Store, clock: Clock, schemas: ItemSchemas
) -> None:
    await enabled(store, checks=["items >= 2"])
    servers = [Evaluator(store, Messages(None), schemas, interval=0.01) for _ in range(2)]
    loops = [asyncio.create_task(each.run()) for each in servers]
    keys = [await add_finished(store, "books", 1) for _ in range(24)]

    async def resume(some: list[JobKey]) -> None:
        for key in some:
            for state in (JobState.RUNNING, JobState.FINISHED):
                await store.jobs.change(1, [Change(key, state, {})], "test")

    async def delete(some: list[JobKey]) -> None:
        for key in some:
            await store.jobs.delete(1, [key], "test")

    await asyncio.gather(resume(keys[:8]), resume(keys[4:12]), delete(keys[12:]), return_exceptions=True)
    for each in loops:
        each.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    clock.now += _MINUTE + 1  # a server that was stopped while it took the lease holds it for a minute
    for _ in range(10):
        await servers[0].run_due()
    assert [len(await store.monitors.of_job(key)) for key in keys] == [1] * 12 + [0] * 12


SCHEMA = {"type": "object", "required": ["price"], "properties": {"price": {"type": "number"}}}


async def test_a_schema_names_failing_items_and_paths_without_their_values(store: Store, check: Any) -> None:
    await enabled(store, schema=SCHEMA, sample=0)
    key = await new_job(store, "books", "running")
    await write_items(store, key, [*({"price": 1} for _ in range(70)), {"price": "secret"}, {}])
    await finish(store, key)
    await check()
    (result,) = await store.monitors.of_job(key)
    (checked,) = result.checks
    assert result.outcome == "failed"
    assert [item.key for item in checked.items] == [f"{key}/70", f"{key}/71"]
    assert checked.items[0].paths == ['/price: the value is not of type "number"']
    assert "2 of 72 items do not match" in checked.sentence
    assert b"secret" not in msgspec.json.encode(result)


async def test_a_preview_has_the_results_of_the_last_jobs_and_stores_nothing(
    store: Store, check: Any, schemas: ItemSchemas
) -> None:
    for items in (5, 50):
        await add_finished(store, "books", items)
    await add_finished(store, "others", 1)
    monitor = store.monitors.unstored(1, monitor_of({"spider": "books", "checks": ["items >= 10"]}))
    found = await preview(store, monitor, [1], schemas)
    assert (found.jobs, found.passed, found.failed) == (2, 1, 1)
    assert [each.outcome for each in found.results] == ["passed", "failed"]
    await check()
    assert await store.monitors.results(1, None, 10, False) == []
    assert await events(store) == []


async def write_items(store: Store, key: JobKey, items: list[dict[str, Any]]) -> None:
    await store.items.write(key, None, [pack_chunk(ITEMS, [msgspec.json.encode(item) for item in items], items)])

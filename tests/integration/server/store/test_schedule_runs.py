"""Runs of periodic jobs over time: once each, whoever looks and whatever the clock does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.periodic import Task
from scrapy_ext.server.jobs.periodic_loop import CronLoop
from scrapy_ext.server.store import Store
from scrapy_ext.server.store import periodic_runs as schedule_runs
from scrapy_ext.server.store.engine.errors import StoreBusyError
from scrapy_ext.server.store.jobs.states import Change
from tests.support.eventually import eventually_async
from tests.support.schedules import MINUTE, PROJECT, SECOND, at, books, edit, events_of, jobs_of, passing, ran
from tests.support.stores import Clock, Where


@pytest.fixture
def clock(clock: Clock) -> Clock:
    clock.now = at(2026, 3, 10, 3, 59, 30)
    return clock


async def test_a_run_adds_the_jobs_of_its_tasks_with_what_they_name(store: Store, clock: Clock) -> None:
    tasks = [
        Task(name="books", priority=4, spider_args={"page": "1"}),
        Task(name="books", spider_args={"page": "2"}),
    ]
    await store.periodic.add(books(tasks=tasks, addtags=["daily", "shop", "daily"]))
    assert await CronLoop(store).run_due() == []
    clock.now = at(2026, 3, 10, 4, 0, 1)
    (run,) = await CronLoop(store).run_due()
    first, second = await jobs_of(store)
    assert [job.job for job in run.jobs] == [str(first.key), str(second.key)]
    assert {name: first.metadata[name] for name in first.metadata} == {
        "project": PROJECT,
        "spider": "books",
        "state": "pending",
        "spider_type": "periodic",
        "periodic_job_id": 1,
        "periodic_time": at(2026, 3, 10, 4),
        "priority": 4,
        "units": 1,
        "tags": ["daily", "shop"],
        "spider_args": {"page": "1"},
        "pending_time": clock.now,
        "scheduled_by": "periodic job 1",
    }
    assert (second.metadata["priority"], second.metadata["spider_args"]) == (2, {"page": "2"})
    assert await events_of(store) == [
        {"event": "job:scheduled", "job": str(job.key), "user": "periodic job 1"} for job in (first, second)
    ]
    (state,) = await store.periodic.listed(PROJECT, 10)
    assert (state.schedule.id, state.next_run, state.last_run) == (1, at(2026, 3, 11, 4), at(2026, 3, 10, 4))
    assert state.last_jobs == run.jobs
    assert await store.periodic.state(PROJECT, 1) == state
    assert await store.periodic.state(PROJECT, 2) is None


async def test_a_script_gets_its_arguments(store: Store, clock: Clock) -> None:
    tasks = [Task(name="py:clean.py", script_args="--days 3"), Task(name="py:clean.py", script_args="--days 4")]
    await store.periodic.add(books(tasks=tasks, type="script"))
    clock.now = at(2026, 3, 10, 4)
    await CronLoop(store).run_due()
    assert [(job.spider, job.metadata["cmd_args"]) for job in await jobs_of(store)] == [
        ("py:clean.py", "--days 3"),
        ("py:clean.py", "--days 4"),
    ]


async def test_each_minute_is_run_once_however_often_is_looked(store: Store, clock: Clock) -> None:
    await store.periodic.add(books("* * * * *"))
    start = clock.now
    times = await passing(store, clock, start + 5 * MINUTE, 10 * SECOND)
    assert times == [at(2026, 3, 10, 4, minute) for minute in range(5)]


async def test_of_many_servers_one_adds_the_jobs(store: Store, where: Where, clock: Clock) -> None:
    others = [await Store.open(where, clock) for _ in range(3)]
    try:
        for number in range(5):
            await store.periodic.add(books("* * * * *", tasks=[Task(name=f"spider-{number}")]))
        for minute in range(4):
            clock.now = at(2026, 3, 10, 4, minute)
            runs = await asyncio.gather(*(CronLoop(each).run_due() for each in (store, *others)))
            assert sorted(run.due.number for some in runs for run in some) == [1, 2, 3, 4, 5]
            assert len(await jobs_of(store)) == 5 * (minute + 1)
            await store.jobs.cancel_some(PROJECT, 1000, "me")
    finally:
        for each in others:
            await each.close()


async def test_a_disabled_schedule_does_not_run_and_does_not_catch_up(store: Store, clock: Clock) -> None:
    await store.periodic.add(books("* * * * *"))
    await edit(store, disabled=True)
    assert await store.periodic.next_due() is None
    clock.now += 10 * MINUTE
    assert await ran(store) == 0
    await edit(store, disabled=False)
    assert await ran(store) == 0
    clock.now += MINUTE
    assert await ran(store) == 1


async def test_an_edit_of_the_time_counts_from_then_and_one_of_the_rest_loses_no_run(
    store: Store, clock: Clock
) -> None:
    await store.periodic.add(books())
    clock.now = at(2026, 3, 10, 4, 0, 2)
    await edit(store, description="x", tasks=[Task(name="films")])
    assert await ran(store) == 1
    assert [job.spider for job in await jobs_of(store)] == ["films"]
    await edit(store, cron="30 4 * * *")
    assert await store.periodic.next_due() == at(2026, 3, 10, 4, 30)


async def test_an_edit_between_looking_and_running_wins(store: Store, clock: Clock) -> None:
    await store.periodic.add(books())
    clock.now = at(2026, 3, 10, 4)
    (due,) = await store.periodic.due()
    await edit(store, cron="0 5 * * *")
    assert await store.periodic.run(due) is None
    await store.periodic.remove(PROJECT, 1)
    assert await store.periodic.run(due) is None
    assert await jobs_of(store) == []


async def test_what_still_runs_is_not_started_again_and_reported_once(store: Store, clock: Clock) -> None:
    await store.periodic.add(books("* * * * *", tasks=[Task(name="books"), Task(name="films")]))
    clock.now += MINUTE
    await CronLoop(store).run_due()
    slow, quick = await jobs_of(store)
    for _ in range(3):
        await store.jobs.cancel(PROJECT, [job.key for job in await jobs_of(store) if job.key != slow.key], "me")
        clock.now += MINUTE
        (run,) = await CronLoop(store).run_due()
        assert [job.added for job in run.jobs] == [False, True]
        assert run.jobs[0].job == str(slow.key)
    events = [event for event in await events_of(store) if event["event"] == "periodicjob:active"]
    assert len(events) == 1
    assert (events[0]["job"], events[0]["user"]) == (str(slow.key), "periodic job 1")
    assert "books" in events[0]["message"]
    assert quick.spider == "films"
    await store.jobs.cancel(PROJECT, [slow.key], "me")
    clock.now += MINUTE
    (run,) = await CronLoop(store).run_due()
    assert run.jobs[0].added


async def test_every_change_of_a_periodic_run_is_reported_once(store: Store, clock: Clock) -> None:
    await store.periodic.add(books())
    clock.now = at(2026, 3, 10, 4)
    await CronLoop(store).run_due()
    (job,) = await jobs_of(store)
    started = await store.jobs.start_next(PROJECT, {}, "runner")
    assert started is not None
    await store.jobs.cancel(PROJECT, [job.key], "me")
    await store.jobs.cancel(PROJECT, [job.key], "me")
    for _ in range(2):
        await store.jobs.change(PROJECT, [Change(job.key, JobState.FINISHED, {})], "runner")
    for _ in range(2):
        await store.jobs.delete(PROJECT, [job.key], "me")
    events = [(event["event"], event["job"], event["user"]) for event in await events_of(store)]
    key = str(job.key)
    assert events == [
        ("job:scheduled", key, "periodic job 1"),
        ("job:started", key, "runner"),
        ("job:cancelled", key, "me"),
        ("job:completed", key, "runner"),
        ("job:deleted", key, "me"),
    ]


async def test_a_run_that_cannot_be_stored_is_reported_and_the_others_run(store: Store, clock: Clock) -> None:
    large = Task(name="books", spider_args={"text": "x" * 2**20})
    await store.periodic.add(books("* * * * *", tasks=[Task(name="films"), large]))
    await store.periodic.add(books("* * * * *", tasks=[Task(name="other")]))
    clock.now += MINUTE
    assert await ran(store) == 1
    assert [job.spider for job in await jobs_of(store)] == ["other"]
    refused = [event for event in await events_of(store) if event["event"] == "periodicjob:refused"]
    assert [event["periodic_job_id"] for event in refused] == [1]
    assert "metadata" in refused[0]["message"]
    assert await ran(store) == 0
    assert [state.next_run for state in await store.periodic.listed(PROJECT, 9)] == [at(2026, 3, 10, 4, 1)] * 2


async def test_a_stored_expression_that_is_wrong_is_reported_and_never_runs(
    store: Store, clock: Clock, change: Callable[[str], Any]
) -> None:
    await store.periodic.add(books())
    await store.periodic.add(books("* * * * *", tasks=[Task(name="other")]))
    stored = await store.periodic.get(PROJECT, 1)
    assert stored is not None
    wrong = json.dumps({**msgspec.to_builtins(stored), "cron": "*/5 * * * *"}).encode().hex()
    await change(f"UPDATE periodic_jobs SET cron = '*/5 * * * *', definition = {{bytes:{wrong}}} WHERE number = 1")
    clock.now = at(2026, 3, 10, 4)
    assert await ran(store) == 1
    refused = [event for event in await events_of(store) if event["event"] == "periodicjob:refused"]
    assert len(refused) == 1
    assert "minute must be a number or *" in refused[0]["message"]
    assert [state.next_run for state in await store.periodic.listed(PROJECT, 9)] == [None, at(2026, 3, 10, 4, 1)]


async def test_a_run_that_is_cut_off_has_left_nothing_and_is_made_again(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.periodic.add(books())
    clock.now = at(2026, 3, 10, 4)

    add_jobs = schedule_runs.add_jobs

    async def cut_off(*arguments: Any) -> Any:
        await add_jobs(*arguments)
        raise RuntimeError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(schedule_runs, "add_jobs", cut_off)
        with pytest.raises(RuntimeError, match="cut off"):
            await CronLoop(store).run_due()
    assert (await jobs_of(store), await events_of(store)) == ([], [])
    assert await ran(store) == 1


async def test_one_run_that_fails_does_not_keep_others_from_running(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bad", "good"):
        await store.periodic.add(books(tasks=[Task(name=name)]))
    clock.now = at(2026, 3, 10, 4)
    real = schedule_runs.add_jobs

    async def fails_for_one(tx: Any, project: int, jobs: Any, stamp: Any) -> Any:
        if jobs[0].spider == "bad":
            raise RuntimeError("broken")
        return await real(tx, project, jobs, stamp)

    monkeypatch.setattr(schedule_runs, "add_jobs", fails_for_one)
    with pytest.raises(RuntimeError, match="broken"):
        await CronLoop(store).run_due()
    assert [job.spider for job in await jobs_of(store)] == ["good"]


async def test_it_waits_by_itself_looks_when_a_schedule_is_edited_and_goes_on_after_an_outage(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages = [StoreBusyError("busy"), RuntimeError("odd")]
    real = store.periodic.due

    async def due() -> Any:
        if outages:
            raise outages.pop()
        return await real()

    async def has(jobs: int) -> None:
        await eventually_async(lambda: jobs_of(store), lambda value: len(value) >= jobs)

    monkeypatch.setattr(store.periodic, "due", due)
    await store.periodic.add(books())
    clock.now = at(2026, 3, 10, 4)
    quick = asyncio.create_task(CronLoop(store, poll_interval=0.01).run())
    await has(1)
    quick.cancel()
    assert outages == []
    slow = asyncio.create_task(CronLoop(store, poll_interval=3600).run())
    await asyncio.sleep(0)
    await store.periodic.add(books("5 4 * * *", tasks=[Task(name="films")]))
    clock.now = at(2026, 3, 10, 4, 5)
    await edit(store, 2, description="wakes it")
    await has(2)
    slow.cancel()
    await asyncio.gather(quick, slow, return_exceptions=True)
    assert quick.cancelled()
    assert slow.cancelled()

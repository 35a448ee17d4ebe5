"""Runs of periodic jobs whatever the clock does: missed, set back, wrong, different from others."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from scrapy_ext.api.platform.periodic import Task
from scrapy_ext.server.jobs.periodic_loop import CronLoop
from scrapy_ext.server.store import Store
from tests.support.schedules import HOUR, MINUTE, PROJECT, SECOND, at, books, edit, events_of, jobs_of, passing, ran
from tests.support.stores import Clock, Where


@pytest.fixture
def clock(clock: Clock) -> Clock:
    clock.now = at(2026, 3, 10, 3, 59, 30)
    return clock


async def test_servers_whose_clocks_differ_run_a_minute_once(store: Store, where: Where, clock: Clock) -> None:
    fast = Clock()
    other = await Store.open(where, fast)
    try:
        await store.periodic.add(books("* * * * *"))
        times = []
        for _ in range(4 * 6):
            clock.now += 10 * SECOND
            fast.now = clock.now + 90 * SECOND
            for each in (store, other):
                times += [run.minute for run in await CronLoop(each).run_due()]
            await store.jobs.cancel_some(PROJECT, 1000, "me")
        assert times == [at(2026, 3, 10, 4, minute) for minute in range(1, 6)]  # as the fast one has it
    finally:
        await other.close()


async def test_a_server_that_comes_back_runs_what_was_missed_once(store: Store, where: Where, clock: Clock) -> None:
    await store.periodic.add(books("* * * * *"))
    clock.now += 30 * MINUTE
    again = await Store.open(where, clock)
    try:
        (run,) = await CronLoop(again).run_due()
        assert run.minute == at(2026, 3, 10, 4, 29)  # the newest of them
        assert len(await jobs_of(again)) == 1
        assert await CronLoop(again).run_due() == []
    finally:
        await again.close()


@pytest.mark.parametrize(
    ("back", "runs"),
    [(at(2026, 3, 10, 4, 59, 59), True), (at(2026, 3, 10, 5, 0, 0), False), (at(2026, 3, 13, 4, 20), True)],
    ids=["within-the-hour", "after-an-hour", "days-later-and-within-the-hour-of-the-newest"],
)
async def test_a_missed_run_is_made_up_for_within_an_hour(store: Store, clock: Clock, back: int, runs: bool) -> None:
    await store.periodic.add(books())
    clock.now = back
    (run,) = await CronLoop(store).run_due()
    assert len(await jobs_of(store)) == len(run.jobs) == int(runs)
    events = await events_of(store)
    if runs:
        assert [event["event"] for event in events] == ["job:scheduled"]
    else:
        (event,) = events
        assert event["event"] == "periodicjob:missed"
        assert (event["user"], event["periodic_job_id"]) == ("periodic job 1", 1)
        assert "2026-03-10 04:00 UTC" in event["message"]
    state = await store.periodic.state(PROJECT, 1)
    assert state is not None
    day = datetime.fromtimestamp(back / 1000, timezone.utc).day
    assert state.next_run == at(2026, 3, day + 1, 4)
    assert state.last_run == (at(2026, 3, day, 4) if runs else None)


async def test_a_clock_that_is_set_back_runs_nothing_twice(store: Store, clock: Clock) -> None:
    await store.periodic.add(books("0 * * * *"))
    clock.now = at(2026, 3, 10, 4)
    assert await ran(store) == 1
    clock.now = at(2026, 3, 10, 2, 30)
    times = await passing(store, clock, at(2026, 3, 10, 5, 30), 5 * MINUTE)
    assert times == [at(2026, 3, 10, 5)]


async def test_nor_does_it_when_the_schedule_is_edited_then(store: Store, clock: Clock) -> None:
    await store.periodic.add(books("0 * * * *"))
    clock.now = at(2026, 3, 10, 4)
    assert await ran(store) == 1
    clock.now = at(2026, 3, 10, 3, 30)
    await edit(store, disabled=True)
    await edit(store, disabled=False)
    assert await passing(store, clock, at(2026, 3, 10, 5, 30), 5 * MINUTE) == [at(2026, 3, 10, 5)]


async def test_a_clock_that_was_wrong_by_years_does_not_stop_schedules(store: Store, clock: Clock) -> None:
    await store.periodic.add(books("0 * * * *"))
    await store.periodic.add(books("30 4 * * *", tasks=[Task(name="other")]))
    clock.now = at(2066, 1, 1, 0, 0, 10)
    assert await ran(store) == 1  # the other is missed
    clock.now = at(2026, 3, 10, 4, 10)
    assert await passing(store, clock, at(2026, 3, 10, 5, 5), 5 * MINUTE) == [
        at(2026, 3, 10, 4, 30),
        at(2026, 3, 10, 5),
    ]


async def test_leap_days_and_the_change_to_summer_time(store: Store, clock: Clock) -> None:
    clock.now = at(2027, 12, 31)
    await store.periodic.add(books("0 0 29 2 *"))
    assert (await store.periodic.due(), await store.periodic.next_due()) == ([], at(2028, 2, 29))
    clock.now = at(2028, 2, 29)
    assert await ran(store) == 1
    assert await store.periodic.next_due() == at(2032, 2, 29)
    clock.now = at(2032, 3, 28)  # in much of Europe the hour from 1:00 UTC is when clocks change
    await store.periodic.add(books("30 * * * *", tasks=[Task(name="hourly")]))
    assert await ran(store) == 0  # the leap day of four weeks ago is reported as missed
    assert len(await passing(store, clock, clock.now + 6 * HOUR, 10 * MINUTE)) == 6


async def test_a_day_that_no_month_has_is_never_due(store: Store) -> None:
    await store.periodic.add(books("0 0 31 2 *"))
    assert await store.periodic.next_due() is None

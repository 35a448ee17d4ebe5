"""Actions on all jobs that the filters find, of which there are more than are read at once."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.ui.job_filters import JobFilters
from scrapy_ext.server.ui.job_selection import find_jobs
from tests.support.stores import Clock

ALL = JobFilters(JobFilter(states=SHOWN_STATES), "", None, None, None)


async def add(store: Store, clock: Clock, number: int) -> list[JobKey]:
    """Add pending jobs, two of them at each time."""
    keys: list[JobKey] = []
    for _ in range(number // 2):
        clock.now += 1
        for added in await store.jobs.add(1, [NewJob("books", JobState.PENDING, {})] * 2, "me"):
            assert isinstance(added, JobKey)
            keys.append(added)
    return keys


async def test_a_repeated_stop_finds_older_jobs_below_those_that_ended(store: Store, clock: Clock) -> None:
    pending, ended = await add(store, clock, 2), await add(store, clock, 4)
    clock.now += 1
    await store.jobs.change(1, [Change(key, JobState.FINISHED, {}) for key in ended], "me")
    stopped = await find_jobs(store, 1, ALL, "stop", clock.now, size=3)
    assert (set(stopped.keys), stopped.older) == (set(pending), None)
    finished = ALL._replace(stored=JobFilter(states=(JobState.FINISHED,)))
    assert list((await find_jobs(store, 1, finished, "stop", clock.now, size=3)).keys) == []
    assert set((await find_jobs(store, 1, finished, "rerun", clock.now, size=9)).keys) == set(ended)


@pytest.mark.parametrize("size", [2, 3, 5])
async def test_jobs_run_again_are_each_reached_once_before_the_bound_of_those_before(
    store: Store, clock: Clock, size: int
) -> None:
    jobs = await add(store, clock, 8)
    filters, found = ALL, list[JobKey]()
    while True:
        selection = await find_jobs(store, 1, filters, "rerun", clock.now, size=size)
        found += selection.keys
        await add(store, clock, len(selection.keys))
        if selection.older is None:
            break
        filters = ALL._replace(stored=ALL.stored._replace(endts=selection.older))
    assert sorted(found) == sorted(jobs)

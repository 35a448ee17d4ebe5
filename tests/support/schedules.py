"""Schedules over time, as their tests look at them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import msgspec

from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.server.jobs.periodic_loop import CronLoop
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob
from tests.support.stores import Clock

PROJECT = 7
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


def at(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=timezone.utc).timestamp() * 1000)


def books(cron: str = "0 4 * * *", **fields: Any) -> PeriodicJob:
    given = {"tasks": [Task(name="books")], "addtags": [], "disabled": False, "type": "spider", "description": ""}
    return PeriodicJob(id=0, project=PROJECT, cron=cron, **{**given, **fields})


async def jobs_of(store: Store) -> list[StoredJob]:
    found = await store.jobs.listed(PROJECT, JobFilter(), JobPage(1000, 0))
    return sorted(found, key=lambda job: job.key)


async def events_of(store: Store) -> list[dict[str, Any]]:
    """The activity, oldest first."""
    return [json.loads(one.event) async for page in store.activity.scan(PROJECT) for one in page][::-1]


async def ran(store: Store) -> int:
    """Return the number of jobs that due runs add; the jobs end at once, so that none is in the way of the next."""
    added = 0
    for run in await CronLoop(store).run_due():
        added += sum(job.added for job in run.jobs)
    await store.jobs.cancel_some(PROJECT, 1000, "me")
    return added


async def passing(store: Store, clock: Clock, until: int, step: int) -> list[int]:
    """Look at each step; returns the times at which something ran."""
    times = []
    while clock.now < until:
        clock.now += step
        times += [clock.now] * await ran(store)
    return times


async def edit(store: Store, number: int = 1, **fields: Any) -> None:
    await store.periodic.edit(PROJECT, number, lambda stored: msgspec.structs.replace(stored, **fields))

"""Periodic jobs of several servers on one PostgreSQL, one of which is killed, and while the database is away."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.api.platform.webhooks import NewWebhook, new_secret
from scrapy_ext.server.jobs.periodic_loop import CronLoop
from scrapy_ext.server.net.guard import Guard
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.webhooks import Dispatcher, Sender
from tests.support.due_schedules import come_due
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster, cluster
from tests.support.servers import RunningServer
from tests.support.webhook_receiver import Receiver

SCHEDULES = 60


@pytest.mark.long
async def test_a_server_that_is_killed_in_the_middle_loses_and_doubles_nothing(
    postgresql: Cluster, tmp_path: Path
) -> None:
    url = postgresql.database()
    first, second = [RunningServer(tmp_path, database=url) for _ in range(2)]
    store = await Store.open(DatabaseUrl(url))
    try:
        # Due in this minute, and then tomorrow: whatever runs twice has run twice for the same minute.
        now = datetime.fromtimestamp(time.time() // 60 * 60, timezone.utc)
        for number in range(SCHEDULES):
            await store.periodic.add(
                PeriodicJob(
                    id=0,
                    project=1,
                    disabled=False,
                    type="spider",
                    description="",
                    cron=f"{now.minute} {now.hour} * * *",
                    addtags=[],
                    tasks=[Task(name=f"spider-{number}")],
                )
            )
        await come_due(first, 1, int(now.timestamp()) * 1000)
        async with Http(first.url, first.platform_key) as one, Http(second.url, second.platform_key) as two:
            patches = [
                http.call("PATCH", "/api/projects/1/periodicjobs/1", b'{"description":"x"}') for http in (one, two)
            ]
            await asyncio.gather(*patches)
            await eventually_async(lambda: store.jobs.count(1, JobFilter()))
            await asyncio.to_thread(first.kill)
            await eventually_async(store.periodic.due, lambda due: not due)
            await eventually_async(lambda: store.jobs.count(1, JobFilter()), lambda count: count >= SCHEDULES)
        jobs = await store.jobs.listed(1, JobFilter(), JobPage(1000, 0))
        assert sorted(job.metadata["periodic_job_id"] for job in jobs) == list(range(1, SCHEDULES + 1))
        assert {job.metadata["periodic_time"] for job in jobs} == {int(now.timestamp()) * 1000}
        events = [json.loads(one.event)["event"] async for page in store.activity.scan(1) for one in page]
        # The two changes of a schedule are messages, too.
        assert [event for event in events if event.startswith("job:")] == ["job:scheduled"] * SCHEDULES
        assert await asyncio.to_thread(second.stop) == 0
    finally:
        await store.close()
        for server in (first, second):
            if server.process.returncode is None:
                server.kill()


@pytest.mark.full  # its engine waits for long, and what it does then is shown with errors in test_schedule_runs
async def test_runs_and_deliveries_go_on_when_the_database_was_away() -> None:
    with cluster() as own:
        store = await Store.open(DatabaseUrl(own.database()))
        async with Receiver() as receiver:
            sender = Sender(Guard([receiver.host]))
            parts: list[Any] = [CronLoop(store, poll_interval=0.1), Dispatcher(store, sender, poll_interval=0.1)]
            tasks = [asyncio.create_task(part.run()) for part in parts]
            try:
                await store.webhooks.add(1, NewWebhook(url=receiver.url, events=["*"]), secret=new_secret())
                await store.activity.add(1, [b'{"event":"before"}'])
                await receiver.has(1)
                own.kill()
                await asyncio.sleep(0.5)  # some looks at what is not there
                await asyncio.to_thread(own.start)
                await store.periodic.add(
                    PeriodicJob(
                        id=0,
                        project=1,
                        disabled=False,
                        type="spider",
                        description="",
                        cron="* * * * *",
                        addtags=[],
                        tasks=[Task(name="books")],
                    )
                )
                (state,) = await store.periodic.listed(1, 1)
                assert state.next_run is not None
                due = state.next_run
                store.periodic._clock = lambda: due  # its minute
                assert [each["event"] for each in await receiver.has(2)] == ["before", "job:scheduled"]
                assert not any(task.done() for task in tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await store.close()

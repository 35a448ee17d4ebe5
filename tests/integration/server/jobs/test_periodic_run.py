"""A periodic job from its minute to the end of its crawl, and the webhook that receives each step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.due_schedules import come_due
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.running_jobs import until
from tests.support.servers import RunningServer
from tests.support.webhook_receiver import Receiver


@pytest.mark.long
async def test_a_periodic_job_runs_and_a_webhook_receives_each_step(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop")
    async with Receiver() as receiver:
        options = ["--local-project", str(folder)]
        with RunningServer(tmp_path / "data", allow_hosts=[receiver.host], options=options) as server:
            async with Http(server.url, server.platform_key) as http:
                webhook = {"url": receiver.url, "events": ["job:*"]}
                await http.post("/api/projects/1/webhooks", json.dumps(webhook).encode())
                tasks = [{"name": "quick", "priority": 4, "spider_args": {"n": "3"}}]
                schedule = {"cron": "* * * * *", "tasks": tasks, "addtags": ["nightly"]}
                path = "/api/projects/1/periodicjobs"
                assert (await http.post(path, json.dumps(schedule).encode())).status == 201
                await come_due(server, 1)
                await http.call("PATCH", f"{path}/1", b'{"description":"now"}')
                deliveries = [each["message"] for each in await receiver.has(3)]
                await http.call("PATCH", f"{path}/1", b'{"disabled":true}')
                job = deliveries[0]["job"]
                first = [(each["event"], each["user"]) for each in deliveries if each["job"] == job]
                assert first[0] == ("job:scheduled", "periodic job 1")
                metadata = await until(http, job, "finished")
                assert (metadata["close_reason"], metadata["tags"], metadata["priority"]) == (
                    "finished",
                    ["nightly"],
                    4,
                )
                assert (metadata["spider_type"], metadata["periodic_job_id"]) == ("periodic", 1)
                assert metadata["frameworkstats"]["item_scraped_count"] == 3
                events = await eventually_async(
                    lambda: [each["event"] for each in receiver.bodies if each["message"]["job"] == job],
                    lambda events: len(events) >= 3,
                )
                assert sorted(events) == ["job:completed", "job:scheduled", "job:started"]

"""Periodic jobs over HTTP, which no client from PyPI reaches; the package's own does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.client.platform.transport import PlatformUrls
from tests.support.due_schedules import come_due
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import ForkedServer, RunningServer

FIELDS: dict[str, Any] = {
    "cron": "30 4 * * *",
    "tasks": [{"name": "books", "priority": 3, "spider_args": {"page": "1"}}],
    "addtags": ["daily"],
    "description": "Every morning",
}


async def create(http: Http, project: int, **fields: Any) -> Answer:
    return await http.post(f"/api/projects/{project}/periodicjobs", json.dumps({**FIELDS, **fields}).encode())


async def patch(http: Http, project: int, number: int, /, **fields: Any) -> Answer:
    return await http.call("PATCH", f"/api/projects/{project}/periodicjobs/{number}", json.dumps(fields).encode())


async def test_a_schedule_is_made_read_changed_and_deleted(http: Http, project: int) -> None:
    made = await create(http, project)
    assert made.status == 201
    task = {**FIELDS["tasks"][0], "script_args": "", "jobq_id": 1}
    whole = {"id": 1, "project": project, "disabled": False, "type": "spider", **FIELDS, "tasks": [task]}
    assert made.json == whole
    path = f"/api/projects/{project}/periodicjobs/1"
    assert (await http.get(path)).json == whole
    assert (await patch(http, project, 1, disabled=True)).json == {**whole, "disabled": True}
    changed = await patch(http, project, 1, cron="0 5 * * 1", addtags=[])
    assert changed.json == {**whole, "disabled": True, "cron": "0 5 * * 1", "addtags": []}
    assert (await http.get(path)).json == changed.json
    gone = await http.delete(path)
    assert (gone.status, gone.body) == (204, b"")
    for answer in (await http.get(path), await http.delete(path), await patch(http, project, 1, disabled=False)):
        assert answer.status == 404
        assert answer.json["message"] == "There is no periodic job 1. Use an id of the list of them."
    assert (await create(http, project)).json["id"] == 2


async def test_the_package_s_client_does_the_same(platform: PlatformClient, project: int) -> None:
    made = await platform.periodic.create(project, FIELDS)
    assert (made.cron, made.tasks[0].name, made.tasks[0].priority) == ("30 4 * * *", "books", 3)
    assert (await platform.periodic.update(project, made.id, {"description": "x"})).addtags == ["daily"]
    listed = await platform.periodic.list(project)
    assert (listed.count, [one.description for one in listed.results]) == (1, ["x"])
    assert listed.meta.suggested_hour is not None
    await platform.periodic.delete(project, made.id)
    with pytest.raises(NotFound):
        await platform.periodic.get(project, made.id)


async def test_a_script_is_distinguished_from_a_spider_by_its_name(http: Http, project: int) -> None:
    made = (await create(http, project, tasks=[{"name": "py:report.py", "script_args": "--full"}])).json
    assert (made["type"], made["tasks"][0]["script_args"]) == ("script", "--full")
    assert made["tasks"][0]["priority"] == 2
    same = await patch(http, project, made["id"], **made)
    assert same.json == made
    assert (await patch(http, project, made["id"], tasks=FIELDS["tasks"])).json["type"] == "spider"


async def test_what_a_schedule_runs_has_the_number_that_its_jobs_have(http: Http, project: int) -> None:
    await http.post("/api/run.json", {"project": str(project), "spider": "first"})
    made = (await create(http, project)).json
    run = await http.post("/api/run.json", {"project": str(project), "spider": "books"})
    assert run.json["jobid"] == f"{project}/{made['tasks'][0]['jobq_id']}/1"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cron": "*/5 * * * *"}, "cron: minute must be a number or *, got '*/5': ranges, steps and lists"),
        ({"cron": "0 24 * * *"}, "cron: hour must be 0 to 23, got 24"),
        ({"cron": None}, "cron: must be text of five fields"),
        ({"tasks": []}, "tasks: must be 1 to 100, got 0"),
        ({"tasks": [{"name": "a", "args": {}}]}, "tasks: have no field 'args'"),
        ({"tasks": [{"name": "a", "script_args": "x"}]}, "tasks.script_args: belongs to a script"),
        ({"tasks": [{"name": "a"}, {"name": "py:b"}]}, "tasks: must be all spiders or all scripts"),
        ({"id": 77}, "id: is 1 and cannot be changed"),
        ({"type": "script"}, "type: is 'spider' and cannot be changed"),
        ({"color": "red"}, "color: is not a field of a periodic job"),
    ],
)
async def test_what_is_wrong_is_reported_and_nothing_changes(
    http: Http, project: int, fields: dict[str, Any], said: str
) -> None:
    made = (await create(http, project)).json
    answer = await patch(http, project, 1, **fields)
    assert answer.status == 400
    assert answer.json["status"] == "badrequest"
    assert said in answer.json["message"]
    if not {"id"} & set(fields):
        assert (await create(http, project, **fields)).status == 400
    assert (await http.get(f"/api/projects/{project}/periodicjobs")).json["results"] == [made]


async def test_the_server_chooses_the_id(http: Http, project: int) -> None:
    answer = await create(http, project, id=7)
    assert (answer.status, answer.json["message"]) == (400, "id: is chosen by the server. Leave it out.")


async def test_cron_and_tasks_are_required(http: Http, project: int) -> None:
    answer = await http.post(f"/api/projects/{project}/periodicjobs", b"{}")
    assert answer.status == 400
    assert "cron: must have five fields" in answer.json["message"]
    assert "tasks: must be 1 to 100" in answer.json["message"]
    assert (await http.post(f"/api/projects/{project}/periodicjobs", b"[]")).status == 400


async def test_schedules_are_listed_in_pages(server: RunningServer, http: Http, project: int) -> None:
    for n in range(5):
        await create(http, project, description=str(n))
    seen, previous = [], []
    url: str | None = f"{server.url}/api/projects/{project}/periodicjobs?count=2"
    while url:
        page = (await http.get(url.removeprefix(server.url))).json
        assert page["count"] == 5
        seen += [schedule["description"] for schedule in page["results"]]
        previous.append(page["previous"])
        url = page["next"]
    assert seen == list("01234")
    base = f"{server.url}/api/projects/{project}/periodicjobs"
    assert previous == [None, f"{base}?count=2&offset=0", f"{base}?count=2&offset=2"]
    assert (await http.get(f"/api/projects/{project}/periodicjobs?count=0")).status == 400


async def test_the_suggested_hour_is_one_with_little_to_do(http: Http, project: int) -> None:
    async def suggested() -> int:
        return int((await http.get(f"/api/projects/{project}/periodicjobs")).json["meta"]["suggested_hour"])

    before = await suggested()
    busy = [(await create(http, project, cron=f"* {before} * * *")).json["id"]]
    after = await suggested()
    assert after != before
    for number in busy:
        await patch(http, project, number, disabled=True)
    assert await suggested() == before


@pytest.fixture
async def platform(server: RunningServer) -> AsyncIterator[PlatformClient]:
    async with PlatformClient(PlatformUrls.single(server.url), server.platform_key) as client:
        yield client


async def test_a_server_runs_what_is_due_and_shows_the_job(server: RunningServer, http: Http, project: int) -> None:
    await create(http, project, cron="* * * * *")
    await come_due(server, project)
    await patch(http, project, 1, description="looked at now")
    path = f"/api/jobs/list.json?project={project}"
    (job,) = (await eventually_async(lambda: http.get(path), lambda answer: answer.json["jobs"])).json["jobs"]
    assert (job["spider"], job["spider_type"], job["tags"], job["priority"]) == ("books", "periodic", ["daily"], 3)
    metadata = (await http.get(f"/jobs/{job['id']}")).json
    assert (metadata["periodic_job_id"], metadata["scheduled_by"]) == (1, "periodic job 1")


async def test_a_server_without_a_runner_leaves_them_to_others(tmp_path: Path) -> None:
    with ForkedServer(tmp_path / "data", options=["--no-runner"]) as server:
        async with Http(server.url, server.platform_key) as http:
            await create(http, 1)
            await come_due(server, 1)
            await patch(http, 1, 1, description="looked at now")
            await create(http, 1)
            assert (await http.get("/api/jobs/list.json?project=1")).json["total"] == 0

"""Keys with names: what they open, and how running servers learn of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from scrapy_ext.server.keyring import REFRESH_SECONDS, add_key
from scrapy_ext.server.store import Store
from tests.server.http import Answer, Http
from tests.servers import RunningServer

#: How long a change may take to be seen on a busy machine; it takes REFRESH_SECONDS.
PATIENCE = 30.0


@pytest.fixture(scope="session")
def keys(server: RunningServer) -> dict[str, str]:
    """Keys added while the server runs: for two projects, for reading one, and for reading all."""

    async def added() -> dict[str, str]:
        store = await Store.open(server.where)
        try:
            return {
                "both": await add_key(store, "both", frozenset({9001, 9002}), may_write=True),
                "reader": await add_key(store, "reader", frozenset({9001}), may_write=False),
                "auditor": await add_key(store, "auditor", None, may_write=False),
            }
        finally:
            await store.close()

    return asyncio.run(added())


@pytest.fixture
async def clients(server: RunningServer, keys: dict[str, str]) -> AsyncIterator[dict[str, Http]]:
    async with (
        Http(server.url, keys["both"]) as both,
        Http(server.url, keys["reader"]) as reader,
        Http(server.url, keys["auditor"]) as auditor,
    ):
        clients = {"both": both, "reader": reader, "auditor": auditor}
        for name, http in clients.items():
            await _until(http, "/hcf/9001/list", 200, name)
        yield clients


async def _until(http: Http, path: str, status: int, what: str) -> Answer:
    deadline = time.monotonic() + PATIENCE
    while (answer := await http.get(path)).status != status:
        assert time.monotonic() < deadline, f"{what}: still {answer.status} after {PATIENCE} s"
        await asyncio.sleep(REFRESH_SECONDS / 10)
    return answer


async def test_a_key_opens_its_projects_and_no_other(clients: dict[str, Http]) -> None:
    http = clients["both"]
    assert (await http.post("/items/9002/1/1", [{"a": 1}])).status == 200
    assert (await http.get("/items/9002/1/1")).lines == [{"a": 1}]
    for path in ("/items/9003/1/1", "/hcf/9003/list", "/jobs/9003/1/1", "/collections/9003/s/x", "/activity/9003"):
        answer = await http.get(path)
        assert (answer.status, answer.text) == (403, "Forbidden. The key both does not open project 9003.\n")


async def test_the_app_and_the_job_queue_refuse_in_their_own_way(clients: dict[str, Http]) -> None:
    for path in ("/api/jobs/list.json?project=9003", "/api/projects/9003/periodicjobs"):
        answer = await clients["both"].get(path)
        assert answer.status == 403
        assert answer.json["status"] == "error"
        assert "9003" in answer.json["message"]
    answer = await clients["both"].post("/api/run.json", {"project": "9003", "spider": "s"})
    assert (answer.status, answer.json["status"]) == (403, "error")
    answer = await clients["both"].get("/jobq/9003/count")
    assert (answer.status, answer.json["error"]) == (403, "Forbidden")


async def test_a_key_for_reading_changes_nothing(clients: dict[str, Http]) -> None:
    reader, auditor = clients["reader"], clients["auditor"]
    for http in (reader, auditor):
        assert (await http.post("/items/9001/1/5", [{"a": 1}])).status == 403
        assert (await http.delete("/hcf/9001/f/s/0")).status == 403
        assert (await http.post("/api/run.json", {"project": "9001", "spider": "s"})).status == 403
        assert (await http.post("/jobq/9001/push", [{"spider": "s"}])).status == 403
        assert (await http.get("/items/9001/1/5")).lines == []
    assert (await auditor.get("/items/9004")).status == 200
    assert (await reader.get("/items/9004")).status == 403


async def test_what_is_told_of_several_projects_leaves_out_the_others(clients: dict[str, Http], http: Http) -> None:
    for project in (9001, 9002, 9003):
        await http.post("/api/run.json", {"project": str(project), "spider": "several"})
        await http.post(f"/activity/{project}", [{"event": "told", "of": project}])
    read = "/activity/projects/?count=1000"
    told = {line["of"] for line in (await clients["both"].get(read)).lines if "of" in line}
    assert told == {9001, 9002}
    told = {line["of"] for line in (await clients["reader"].get(read)).lines if "of" in line}
    assert told == {9001}
    assert (await clients["both"].get(f"{read}&p=9001&p=9003")).status == 403
    assert {9001, 9002, 9003} <= {line.get("of") for line in (await clients["auditor"].get(read)).lines}


async def test_who_did_something_is_the_keys_name(clients: dict[str, Http]) -> None:
    answer = await clients["both"].post("/api/run.json", {"project": "9002", "spider": "who"})
    metadata = (await clients["both"].get(f"/jobs/{answer.json['jobid']}")).json
    assert metadata["scheduled_by"] == "both"


async def test_the_pages_show_the_keys_projects_only(clients: dict[str, Http], http: Http) -> None:
    job = (await http.post("/api/run.json", {"project": "9001", "spider": "paged"})).json["jobid"]
    other = (await http.post("/api/run.json", {"project": "9003", "spider": "paged"})).json["jobid"]
    reader = clients["reader"]
    assert (await reader.get(f"/ui/{job}")).status == 200
    assert (await reader.get(f"/ui/{other}")).status == 404
    assert (await reader.get("/?project=9003")).status == 404
    assert "9003" not in (await reader.get("/")).text


async def test_a_key_that_is_removed_is_refused_within_seconds(server: RunningServer) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, "short-lived", None, may_write=True)
        async with Http(server.url, key) as http:
            await _until(http, "/hcf/1/list", 200, "added")
            assert await store.keys.remove("short-lived")
            await _until(http, "/hcf/1/list", 401, "removed")
    finally:
        await store.close()


async def test_keys_are_stored_as_hashes(server: RunningServer, keys: dict[str, str]) -> None:
    stored = b"".join(path.read_bytes() for path in server.data.iterdir() if path.name.startswith("platform.db"))
    assert not any(key.encode() in stored for key in keys.values())


async def test_a_jobs_token_opens_its_data_until_it_is_deleted(http: Http, server: RunningServer, project: int) -> None:
    jobs = []
    for spider in ("one", "two"):
        pushed = (await http.post(f"/jobq/{project}/push", [{"spider": spider, "state": "running"}])).lines[0]
        jobs.append((pushed["key"], pushed["auth"]))
    (job, token), (other, _) = jobs
    async with Http(server.url, job, token) as own:
        for resource in ("items", "requests", "logs", "jobs"):
            assert (await own.get(f"/{resource}/{job}")).status == 200
            assert (await own.get(f"/{resource}/{other}")).status == 401
        for path in (f"/items/{project}", f"/jobq/{project}/list", f"/api/jobs/list.json?project={project}", "/"):
            assert (await own.get(path)).status == 401
        assert (await own.post(f"/items/{job}", [{"a": 1}])).status == 200
        assert (await own.delete(f"/jobs/{job}")).status == 403
        await http.post(f"/jobq/{project}/update", [{"key": job, "state": "finished"}])
        assert (await own.post(f"/logs/{job}", [{"time": 1, "level": 20, "message": "the end"}])).status == 200
        assert (await own.post(f"/jobs/{job}", b'{"stats": {}}')).status == 200
        await http.post(f"/jobq/{project}/update", [{"key": job, "state": "deleted"}])
        assert (await own.post(f"/items/{job}?start=1", [{"a": 2}])).status == 401
        assert (await own.get(f"/items/{job}")).status == 401
    assert json.loads((await http.get(f"/jobs/{job}/state")).body) == "deleted"

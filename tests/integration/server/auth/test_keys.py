"""Keys with names: what they open, and how running servers learn of them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from scrapy_ext.server.auth.api_keys import add_key, key_hash
from scrapy_ext.server.http.routes import Access
from scrapy_ext.server.routes import ROUTES
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.engine.opening import open_engine
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import RunningServer

#: How long a change may take to be seen on a busy machine; it takes REFRESH_SECONDS.
TIMEOUT = 60.0


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
    return await eventually_async(lambda: http.get(path), lambda answer: answer.status == status, what)


async def test_a_new_key_works_when_its_owner_has_it(server: RunningServer) -> None:
    async with Http(server.url, "0" * 32) as http:
        assert (await http.get("/hcf/9001/list")).status == 401  # the server has read the keys now
    store = await Store.open(server.where)
    try:
        key = await add_key(store, "prompt", frozenset({9001}), may_write=False)
    finally:
        await store.close()
    await asyncio.sleep(0.1)
    async with Http(server.url, key) as http:
        assert (await http.get("/hcf/9001/list")).status == 200


async def test_a_key_opens_its_projects_and_no_other(clients: dict[str, Http]) -> None:
    http = clients["both"]
    assert (await http.post("/items/9002/1/1", [{"a": 1}])).status == 200
    assert (await http.get("/items/9002/1/1")).lines == [{"a": 1}]
    for path in ("/items/9003/1/1", "/hcf/9003/list", "/jobs/9003/1/1", "/collections/9003/s/x", "/activity/9003"):
        answer = await http.get(path)
        assert (answer.status, answer.text) == (
            403,
            "Forbidden. The key both does not open project 9003. Use another key.\n",
        )


async def test_no_path_shows_or_changes_a_project_of_others(clients: dict[str, Http], http: Http) -> None:
    job = (await http.post("/api/run.json", {"project": "9003", "spider": "hidden-spider"})).json["jobid"]
    await http.post(f"/items/{job}", [{"name": "hidden-item"}])
    before = [(await http.get(path)).text for path in (f"/jobs/{job}", f"/items/{job}", "/activity/9003")]
    _, spider, number = job.split("/")
    values = {"project": "9003", "project_name": "9003", "owner": "9003", "spider": spider, "job": number}
    named = {"project": "9003", "job": job, "spider": "some", "version": "1", "state": "deleted"}
    for route in ROUTES:
        if route.access in (Access.ANYONE, Access.EXTRACTION, Access.AGENT):
            continue
        parts = re.findall(r"{(\w+)(?::(\w+))?}", route.path)
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda part: values.get(part[1], "1"), route.path)
        query = "" if any(name in values for name, _ in parts) else f"?{urlencode(named)}"
        for body in (b"",) if route.method in ("GET", "DELETE") else ([named], dict(named)):
            answer = await clients["both"].call(route.method, path + query, body)
            assert "hidden" not in answer.text, (route.method, path)
            assert query or answer.status >= 400, (route.method, path)
    assert [(await http.get(path)).text for path in (f"/jobs/{job}", f"/items/{job}", "/activity/9003")] == before


async def test_no_key_of_the_platform_opens_the_extraction_service(
    clients: dict[str, Http], http: Http, server: RunningServer
) -> None:
    for known in (http, clients["auditor"], clients["both"]):
        answer = await known.post("/v1/extract", b"{}")
        assert (answer.status, answer.json["type"]) == (403, "/auth/account-suspended")
        assert answer.json["title"] == "Account Suspended"
        assert "no access to extraction" in answer.json["detail"]
        assert "EXTRACT_API_KEY" in answer.json["detail"] or "--opens extraction" in answer.json["detail"]
    async with Http(server.url, "nobodys") as stranger:
        assert (await stranger.post("/v1/extract", b"{}")).status == 401


async def test_a_key_of_the_extraction_service_opens_it_and_nothing_else_until_it_is_suspended(
    server: RunningServer,
) -> None:
    body = b'{"url": "http://nowhere.invalid/", "httpResponseBody": true}'

    async def status(http: Http, wanted: int) -> Answer:
        return await eventually_async(lambda: http.post("/v1/extract", body), lambda answer: answer.status == wanted)

    store = await Store.open(server.where)
    try:
        key = await add_key(store, "shop", frozenset(), may_write=True, extraction=True, organisation="acme")
        both = await add_key(store, "shop-too", frozenset({9001}), may_write=True, extraction=True)
        async with Http(server.url, key) as http, Http(server.url, both) as other:
            await status(http, 421)  # the key was accepted, and there is no such host
            await status(other, 421)
            assert (await other.get("/items/9001")).status == 200
            for path in ("/items/9001", "/metrics", "/api/v2/users/me", "/"):
                assert (await http.get(path)).status == 401, path
            assert await store.keys.suspend("shop", True)
            assert await store.keys.suspend("shop-too", True)
            answer = await status(http, 403)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert (answer.json["type"], answer.json["title"]) == ("/auth/account-suspended", "Account Suspended")
            assert "suspended" in answer.json["detail"]
            assert (await other.get("/items/9001")).status == 401
            assert await store.keys.suspend("shop", False)
            await status(http, 421)
            assert await store.keys.remove("shop")
            assert await store.keys.remove("shop-too")
            assert (await status(http, 401)).json["type"] == "/auth/key-not-found"
    finally:
        await store.close()


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


async def test_answers_about_several_projects_leave_out_the_others(clients: dict[str, Http], http: Http) -> None:
    for project in (9001, 9002, 9003):
        await http.post("/api/run.json", {"project": str(project), "spider": "several"})
        await http.post(f"/activity/{project}", [{"event": "posted", "of": project}])
    read = "/activity/projects/?count=1000"
    projects = {line["of"] for line in (await clients["both"].get(read)).lines if "of" in line}
    assert projects == {9001, 9002}
    projects = {line["of"] for line in (await clients["reader"].get(read)).lines if "of" in line}
    assert projects == {9001}
    assert (await clients["both"].get(f"{read}&p=9001&p=9003")).status == 403
    assert {9001, 9002, 9003} <= {line.get("of") for line in (await clients["auditor"].get(read)).lines}


async def test_projects_and_their_jobs_are_listed_for_who_may_read_them(clients: dict[str, Http], http: Http) -> None:
    for project in (9001, 9002, 9003):
        await http.post("/api/run.json", {"project": str(project), "spider": "listed"})
    for name, seen in (("both", {9001, 9002}), ("reader", {9001}), ("auditor", {9001, 9002, 9003})):
        client = clients[name]
        listed = set((await client.get("/api/scrapyd/listprojects.json")).json["projects"])
        counted = {each["project"] for each in (await client.get("/projects/jobsummaries")).json}
        for found in (listed, counted):
            assert found & {9001, 9002, 9003} == seen
            assert name == "auditor" or found == seen
        assert (await client.get("/api/v2/users/me")).json == {"username": name}


async def test_comments_are_of_their_project_only(clients: dict[str, Http], http: Http) -> None:
    made = {
        project: (await http.post(f"/api/comments/{project}/1/1/0", {"text": "t"})).json["id"]
        for project in (9002, 9003)
    }
    both = clients["both"]
    for path in (f"/{made[9002]}", "/9002/stats", "/9002/1/1", "/9002/1/1/0"):
        assert (await both.get(f"/api/comments{path}")).status == 200
        assert (await both.get(f"/api/comments{path.replace('9002', '9003')}")).status == 403
        assert (await clients["reader"].get(f"/api/comments{path}")).status == 403
    refused = [
        await both.call("PUT", f"/api/comments/{made[9003]}", {"text": "changed"}),
        await both.delete(f"/api/comments/{made[9003]}"),
        await both.delete("/api/comments/9003/1/1/0"),
        await both.post("/api/comments/9003/1/1/0", {"text": "t"}),
        await both.post("/api/comments/9003/1/1/0", {"text": "t", "project": "9002"}),
    ]
    assert {answer.status for answer in refused} == {403}
    assert [each["text"] for each in (await http.get("/api/comments/9003/1/1/0")).json].count("changed") == 0
    assert (await http.get(f"/api/comments/{made[9003]}")).status == 200
    assert (await both.call("PUT", f"/api/comments/{made[9002]}", {"text": "changed"})).json["author"] == "api"


async def test_what_follows_a_name_is_of_the_keys_projects(clients: dict[str, Http]) -> None:
    for path in (
        "/spiders/{}/lastjobsummary",
        "/spiders/{}/1/lastjobsummary",
        "/projects/{}/jobsummary",
        "/projects/{}/settings",
        "/projects/{}/settings/name",
        "/samples/{}",
        "/jobs/{}",
        "/jobs/{}/1",
        "/ids/{}/spider/nobody",
        "/jobq/{}/summary",
        "/jobq/{}/jobsummary",
        "/hcf/{}/f/s/s/q/count",
        "/api/spiders/list.json?project={}",
        "/api/jobs/count.json?project={}",
        "/api/projects/{}/periodicjobs",
    ):
        assert (await clients["both"].get(path.format(9002))).status == 200, path
        assert (await clients["both"].get(path.format(9003))).status == 403, path
    assert (await clients["both"].get("/api/v2/projects/9003/spiders/1")).status == 403


#: What writes, other than the paths of records, or gives a token that does; the body of each is good.
_WRITES = (
    ("GET", "/jobs/9001/1/1/auth", b""),
    ("GET", "/ids/9001/spider/made?create=1", b""),
    ("POST", "/samples/9001/1/5", [[1, 2]]),
    ("POST", "/collections/9001/s/c", [{"_key": "k"}]),
    ("POST", "/hcf/9001/f/s/0", [{"fp": "a"}]),
    ("POST", "/activity/9001", [{"event": "e"}]),
    ("POST", "/jobs/9001/1/1", b'{"a": 1}'),
    ("POST", "/jobs/9001/1/1/a", b"1"),
    ("DELETE", "/jobs/9001/1/1/a", b""),
    ("POST", "/projects/9001/settings", b'{"a": 1}'),
    ("POST", "/projects/9001/settings/a", b"1"),
    ("DELETE", "/projects/9001/settings/a", b""),
    ("POST", "/jobq/9001/push", [{"spider": "read-only"}]),
    ("POST", "/jobq/9001/startjob", b"{}"),
    ("POST", "/jobq/9001/update", [{"key": "9001/1/1", "a": 1}]),
    ("POST", "/jobq/9001/cancel?count=1", b""),
    ("POST", "/jobq/9001/cancel", b'[{"key": "9001/1/1"}]'),
    ("POST", "/jobq/9001/1/1/cancel", b""),
    ("POST", "/api/run.json", {"project": "9001", "spider": "read-only"}),
    ("POST", "/api/schedule.json", {"project": "9001", "spider": "read-only"}),
    ("POST", "/api/jobs/update.json", {"project": "9001", "job": "9001/1/1", "add_tag": "t"}),
    ("POST", "/api/jobs/stop.json", {"project": "9001", "job": "9001/1/1"}),
    ("POST", "/api/jobs/delete.json", {"project": "9001", "job": "9001/1/1"}),
    ("PATCH", "/api/v2/projects/9001/spiders/1/tags", b'{"add": ["t"]}'),
    ("POST", "/api/projects/9001/periodicjobs", b'{"cron": "1 2 * * *", "tasks": [{"name": "s"}]}'),
    ("PATCH", "/api/projects/9001/periodicjobs/1", b'{"disabled": true}'),
    ("DELETE", "/api/projects/9001/periodicjobs/1", b""),
    ("POST", "/api/comments/9001/1/1/0", {"text": "t"}),
    ("POST", "/api/comments/9001/1/1/0/name", {"text": "t"}),
    ("PUT", "/api/comments/9001-1", {"text": "t"}),
    ("DELETE", "/api/comments/9001/1/1/0", b""),
    ("DELETE", "/api/comments/9001-1", b""),
)


@pytest.mark.parametrize(("method", "path", "body"), _WRITES, ids=lambda each: each if isinstance(each, str) else "")
async def test_no_path_writes_for_a_key_that_reads(
    clients: dict[str, Http], method: str, path: str, body: bytes | list[object] | dict[str, str]
) -> None:
    for name in ("reader", "auditor"):
        assert (await clients[name].call(method, path, body)).status == 403, name


async def test_a_spider_gets_its_number_from_who_may_write(clients: dict[str, Http]) -> None:
    assert (await clients["reader"].get("/ids/9001/spider/numbered?create=1")).status == 403
    assert (await clients["reader"].get("/ids/9001/spider/numbered")).json is None
    number = (await clients["both"].get("/ids/9001/spider/numbered?create=1")).json
    assert (await clients["reader"].get("/ids/9001/spider/numbered")).json == number


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
    # As a word: keys of forms are hexadecimal digits.
    assert not re.search(r"\b9003\b", (await reader.get("/")).text)


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
    engine = await open_engine(server.where)
    try:
        stored = await engine.read(_key_rows)
    finally:
        await engine.close()
    if isinstance(server.where, Path):
        files = (path for path in server.where.iterdir() if path.name.startswith("platform.db"))
        stored += b"".join(path.read_bytes() for path in files)
    assert all(key_hash(key).encode() in stored for key in keys.values())
    assert not any(key.encode() in stored for key in keys.values())


async def _key_rows(tx: Transaction) -> bytes:
    rows = await tx.fetch("SELECT name, hash, projects FROM api_keys")
    rows += await tx.fetch("SELECT name, value FROM access_keys")
    return str([tuple(row) for row in rows]).encode()


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

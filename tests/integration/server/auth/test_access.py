"""Keys, and how each host says no."""

from __future__ import annotations

import time

import pytest

from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import RunningServer

PATHS = [
    ("/items/1/1/1", None),
    ("/collections/1/list", None),
    ("/hcf/1/list", None),
    ("/jobs/1/1/1", None),
    ("/activity/1", None),
    ("/jobq/1/list", "Unauthorized"),
    ("/api/jobs/list.json?project=1", "Authentication failed"),
]


@pytest.mark.parametrize(("path", "message"), PATHS)
@pytest.mark.long(keep=2)
async def test_without_the_key_every_host_refuses_in_its_own_way(
    server: RunningServer, path: str, message: str | None
) -> None:
    for key in (None, "wrong", "", server.extract_key):
        async with Http(server.url, key) as http:
            answer = await http.get(path)
            assert answer.status == 401
            if message is None:
                assert answer.text == "Unauthorized\n"
            else:
                assert answer.json["message"] == message


async def test_the_key_is_taken_as_user_name_or_as_parameter(server: RunningServer) -> None:
    async with Http(server.url, None) as http:
        assert (await http.get(f"/hcf/1/list?apikey={server.platform_key}")).status == 200
    async with Http(server.url, server.platform_key) as http:
        assert (await http.get("/hcf/1/list")).status == 200


async def test_malformed_credentials_are_refused(server: RunningServer) -> None:
    async with Http(server.url, None) as http:
        for header in ("Basic", "Basic !!!", "Bearer x", "Basic " + "QQ" * 9000, "Basic /w=="):
            assert (await http.get("/hcf/1/list", Authorization=header)).status == 401


async def test_the_time_is_public(server: RunningServer) -> None:
    async with Http(server.url, None) as http:
        answer = await http.get("/system/ts")
    assert answer.headers["Content-Type"] == "text/plain; charset=UTF-8"
    assert abs(int(answer.text) - time.time() * 1000) < 60_000


async def test_the_key_is_never_in_the_servers_log(server: RunningServer) -> None:
    async with Http(server.url, server.platform_key) as http:
        await http.get(f"/items/x?apikey={server.platform_key}")
        await http.get(f"/nothing?apikey={server.platform_key}")
    assert server.platform_key not in server.log()
    assert server.extract_key not in server.log()


async def test_unknown_paths_and_methods(http: Http) -> None:
    assert (await http.get("/nothing")).status == 404
    assert (await http.get("/collections/1")).status == 404
    answer = await http.call("PUT", "/items/1/1/1")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert (await http.get("/items/%FF")).status == 400
    answer = await http.get("/api/nothing.json")
    assert (answer.status, answer.json["status"]) == (404, "error")


async def test_head_is_get_without_its_body(http: Http, project: int) -> None:
    await http.post(f"/items/{project}/1/1", [{"a": 1}])
    answer = await http.call("HEAD", f"/items/{project}/1/1")
    assert (answer.status, answer.body) == (200, b"")


#: Method and path for the token of job 1 of spider 1 of a project P, and the status of the answer.
JOB_TOKEN_CALLS = {
    "writes items of the job": ("POST", "/items/P/1/1", 200),
    "reads an unknown path of the job": ("GET", "/items/P/1/1/2/3/4", 404),
    "replaces the metadata of the job": ("PUT", "/jobs/P/1/1", 405),
    "deletes the job": ("DELETE", "/jobs/P/1/1", 403),
    "cancels the job": ("POST", "/jobq/P/1/1/cancel", 401),
    "reads a collection with the name of the job": ("GET", "/collections/P/1/1", 401),
    "reads an unknown path of a frontier": ("GET", "/hcf/P/1/1", 401),
    "reads the items of the project": ("GET", "/items/P", 401),
}


async def test_the_token_of_a_job_is_a_credential_for_the_data_of_that_job_only(
    server: RunningServer, project: int
) -> None:
    async with Http(server.url, server.platform_key) as http:
        pushed = await http.post(f"/jobq/{project}/push", b'{"spider": "a", "state": "running"}')
        job = pushed.json
    assert job["key"] == f"{project}/1/1"
    async with Http(server.url, job["key"], job["auth"]) as http:
        for what, (method, path, status) in JOB_TOKEN_CALLS.items():
            answer = await http.call(method, path.replace("P", str(project)), b"{}" if method == "POST" else None)
            assert answer.status == status, (what, answer.text)


async def test_a_key_that_may_run_runs_stops_and_tags_jobs_and_writes_nothing_else(
    server: RunningServer, http: Http, project: int
) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"run-{project}", frozenset({project}), may_write=False, may_run=True)
    finally:
        await store.close()
    async with Http(server.url, key) as runner:
        job = f"{project}/1/1"
        await eventually_async(lambda: runner.get(f"/jobq/{project}/count"), lambda answer: answer.status == 200)
        ran = await runner.post("/api/run.json", {"project": str(project), "spider": "books"})
        assert ran.json["jobid"] == job
        form = {"project": str(project), "job": job}
        assert (await runner.post("/api/jobs/update.json", {**form, "add_tag": "checked"})).status == 200
        assert (await runner.post("/api/jobs/stop.json", form)).status == 200
        again = await runner.post("/schedule.json", {"project": str(project), "spider": "books", "jobid": "mine"})
        assert again.json["jobid"] == "mine"
        stopped = await runner.post("/cancel.json", {"project": str(project), "job": "mine"})
        assert stopped.json["prevstate"] == "pending"
        metadata = (await http.get(f"/jobs/{job}?format=json")).json
        assert (metadata["scheduled_by"], metadata["tags"]) == (f"run-{project}", ["checked"])
        for method, path, body in (
            ("POST", f"/jobq/{project}/push", [{"spider": "books"}]),
            ("POST", "/api/jobs/delete.json", form),
            ("POST", f"/items/{job}", [{"a": 1}]),
            ("POST", f"/collections/{project}/s/c", [{"_key": "a", "value": 1}]),
            ("POST", f"/projects/{project}/settings", b"{}"),
            ("POST", f"/api/projects/{project}/periodicjobs", b"{}"),
            ("POST", f"/activity/{project}", [{"event": "x"}]),
            ("DELETE", f"/hcf/{project}/f/s/s", None),
            ("POST", f"/hcf/{project}/f/feed", b"https://a.example/"),
            ("PUT", f"/hcf/{project}/f/feed", b'{"slots": 8}'),
            ("PATCH", f"/api/projects/{project}", b'{"name": "mine"}'),
            ("POST", f"/api/projects/{project}/monitors", b"{}"),
            ("POST", f"/api/projects/{project}/monitors/preview", b"{}"),
            ("POST", f"/api/projects/{project}/alerts", b"{}"),
            ("POST", f"/api/projects/{project}/alerts/1/test", b"{}"),
            ("POST", "/addversion.json", {"project": str(project), "version": "1", "egg": "x"}),
            ("POST", "/delversion.json", {"project": str(project), "version": "1"}),
            ("POST", "/delproject.json", {"project": str(project)}),
            ("POST", "/schedule.json", {"project": str(project + 1), "spider": "books"}),
            ("POST", "/api/run.json", {"project": str(project + 1), "spider": "books"}),
            ("GET", f"/ids/{project}/spider/new?create=1", None),
            ("GET", f"/jobs/{job}/auth", None),
        ):
            refused = await runner.call(method, path, body)
            assert refused.status in (403, 404) if path.endswith("/auth") else refused.status == 403, (path, refused)
        assert "may run and stop jobs, and write nothing else" in refused.text or path.endswith("/auth")
    events = [(each["event"], each["user"]) for each in (await http.get(f"/activity/{project}")).lines]
    assert ("job:tagged", f"run-{project}") in events


async def test_a_key_of_all_projects_that_may_run_changes_nothing_of_the_server(
    server: RunningServer, project: int
) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"all-{project}", None, may_write=False, may_run=True)
    finally:
        await store.close()
    async with Http(server.url, key) as runner:
        await eventually_async(lambda: runner.get("/api/usage"), lambda answer: answer.status == 200)
        assert (await runner.post("/api/retention", b'{"what": ["items"], "older_than": 1}')).status == 403
        assert (await runner.call("PATCH", "/api/users/1", b"{}")).status == 403

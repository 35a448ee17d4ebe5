"""Retention rules over HTTP, as a command, on a page, and on a server that is killed."""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.retention import rule_of
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.jobs.queries import JobFilter
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import ForkedServer, RunningServer
from tests.support.stored_jobs import add_finished
from tests.support.stores import ENGINES, Where
from tests.support.terminal_commands import scrapy


async def add(http: Http, path: str, **fields: Any) -> Answer:
    return await http.post(path, json.dumps(fields).encode())


async def test_a_rule_is_added_off_previewed_enabled_disabled_and_removed(http: Http, project: int) -> None:
    path = f"/api/projects/{project}/retention"
    made = await add(http, path, what=["logs", "items"], older_than=30, spider="books")
    assert made.status == 201
    expected = {"id": 1, "project": project, "what": ["items", "logs"], "older_than": 30, "spider": "books"}
    expected |= {"tag": None, "keep_last": None, "collections": [], "only_delivered": False, "enabled": False}
    assert made.json == {**expected, "created": made.json["created"], "changed": made.json["created"]}
    assert (await http.get(path)).json == [made.json]
    nothing = {"jobs": 0, "collections": 0, "records": 0, "bytes": 0, "next": []}
    assert (await http.get(f"{path}/1/preview")).json == nothing
    assert (await add(http, f"{path}/preview", what=["jobs"], keep_last=1)).json == nothing
    assert (await http.call("PATCH", f"{path}/1", b'{"enabled":true}')).json["enabled"] is True
    assert (await http.get(f"{path}/next")).json == []
    assert (await http.call("PATCH", f"{path}/1", b'{"enabled":1}')).status == 400
    assert (await http.delete(f"{path}/1")).status == 204
    for method, rest in (("GET", "1/preview"), ("DELETE", "1"), ("DELETE", "99")):
        assert (await http.call(method, f"{path}/{rest}")).status == 404
    assert (await http.get(path)).json == []


NUMBERS: list[Any] = [0, -1, 1.5, True, "1", 10**20, [1]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(({"what": ["items"], "older_than": value}, "older_than: must be a whole number of") for value in NUMBERS),
        *(({"what": ["items"], "keep_last": value}, "keep_last: must be a whole number of jobs") for value in NUMBERS),
        ({"what": ["items"]}, "older_than: or keep_last is required"),
        ({"older_than": 1}, "what: must be an array of some of jobs, items"),
        ({"what": [], "older_than": 1}, "what: must be an array"),
        ({"what": [["items"]], "older_than": 1}, "what: must be an array"),
        ({"what": "items", "older_than": 1}, "what: must be an array"),
        ({"what": ["jobs", "items"], "older_than": 1}, "what: must have jobs alone"),
        ({"what": ["collections", "items"], "older_than": 1}, "what: must have collections alone"),
        ({"what": ["items"], "older_than": 1, "spider": ""}, "spider: must be 1 to 255 characters"),
        ({"what": ["items"], "older_than": 1, "tag": "a\0b"}, "tag: must be 1 to 255 characters"),
        ({"what": ["items"], "older_than": 1, "tag": "keep"}, "tag: must not be keep"),
        ({"what": ["items"], "older_than": 1, "collections": ["a"]}, "collections: is for rules about collections"),
        ({"what": ["collections"], "collections": ["a"]}, "older_than: is required for collections"),
        ({"what": ["collections"], "older_than": 1}, "collections: must be an array of 1 to 50 names"),
        ({"what": ["collections"], "older_than": 1, "collections": ["a b"]}, "collections: must be 1 to 255 letters"),
        ({"what": ["collections"], "older_than": 1, "collections": [1]}, "collections: must be names"),
        ({"what": ["collections"], "older_than": 1, "keep_last": 1, "collections": ["a"]}, "keep_last: is for rules"),
        ({"what": ["jobs"], "older_than": 1, "only_delivered": True}, "only_delivered: is not possible for jobs"),
        ({"what": ["items"], "older_than": 1, "enabled": "yes"}, "enabled: must be true or false"),
        ({"what": ["items"], "older_than": 1, "number": 1}, "number: is not a field"),
    ],
)
async def test_a_wrong_rule_is_refused_with_the_field_and_the_remedy(
    http: Http, project: int, fields: Any, message: str
) -> None:
    refused = await add(http, f"/api/projects/{project}/retention", **fields)
    assert refused.status == 400
    assert message in refused.text
    assert (await http.get(f"/api/projects/{project}/retention")).json == []


async def test_limited_keys_manage_rules_of_their_projects_alone(server: RunningServer, project: int) -> None:
    store = await Store.open(server.where)
    writing = await add_key(store, f"writing-{project}", frozenset({project}), may_write=True)
    reading = await add_key(store, f"reading-{project}", frozenset({project}), may_write=False)
    reading_all = await add_key(store, f"reading-all-{project}", None, may_write=False)
    await store.close()
    rule = {"what": ["items"], "older_than": 1}
    own, other = f"/api/projects/{project}/retention", f"/api/projects/{project + 1}/retention"
    async with Http(server.url, writing) as http:
        # A running server knows a new key a little later.
        await eventually_async(lambda: http.get(own), lambda answer: answer.status == 200)
        assert (await add(http, own, **rule)).status == 201
        assert (await add(http, other, **rule)).status == 403
        assert (await http.get(other)).status == 403
        for method, path in (("GET", ""), ("POST", ""), ("POST", "/preview"), ("PATCH", "/1"), ("DELETE", "/1")):
            body = None if method == "GET" else json.dumps(rule).encode()
            assert (await http.call(method, f"/api/retention{path}", body)).status == 403
    async with Http(server.url, reading) as http:
        await eventually_async(lambda: http.get(own), lambda answer: answer.status == 200)
        assert len((await http.get(own)).json) == 1
        for method, path in (("POST", ""), ("PATCH", "/1"), ("DELETE", "/1"), ("POST", "/preview")):
            assert (await http.call(method, f"{own}{path}", json.dumps(rule).encode())).status == 403
    async with Http(server.url, reading_all) as http:
        for name in ("retention", "deliveries"):
            await eventually_async(partial(http.get, f"/api/{name}"), lambda answer: answer.status == 200)
            for method, path in (("POST", ""), ("PATCH", "/1"), ("DELETE", "/1"), ("POST", "/preview")):
                assert (await http.call(method, f"/api/{name}{path}", json.dumps(rule).encode())).status == 403


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """A database of its own, which servers use one after the other."""
    if request.param == "sqlite":
        return tmp_path / "data"
    return DatabaseUrl(request.getfixturevalue("postgresql").database())


def _server(where: Where, folder: Path) -> RunningServer:
    return ForkedServer(where) if isinstance(where, Path) else ForkedServer(folder, database=where.secret)


@pytest.mark.long
async def test_a_server_that_is_killed_between_batches_continues_after_its_start(tmp_path: Path, place: Where) -> None:
    store = await Store.open(place)
    keys = [await add_finished(store, "books", 1) for _ in range(101)]
    await store.retention.add(1, rule_of({"what": ["jobs"], "keep_last": 1, "enabled": True}))

    async def deleted() -> int:
        return await store.jobs.count(1, JobFilter(states=(JobState.DELETED,)))

    async def begun() -> bool:
        return await deleted() > 0

    async def ended() -> bool:
        return await deleted() == 100

    try:
        with _server(place, tmp_path) as server:
            await eventually_async(begun)
            server.kill()
        assert await deleted() % 50 == 0
        with _server(place, tmp_path):
            await eventually_async(ended)
        messages = [json.loads(each.event) async for page in store.activity.scan(1) for each in page]
        removed = [job for each in messages if each["event"] == "retention:removed" for job in each["jobs"]]
        assert sorted(map(JobKey.parse, removed)) == keys[:100]
        last = await store.jobs.get(keys[100])
        assert last is not None
        assert last.state is JobState.FINISHED
    finally:
        await store.close()


def run(server: RunningServer, project: int, *arguments: str) -> tuple[int, str, str]:
    named = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": str(project)}
    done = scrapy("platform", "retention", *arguments, environment={**os.environ, **named})
    return done.returncode, done.stdout, done.stderr


async def test_the_command_previews_a_rule_before_it_adds_it(server: RunningServer, http: Http, project: int) -> None:
    for _ in range(3):
        new = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])
        key = new.lines[0]["key"]
        assert (await http.post(f"/items/{key}", [{"name": "a"}])).status == 200
        assert (await http.post(f"/jobq/{project}/update", [{"key": key, "state": "finished"}])).status == 200
    rule = ("items", "--keep-last", "2", "--spider", "books")
    code, out, error = await asyncio.to_thread(run, server, project, "add", *rule, "--dry-run")
    assert code == 0
    assert "The rule removes items of jobs of spider books, beyond the newest 2 of each spider. " in error
    assert "Now this is the data of 1 job: 1 record, " in error
    preview = json.loads(out)
    assert (preview["jobs"], preview["records"], [each["job"] for each in preview["next"]]) == (
        1,
        1,
        [f"{project}/1/1"],
    )
    assert (await asyncio.to_thread(run, server, project))[1] == ""
    code, _, error = await asyncio.to_thread(run, server, project, "add", *rule)
    assert (code, "add --yes" in error) == (1, True)
    # Housekeeping may run at any moment: the rule that is switched on removes nothing before tomorrow.
    rule = (*rule, "--older-than", "1")
    code, out, _ = await asyncio.to_thread(run, server, project, "add", *rule, "--off")
    assert (code, json.loads(out)["enabled"]) == (0, False)
    assert json.loads((await asyncio.to_thread(run, server, project, "enable", "1", "--yes"))[1])["enabled"] is True
    code, out, _ = await asyncio.to_thread(run, server, project, "next")
    assert [json.loads(line)["job"] for line in out.splitlines()] == [f"{project}/1/1"]
    page = await http.get(f"/ui/{project}/retention")
    assert "items of jobs of spider books" in page.text
    assert f'href="/ui/{project}/1/1"' in page.text
    assert json.loads((await asyncio.to_thread(run, server, project, "disable", "1"))[1])["enabled"] is False
    assert (await asyncio.to_thread(run, server, project, "remove", "1"))[0] == 0
    code, _, error = await asyncio.to_thread(run, server, project, "remove", "1")
    assert (code, f"project {project} has no rule 1" in error) == (1, True)

"""Monitors and alerts over HTTP, as commands, and on servers that are killed."""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.monitors import monitor_of
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import ForkedServer, RunningServer
from tests.support.stored_jobs import add_finished
from tests.support.stores import ENGINES, Where
from tests.support.terminal_commands import scrapy
from tests.support.webhook_receiver import Receiver


async def add(http: Http, path: str, **fields: Any) -> Answer:
    return await http.post(path, json.dumps(fields).encode())


async def finished(http: Http, project: int, items: int, spider: str = "books", **metadata: Any) -> str:
    """Add a finished job by the API, as a crawl does; return its key."""
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": spider, "state": "running", **metadata}])
    key: str = pushed.json["key"]
    if items:
        await http.post(f"/items/{key}", [{"name": f"item {place}"} for place in range(items)])
    update = {"key": key, "state": "finished", "close_reason": "finished"}
    await http.post(f"/jobq/{project}/update", [update])
    return key


async def test_a_monitor_is_added_off_previewed_enabled_and_removed(http: Http, project: int) -> None:
    path = f"/api/projects/{project}/monitors"
    key = await finished(http, project, 5)
    made = await add(http, path, spider="books", checks=["items>=10", "errors == 0"], name="enough")
    assert made.status == 201
    expected = {"id": 1, "project": project, "name": "enough", "spider": "books", "tag": None, "args": {}}
    expected |= {"checks": ["items >= 10", "errors == 0"], "schema": None, "sample": 1000, "expect": None}
    assert made.json == {**expected, "enabled": False, "created": made.json["created"], "changed": made.json["changed"]}
    assert (await http.get(path)).json == [made.json]
    preview = (await http.get(f"{path}/1/preview")).json
    assert (preview["jobs"], preview["failed"]) == (1, 1)
    assert preview["results"][0]["job"] == key
    assert (await add(http, f"{path}/preview", checks=["items >= 1"])).json["passed"] == 1
    assert (await http.call("PATCH", f"{path}/1", b'{"enabled":true}')).json["enabled"] is True
    other = await finished(http, project, 3)
    (result,) = await eventually_async(lambda: results(http, path, other), bool)
    assert result["checks"][0]["sentence"] == "items is 3, expected at least 10"
    assert (await http.get(f"{path}/results?monitor=1")).json == [result]
    assert (await http.get(f"{path}/incidents")).json[0]["sentence"] == "items is 3, expected at least 10"
    activity = (await http.get(f"/activity/{project}/?count=5")).text
    assert "monitor:failed" in activity
    assert (await http.delete(f"{path}/1")).status == 204
    for method, rest in (("GET", "1/preview"), ("DELETE", "1"), ("GET", "99")):
        assert (await http.call(method, f"{path}/{rest}")).status == 404
    assert (await http.get(f"{path}/incidents")).json == []


async def results(http: Http, path: str, job: str) -> Any:
    return (await http.get(f"{path}/results?job={job}")).json


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "checks: or schema or expect is required"),
        ({"checks": "items >= 1"}, "checks: must be an array"),
        ({"checks": ["items"]}, "checks[0]: must have >=, <=, =="),
        ({"checks": ["pages >= 1"]}, "checks[0]: has no measure 'pages'"),
        ({"checks": ["items >= 5%"]}, "must compare items with a number without %"),
        ({"checks": ["coverage price >= 101%"]}, "must compare coverage with 0% to 100%"),
        ({"checks": ["items >= median of 0"]}, "must have a median of 1 to 100 runs"),
        ({"checks": ["items >= median of 3 after 4"]}, "must apply after 1 to 3 runs"),
        ({"checks": [1]}, "checks[0]: must be text"),
        ({"schema": {"type": 1}}, "schema: is not a JSON Schema"),
        ({"schema": {"$ref": "http://127.0.0.1/secret"}}, "schema: is not a JSON Schema"),
        ({"schema": {"$ref": "file:///etc/passwd"}}, "schema: is not a JSON Schema"),
        ({"schema": {"pattern": "("}}, "schema: is not a JSON Schema"),
        ({"schema": []}, "schema: must be a JSON Schema: an object"),
        ({"checks": ["items >= 1"], "sample": 5}, "sample: is for monitors with a schema"),
        ({"expect": "24h"}, "spider: is required"),
        ({"expect": "soon", "spider": "books"}, "expect: must be hours (24h) or days (7d)"),
        ({"expect": "24h", "spider": "books", "checks": ["items >= 1"]}, "expect: is for monitors without checks"),
        ({"checks": ["items >= 1"], "older_than": 1}, "older_than: is not a field"),
        ({"checks": ["items >= 1"], "args": []}, "args: must be an object"),
        ({"checks": ["items >= 1"], "name": "a\nb"}, "name: must be printable"),
    ],
)
async def test_a_wrong_monitor_is_refused_with_the_field_and_the_remedy(
    http: Http, project: int, fields: Any, message: str
) -> None:
    for path in (f"/api/projects/{project}/monitors", f"/api/projects/{project}/monitors/preview"):
        refused = await add(http, path, **fields)
        assert refused.status == 400
        assert message in refused.text


@pytest.mark.parametrize("value", [-1, "60", True, [1], 10**9])
async def test_wrong_times_of_alerts_are_refused(http: Http, project: int, value: Any) -> None:
    for name in ("alert_window", "alert_reminder"):
        answer = await http.post(f"/projects/{project}/settings", json.dumps({name: value}).encode())
        assert answer.status == 400
        assert f"{name}: must be a number of" in answer.text
    assert (await http.post(f"/projects/{project}/settings", b'{"alert_reminder": 0}')).status == 400
    assert (await http.post(f"/projects/{project}/settings", b'{"alert_window": 0}')).status == 200


async def test_limited_keys_manage_monitors_and_alerts_of_their_projects_alone(
    server: RunningServer, project: int
) -> None:
    store = await Store.open(server.where)
    writing = await add_key(store, f"m-writing-{project}", frozenset({project}), may_write=True)
    reading = await add_key(store, f"m-reading-{project}", frozenset({project}), may_write=False)
    await store.close()
    bodies = {"monitors": {"checks": ["items >= 1"]}, "alerts": {"name": "a", "url": "json://hooks.example/secret-1"}}
    async with Http(server.url, writing) as http:
        for name, body in bodies.items():
            own, other = f"/api/projects/{project}/{name}", f"/api/projects/{project + 1}/{name}"
            await eventually_async(lambda own=own: http.get(own), lambda answer: answer.status == 200)
            assert (await add(http, own, **body)).status == 201
            assert (await add(http, other, **body)).status == 403
            assert (await http.get(other)).status == 403
    async with Http(server.url, reading) as http:
        for name, body in bodies.items():
            own = f"/api/projects/{project}/{name}"
            await eventually_async(lambda own=own: http.get(own), lambda answer: answer.status == 200)
            listed = await http.get(own)
            assert len(listed.json) == 1
            assert "secret-1" not in listed.text
            for method, rest in (("POST", ""), ("PATCH", "/1"), ("DELETE", "/1")):
                assert (await http.call(method, own + rest, json.dumps(body).encode())).status == 403
            if name == "alerts":
                assert (await http.post(f"{own}/1/test")).status == 403


async def test_a_monitor_of_the_server_covers_every_project(http: Http, project: int) -> None:
    made = await add(http, "/api/monitors", checks=["items >= 10"], spider=f"only-{project}", enabled=True)
    number = made.json["id"]
    try:
        path = f"/api/projects/{project}/monitors"
        assert [each["id"] for each in (await http.get(path)).json if each["project"] is None] == [number]
        key = await finished(http, project, 1, f"only-{project}")
        (result,) = await eventually_async(lambda: results(http, path, key), bool)
        assert (result["monitor"], result["of_server"], result["outcome"]) == (number, True, "failed")
        refused = await add(http, "/api/monitors", expect="24h", spider="books")
        assert "expect: of the server must be schedule" in refused.text
    finally:
        assert (await http.delete(f"/api/monitors/{number}")).status == 204


async def test_a_failing_job_reaches_a_webhook_and_a_person_and_so_does_the_recovery(tmp_path: Path) -> None:
    options = ["--public-url", "https://crawls.example"]
    async with Receiver() as hook, Receiver() as person:
        hosts = [hook.host, person.host]
        with ForkedServer(tmp_path / "data", allow_hosts=hosts, options=options) as server:
            async with Http(server.url, server.platform_key) as http:
                await http.post("/projects/1/settings", json.dumps({"alert_window": 0.5}).encode())
                await add(http, "/api/projects/1/webhooks", url=hook.url, events=["monitor:*"])
                made = await add(http, "/api/projects/1/alerts", name="on-call", url=f"json://{person.host}/a-secret")
                assert (made.status, made.json["url"]) == (201, "json://***")
                await add(http, "/api/projects/1/monitors", checks=["items >= 10"], name="enough", enabled=True)
                key = await finished(http, 1, 2)
                (alert,) = await person.has(1)
                assert alert["title"] == "books (project 1): enough fails"
                assert "items is 2, expected at least 10" in alert["message"]
                assert f"https://crawls.example/ui/{key}" in alert["message"]
                (body,) = await hook.has(1)
                assert (body["event"], body["message"]["job"]) == ("monitor:failed", key)
                assert body["message"]["monitors"][0]["checks"][0]["value"] == 2
                await finished(http, 1, 20)
                _, over = await person.has(2)
                assert over["title"] == "books (project 1): over, enough passes again"
                kept = await eventually_async(
                    lambda: http.get("/api/projects/1/alerts/1/messages"),
                    lambda answer: [each["state"] for each in answer.json] == ["sent", "sent"],
                )
                assert [each["kind"] for each in kept.json] == ["recovery", "alert"]
                assert {each["event"] for each in await hook.has(3)} == {
                    "monitor:failed",
                    "monitor:passed",
                    "monitor:recovered",
                }
                metrics = (await http.get("/metrics")).text
                assert 'monitor_results_total{outcome="failed"} 1' in metrics
                assert "alerts_sent_total 2" in metrics
        assert "a-secret" not in server.log()


@pytest.mark.long
async def test_a_message_that_is_not_accepted_is_repeated_and_visible(tmp_path: Path) -> None:
    async with Receiver() as receiver:
        receiver.status = 500
        with ForkedServer(tmp_path / "data", allow_hosts=[receiver.host]) as server:
            async with Http(server.url, server.platform_key) as http:
                await add(http, "/api/projects/1/alerts", name="on-call", url=f"json://{receiver.host}/a-secret")
                await http.post("/projects/1/settings", json.dumps({"alert_window": 0}).encode())
                await add(http, "/api/projects/1/monitors", checks=["items >= 10"], enabled=True)
                await finished(http, 1, 1)
                await receiver.has(1)
                failing = await eventually_async(
                    lambda: http.get("/api/projects/1/alerts/1"),
                    lambda answer: answer.json["failing_since"] is not None,
                )
                assert "500" in failing.json["outcome"]
                receiver.status = 200
                await receiver.has(2)  # ten seconds later
                await eventually_async(
                    lambda: http.get("/api/projects/1/alerts/1"), lambda answer: answer.json["failing_since"] is None
                )


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """A database of its own, which servers use one after the other."""
    if request.param == "sqlite":
        return tmp_path / "data"
    return DatabaseUrl(request.getfixturevalue("postgresql").database())


def _server(where: Where, folder: Path) -> RunningServer:
    return ForkedServer(where) if isinstance(where, Path) else ForkedServer(folder, database=where.secret)


@pytest.mark.long
async def test_no_job_is_left_out_or_checked_twice_when_servers_are_killed(tmp_path: Path, place: Where) -> None:
    store = await Store.open(place)
    await store.monitors.add(1, monitor_of({"checks": ["items >= 2"], "enabled": True}))
    for _ in range(250):
        await add_finished(store, "books", 1)
    for pause in (0.3, 0.7, 1.1):
        server = _server(place, tmp_path)
        try:
            await eventually_async(lambda: store.monitors.results(1, None, 1000, False), lambda found: len(found) > 20)
            await asyncio.sleep(pause)  # at any moment of its work
        finally:
            server.kill()
    server = _server(place, tmp_path)
    try:
        await eventually_async(
            lambda: store.monitors.results(1, None, 1000, False), lambda found: len(found) == 250, timeout=180
        )
    finally:
        server.stop()
    messages = await store.activity.page(1, 10**9, 5000)
    assert sum(b"monitor:failed" in each.event for each in messages) == 250
    assert [each.jobs for each in await store.monitors.incidents(1)] == [250]
    await store.close()


# ── commands ──


async def command(server: RunningServer, project: int, *arguments: str) -> tuple[int, str, str]:
    named = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": str(project)}
    done = await asyncio.to_thread(partial(scrapy, "platform", *arguments, environment={**os.environ, **named}))
    return done.returncode, done.stdout, done.stderr


async def test_monitors_are_tried_added_and_read_by_commands(
    server: RunningServer, http: Http, project: int, tmp_path: Path
) -> None:
    key = await finished(http, project, 5)
    schema = tmp_path / "schema.json"
    schema.write_text('{"required": ["price"]}')
    new = ("monitors", "add", "--check", "items >= 10", "--schema", str(schema), "--spider", "books")
    code, out, error = await command(server, project, *new, "--dry-run", "--json")
    assert (code, json.loads(out)["failed"]) == (0, 1)
    assert "The rule checks jobs of spider books, items >= 10, items match the schema (1000 of them)." in error
    assert "Of the last 1 job: 1 failed." in error
    assert (await http.get(f"/api/projects/{project}/monitors")).json == []
    code, out, error = await command(server, project, *new, "--yes", "--json")
    assert (code, json.loads(out)["enabled"]) == (0, True)
    key = await finished(http, project, 5)
    path = f"/api/projects/{project}/monitors"
    await eventually_async(lambda: results(http, path, key), bool)
    code, out, error = await command(server, project, "monitors", "results", "--job", key, "--json")
    assert (code, json.loads(out)["outcome"]) == (0, "failed")
    code, out, error = await command(server, project, "monitors", "incidents", "--json")
    assert (code, json.loads(out)["spider"]) == (0, "books")
    assert (await command(server, project, "monitors", "remove", "1"))[0] == 0


@pytest.mark.long
async def test_targets_of_alerts_are_managed_by_commands(server: RunningServer, project: int) -> None:
    code, out, _ = await command(server, project, "alerts", "add", "on-call", "json://127.0.0.1:9/a-secret", "--json")
    assert code == 0
    assert json.loads(out)["url"] == "json://***"
    code, out, error = await command(server, project, "alerts", "test", "1")
    assert (code, out) == (1, "")
    assert "the test was not accepted: not sent: its address is not public" in error
    code, out, _ = await command(server, project, "alerts", "messages", "1", "--json")
    message = json.loads(out)
    assert message["state"] == "given up"
    code, _, error = await command(server, project, "alerts", "resend", "1", str(message["id"]))
    assert "the message was not accepted: not sent: its address is not public" in error
    again = json.loads((await command(server, project, "alerts", "messages", "1", "--json"))[1])
    assert (again["id"], again["attempts"]) == (message["id"], 2)
    for action, disabled in (("disable", True), ("enable", False)):
        assert json.loads((await command(server, project, "alerts", action, "1", "--json"))[1])["disabled"] is disabled
    assert "a-secret" not in (await command(server, project, "alerts", "--json"))[1]
    assert (await command(server, project, "alerts", "remove", "1"))[0] == 0
    code, _, error = await command(server, project, "alerts", "test", "1")
    assert (code, "no target of the project has this number" in error) == (1, True)
    code, _, error = await command(server, project, "alerts", "add", "x", "syslog://")
    assert (code, "has the scheme syslog, which is not supported" in error) == (1, True)

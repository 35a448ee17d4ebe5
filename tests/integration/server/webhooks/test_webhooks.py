"""Webhooks over HTTP: deliveries of a real server, also of one that is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import ForkedServer, RunningServer
from tests.support.stores import Where
from tests.support.webhook_receiver import Receiver

FIELDS: dict[str, Any] = {"url": "https://hooks.example/jobs", "events": ["job:completed"]}


async def add(http: Http, project: int, **fields: Any) -> Answer:
    return await http.post(f"/api/projects/{project}/webhooks", json.dumps({**FIELDS, **fields}).encode())


async def test_a_webhook_is_made_read_disabled_and_removed_and_its_secret_shown_once(http: Http, project: int) -> None:
    made = await add(http, project, events=["job:completed", "job:completed", "job:*"])
    assert made.status == 201
    secret = made.json["secret"]
    assert secret.startswith("whsec_")
    whole = {"id": 1, "project": project, "url": FIELDS["url"], "events": ["job:completed", "job:*"]} | {
        "created": made.json["created"],
        "disabled": False,
        "failing_since": None,
    }
    assert made.json == {**whole, "secret": secret}
    path = f"/api/projects/{project}/webhooks"
    for answer in (await http.get(path), await http.get(f"{path}/1"), await http.get(f"{path}/1/deliveries")):
        assert answer.status == 200
        assert secret not in answer.text
    assert (await http.get(path)).json == [whole]
    assert (await http.get(f"{path}/1")).json == whole
    disabled = await http.call("PATCH", f"{path}/1", b'{"disabled":true}')
    assert disabled.json == {**whole, "disabled": True}
    assert (await http.call("PATCH", f"{path}/1", b'{"disabled":false}')).json == whole
    assert (await http.delete(f"{path}/1")).status == 204
    for method, rest in (("GET", "1"), ("DELETE", "1"), ("POST", "1/test"), ("GET", "1/deliveries")):
        assert (await http.call(method, f"{path}/{rest}")).status == 404
    assert (await http.get(path)).json == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": 1}, "url: must be a URL"),
        ({"url": "ftp://hooks.example/"}, "url: must begin with https:// or http://"),
        ({"url": "file:///etc/passwd"}, "url: is not a URL"),
        ({"url": "https://me:secret@hooks.example/"}, "url: must have no user name and no password"),
        ({"url": "http://hooks.example:99999/"}, "url: is not a URL"),
        ({"url": "http://hooks.example\\@127.0.0.1/"}, "url: is not a URL"),
        ({"url": "http://hooks.example/a b"}, "url: is not a URL"),
        ({"url": "https://hooks.example/" + "x" * 2000}, "at most 2000 characters"),
        ({"events": []}, "events: must be an array of 1 to 50 names"),
        ({"events": "job:completed"}, "events: must be an array"),
        ({"events": ["job *"]}, "events: has 'job *', which is not an event"),
        ({"secret": "mine"}, "secret: is not a field of this request"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
async def test_faults_are_reported(http: Http, project: int, fields: dict[str, Any], message: str) -> None:
    answer = await add(http, project, **fields)
    assert (answer.status, answer.json["status"]) == (400, "badrequest")
    assert message in answer.json["message"]
    assert "secret@" not in answer.text


@pytest.mark.parametrize("body", [b"", b"[]", b'{"disabled":1}', b'{"url":"x"}'])
async def test_nor_is_a_change_that_is_none(http: Http, project: int, body: bytes) -> None:
    await add(http, project)
    assert (await http.call("PATCH", f"/api/projects/{project}/webhooks/1", body)).status == 400
    for method, rest in (("PUT", ""), ("PUT", "/1"), ("GET", "/1/test"), ("POST", "/1/deliveries")):
        assert (await http.call(method, f"/api/projects/{project}/webhooks{rest}")).status == 405
    assert (await http.get(f"/api/projects/{project}/webhooks/1/deliveries?count=0")).status == 400
    assert (await http.get(f"/api/projects/{project}/webhooks/1/else")).status == 404


async def test_a_key_that_may_only_read_makes_none(server: RunningServer, project: int) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"reader-{project}", frozenset({project}), may_write=False)
    finally:
        await store.close()
    async with Http(server.url, key) as reader, timeout_after(60):
        await eventually_async(
            lambda: reader.get(f"/api/projects/{project}/webhooks"), lambda answer: answer.status == 200
        )
        assert (await add(reader, project)).status == 403
        assert (await add(reader, project + 1)).status == 403


@pytest.fixture
async def two(where: Where, receiver: Receiver) -> AsyncIterator[Callable[[], RunningServer]]:
    """Starts servers, one after the other, on the same database."""
    database = None if isinstance(where, Path) else where.secret
    data = where if isinstance(where, Path) else Path("unused")
    started: list[RunningServer] = []

    def start() -> RunningServer:
        started.append(ForkedServer(data, database=database, allow_hosts=[receiver.host]))
        return started[-1]

    yield start
    for server in started:
        if server.process.returncode is None:
            server.kill()


async def test_a_delivery_is_made_again_when_its_server_was_killed_in_the_middle(
    two: Callable[[], RunningServer], receiver: Receiver, change: Callable[[str], Any]
) -> None:
    first = two()
    receiver.gate.clear()
    async with Http(first.url, first.platform_key) as http:
        secret = (await add(http, 1, url=receiver.url, events=["job:scheduled"])).json["secret"]
        assert (await http.post("/api/run.json", {"project": "1", "spider": "books"})).status == 200
        await receiver.has(1)
    await asyncio.to_thread(first.kill)
    receiver.gate.set()
    # As a minute passes: what was claimed is free again.
    await change("UPDATE webhook_deliveries SET due = 1 WHERE due IS NOT NULL")
    second = await asyncio.to_thread(two)
    async with Http(second.url, second.platform_key) as http, timeout_after(60):
        once, again = await receiver.has(2)
        assert once == again
        assert once["message"]["event"] == "job:scheduled"
        answer = await eventually_async(
            lambda: http.get("/api/projects/1/webhooks/1/deliveries"),
            lambda answer: answer.json[0]["state"] != "pending",
        )
    (delivery,) = answer.json
    assert (delivery["id"], delivery["state"], delivery["attempts"]) == (once["id"], "delivered", 2)
    assert delivery["outcome"] == "answered 200"
    assert await asyncio.to_thread(second.stop) == 0
    assert len(receiver.requests) == 2
    for server in (first, second):
        assert secret not in server.log()
        assert "Traceback" not in server.log()

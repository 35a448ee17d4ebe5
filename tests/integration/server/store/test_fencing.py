"""Writes of a job's process, each in the transaction of its fence, on each engine.

The calls skip the check of the token, as a call does whose attempt ends between that check and its write.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.app import Service
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.routes import Access
from scrapy_ext.server.platform import ROUTES
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.frontier.frontier import Slot
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode

JOB = JobKey(1, 1, 1)
SLOT = "/hcf/1/front/s"
#: A call for each write that the process of job 1/1/1 may do: path with query, and body. Each changes some table if the
#: earlier ones were made.
WRITES = {
    "POST /items/{project}/{spider}/{job}": ("/items/1/1/1", b'{"a": 1}'),
    "POST /requests/{project}/{spider}/{job}": (
        "/requests/1/1/1",
        b'{"time": 1, "method": "GET", "url": "http://a", "status": 200, "duration": 1, "rs": 1}',
    ),
    "POST /logs/{project}/{spider}/{job}": ("/logs/1/1/1", b'{"time": 1, "level": 20, "message": "a"}'),
    "POST /samples/{project}/{spider}/{job}": ("/samples/1/1/1", b"[1, 2]"),
    "POST /collections/{project}/{type}/{collection}": ("/collections/1/s/things", b'{"_key": "b"}\n{"_key": "c"}'),
    "POST /collections/{project}/{type}/{collection}/deleted": ("/collections/1/s/things/deleted", b'"c"'),
    "POST /collections/{project}/{type}/{collection}/{key}": ("/collections/1/s/new/b", b"{}"),
    "DELETE /collections/{project}/{type}/{collection}/{key}": ("/collections/1/s/things/a", b""),
    "DELETE /collections/{project}/{type}/{collection}": ("/collections/1/s/things?prefix=b", b""),
    "POST /collections/{project}/rename": ("/collections/1/rename?name=things&new_name=others", b""),
    "POST /collections/{project}/delete": ("/collections/1/delete?name=others", b""),
    "POST /hcf/{project}/{frontier}/s/{slot}": (f"{SLOT}/1", b'{"fp": "b"}'),
    "POST /hcf/{project}/{frontier}/s/{slot}/q/deleted": (f"{SLOT}/1/q/deleted", b'"BATCH"'),
    "POST /hcf/{project}/{frontier}/s": ("/hcf/1/front/s", b'{"slot": "1", "fp": "c"}'),
    "POST /hcf/{project}/{frontier}/q/deleted": ("/hcf/1/front/q/deleted", b'{"slot": "2", "ids": ["OTHER"]}'),
    "PUT /hcf/{project}/{frontier}/feed": ("/hcf/1/front/feed", b'{"slots": 4}'),
    "POST /hcf/{project}/{frontier}/feed": ("/hcf/1/front/feed", b"http://a.example/"),
    "DELETE /hcf/{project}/{frontier}/s/{slot}": (f"{SLOT}/1", b""),
    "POST /activity/{project}": ("/activity/1", b'{"event": "a"}'),
    "POST /jobs/{project}/{spider}/{job}": ("/jobs/1/1/1", b'{"a": 1}'),
    "POST /jobs/{project}/{spider}/{job}/{field}": ("/jobs/1/1/1/a", b"2"),
    "DELETE /jobs/{project}/{spider}/{job}/{field}": ("/jobs/1/1/1/spider_args", b""),
    "POST /jobq/{project}/report": ("/jobq/1/report", b'{"job": "1/1/1", "number": 1}'),
    "POST /jobq/{project}/update": ("/jobq/1/update", b'{"key": "1/1/1", "state": "finished"}'),
}
#: A read whose question is a body.
READS = {"POST /hcf/{project}/{frontier}/q"}
TABLES = (
    "record_totals",
    "record_chunks",
    "collections",
    "collection_records",
    "frontier_slots",
    "frontier_batches",
    "frontier_feeds",
    "attempts",
    "worker_groups",
    "activity",
    "jobs",
)


def test_every_route_by_which_a_process_writes_is_in_the_table() -> None:
    admitted = {
        f"{route.method} {route.shown}"
        for route in ROUTES
        if route.access in (Access.JOB, Access.PROCESS) and route.method != "GET"
    }
    assert admitted - READS == set(WRITES)


async def state(look: Any) -> list[Any]:
    return [sorted(await look(f"SELECT * FROM {table}"), key=repr) for table in TABLES]


async def made(store: Store, attempt: Attempt, call: tuple[str, str, bytes]) -> tuple[int, bytes]:
    """Make a call of an attempt without a check of its token; return the status and the body of the answer."""
    method, address, body = call
    path, _, query = address.partition("?")
    sent: list[dict[str, Any]] = []

    async def admit(call: Call) -> None:
        call.grant = Grant(str(attempt.key), frozenset({attempt.key.project}), attempt=attempt)
        call.need_where_named()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode()}
    scope["headers"] = [(b"content-length", b"%d" % len(body))]
    await RequestMiddleware(Service(ROUTES, store, admit), slow=60, client_timeout=60)(scope, receive, send)
    return sent[0]["status"], sent[-1].get("body", b"")


@pytest.fixture
async def attempt(store: Store) -> Attempt:
    """The second attempt of a job with data of each kind."""
    await store.jobs.add(1, [NewJob("spider", JobState.PENDING, {"spider_args": {"a": "1"}})], "tests")
    await store.nodes.join(StoredNode("node", "here", 1, frozenset(), 1, 1, 1, draining=False))
    (first,) = await store.attempts.place()
    await store.attempts.give_back(first)
    (second,) = await store.attempts.place()
    assert (second.key, second.number) == (JOB, 2)
    await store.groups.open(JOB, 1, 2)
    slots = [(f"{SLOT}/{slot}", b'{"fp": "a"}') for slot in (1, 2)]
    for address, body in (("/collections/1/s/things", b'{"_key": "a"}'), *slots):
        assert (await made(store, second, ("POST", address, body)))[0] == 200
    return second


@pytest.mark.long(keep=1)
async def test_an_attempt_that_is_over_writes_nothing(store: Store, attempt: Attempt, look: Any) -> None:
    early = attempt._replace(number=1)
    (batch,), (other,) = [await store.frontier.read(Slot(1, "front", slot), 1) for slot in "12"]
    ids = {b"BATCH": batch.id.encode(), b"OTHER": other.id.encode()}
    calls = {
        write: (write.partition(" ")[0], address, re.sub(rb"BATCH|OTHER", lambda match: ids[match[0]], body))
        for write, (address, body) in WRITES.items()
    }
    before = await state(look)
    answers = {write: await made(store, early, call) for write, call in calls.items()}
    assert {write for write, (_, text) in answers.items() if ATTEMPT_OVER.encode() not in text} == set()
    assert {status for status, _ in answers.values()} == {403}
    assert await state(look) == before
    for write, call in calls.items():
        before = await state(look)
        status, text = await made(store, attempt, call)
        assert status < 300, (write, text)
        assert await state(look) != before, write

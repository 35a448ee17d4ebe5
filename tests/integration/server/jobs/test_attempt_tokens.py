"""Rights of the token of a job's process, over HTTP, and their end."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.platform.errors import AttemptOver
from scrapy_ext.server.auth.tokens import AttemptTokens
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.servers import RunningServer


class Running(NamedTuple):
    """Job of a node, as its process receives it."""

    store: Store
    attempt: Attempt
    other: JobKey
    token: str


async def given(store: Store, attempt: Attempt) -> None:
    """Wait until a job is given to its node: by this process, or by the node of the server."""

    async def look() -> bool:
        await store.attempts.place()
        return await store.attempts.numbers(attempt.key) == [attempt.number]

    await eventually_async(look, what=f"{attempt} to be placed")


async def beat(store: Store, name: str) -> None:
    """Say that a node lives, so that the server's own node does not take it for dead."""
    for number in itertools.count(2):
        await store.nodes.heartbeat(name, number)
        await asyncio.sleep(1)


@pytest.fixture
async def running(server: RunningServer, project: int) -> AsyncIterator[Running]:
    store = await Store.open(server.where)
    name = f"node-of-tests-{project}"
    beating: asyncio.Task[None] | None = None
    try:
        added = await store.jobs.add(
            project,
            [NewJob(name, JobState.PENDING, {"node_tags": [f"tests-{project}"]}) for name in ("first", "second")],
            "tests",
        )
        first, second = (key for key in added if isinstance(key, JobKey))
        node = StoredNode(name, "here", 1, frozenset({f"tests-{project}"}), project, 1, 1, draining=False)
        await store.nodes.join(node)
        beating = asyncio.create_task(beat(store, name))
        attempt = Attempt(first, 1)
        await given(store, attempt)
        yield Running(store, attempt, second, await AttemptTokens(store).token(attempt))
    finally:
        if beating is not None:
            beating.cancel()
        await store.attempts.end(Attempt(first, 1), "finished")
        await store.attempts.end(Attempt(first, 2), "finished")
        await store.nodes.leave(name)
        await store.close()


#: Method, path, body; whether it is admitted. In paths, J is the job, O another job of the project, P the project.
CALLS = {
    "writes its items": ("POST", "/items/J?start=0", b'{"a": 1}', True),
    "writes its requests": (
        "POST",
        "/requests/J",
        b'{"time": 1, "method": "GET", "url": "http://a", "status": 200, "duration": 1, "rs": 1}',
        True,
    ),
    "writes its log": ("POST", "/logs/J", b'{"time": 1, "level": 20, "message": "a"}', True),
    "writes its samples": ("POST", "/samples/J", b"[1, 2]", True),
    "writes its metadata": ("POST", "/jobs/J", b'{"frameworkstats": {}}', True),
    "reads its items": ("GET", "/items/J", b"", True),
    "reads another job of the project": ("GET", "/items/O", b"", True),
    "reads the jobs of the project": ("GET", "/jobq/P/list", b"", True),
    "writes collections": ("POST", "/collections/P/s/things", b'{"_key": "a"}', True),
    "reads collections": ("GET", "/collections/P/s/things", b"", True),
    "writes frontiers": ("POST", "/hcf/P/front/s/1", b'{"fp": "a"}', True),
    "writes activity": ("POST", "/activity/P", b'{"event": "a"}', True),
    "writes items of another job": ("POST", "/items/O", b'{"a": 1}', False),
    "writes metadata of another job": ("POST", "/jobs/O", b'{"a": 1}', False),
    "deletes its job": ("DELETE", "/jobs/J", b"", False),
    "deletes another job": ("DELETE", "/jobs/O", b"", False),
    "ends another job": ("POST", "/jobq/P/update", b'{"key": "O", "state": "finished"}', False),
    "cancels jobs": ("POST", "/jobq/P/cancel?count=9", b"", False),
    "takes jobs": ("POST", "/jobq/P/startjob", b"", False),
    "adds jobs": ("POST", "/jobq/P/push", b'{"spider": "x"}', False),
    "runs jobs": ("POST", "/api/run.json", b"project=P&spider=x", False),
    "stops jobs": ("POST", "/api/jobs/stop.json", b"project=P&job=O", False),
    "changes settings of the project": ("POST", "/projects/P/settings", b'{"a": 1}', False),
    "writes items of another project": ("POST", "/items/999999/1/1", b'{"a": 1}', False),
    "reads items of another project": ("GET", "/items/999999/1/1", b"", False),
    "writes collections of another project": ("POST", "/collections/999999/s/things", b'{"_key": "a"}', False),
    "reads frontiers of another project": ("GET", "/hcf/999999/list", b"", False),
    "reads metrics": ("GET", "/metrics", b"", False),
}


@pytest.mark.parametrize("what", CALLS)
async def test_a_process_of_a_job(running: Running, server: RunningServer, what: str) -> None:
    method, path, body, allowed = CALLS[what]
    job, other = str(running.attempt.key), str(running.other)
    named = (("J", job), ("O", other), ("P", str(running.attempt.key.project)))
    parts = path.split("/")
    path = "/".join(dict(named).get(part, part) if "?" not in part else part for part in parts)
    path = path.replace("/J?", f"/{job}?")
    text = body.decode()
    if path.startswith(("/api", "/jobq")):
        text = text.replace("=P", f"={named[2][1]}").replace("=O", f"={other}").replace('"O"', f'"{other}"')
    async with Http(server.url, running.token) as http:
        form = {"Content_Type": "application/x-www-form-urlencoded"} if path.startswith("/api") else {}
        answer = await http.call(method, path, text.encode() or None, **form)
        if allowed:
            assert answer.status == 200, answer.text
        else:
            assert answer.status in (401, 403), (answer.status, answer.text)


async def test_a_process_of_a_job_stores_items_of_a_finished_job_of_its_project(
    running: Running, server: RunningServer
) -> None:
    """Of several workers of a frontier, the one that takes over from a dead one ends the last commit of that."""
    other = str(running.other)
    async with Http(server.url, server.platform_key) as http:
        body = {"key": other, "state": "finished", "close_reason": "killed"}
        assert (await http.post(f"/jobq/{running.other.project}/update", json.dumps(body).encode())).status == 200
    async with Http(server.url, running.token) as http:
        assert (await http.post(f"/items/{other}", b'{"a": 1}')).status == 200
        for path in (f"/logs/{other}", f"/requests/{other}", f"/jobs/{other}", f"/samples/{other}"):
            assert (await http.post(path, b"{}")).status == 403
        assert (await http.call("DELETE", f"/jobs/{other}")).status == 403
    assert (await running.store.items.stats(running.other)).totals.input_values == 1


async def test_an_attempt_that_is_over_writes_nothing_more(running: Running, server: RunningServer) -> None:
    key, store = running.attempt.key, running.store
    assert await store.attempts.give_back(running.attempt)  # it waits, and comes back to the node as another attempt
    await given(store, Attempt(key, 2))
    newer = await AttemptTokens(store).token(Attempt(key, 2))
    project = key.project
    writes = [
        (f"/items/{key}", b'{"a": 1}'),
        (f"/logs/{key}", b'{"time": 1, "level": 20, "message": "a"}'),
        (f"/jobs/{key}", b'{"a": 1}'),
        (f"/jobq/{project}/update", f'{{"key": "{key}", "state": "finished"}}'.encode()),
        (f"/collections/{project}/s/things", b'{"_key": "a"}'),
        (f"/hcf/{project}/front/s/1", b'{"fp": "a"}'),
        (f"/activity/{project}", b'{"event": "a"}'),
    ]
    async with Http(server.url, running.token) as old, Http(server.url, newer) as new:
        for path, body in writes:
            answer = await old.post(path, body)
            assert answer.status == 403
            assert ATTEMPT_OVER in answer.text
        assert (await old.get(f"/items/{key}")).status == 403
        async with PlatformClient(PlatformUrls.single(server.url), running.token) as client:
            with pytest.raises(AttemptOver):  # by which a crawl knows that another process has its job
                await client.items.write(key, b'{"a": 1}', 0, attempts=1)
        for path, body in writes:
            assert (await new.post(path, body)).status == 200
        assert (await new.get(f"/jobs/{key}/state")).json == "running", "its process has not ended yet"
        assert await store.attempts.end(Attempt(key, 2), None)
        assert (await new.post(f"/items/{key}", b'{"a": 1}')).status == 403
    job = await store.jobs.get(key)
    assert job is not None
    assert (job.state, job.metadata["close_reason"]) == (JobState.FINISHED, "finished")
    assert (await store.items.stats(key)).totals.input_values == 1


@pytest.mark.parametrize("change", ["attempt", "job", "digest"])
async def test_a_token_that_was_changed_is_no_token(running: Running, server: RunningServer, change: str) -> None:
    project, spider, job, attempt, digest = running.token.split("-")
    changed = {
        "attempt": (project, spider, job, "2", digest),
        "job": (project, spider, "2", attempt, digest),
        "digest": (project, spider, job, attempt, digest[:-1] + ("0" if digest[-1] != "0" else "1")),
    }[change]
    async with Http(server.url, "-".join(changed)) as http:
        assert (await http.get(f"/items/{running.attempt.key}")).status == 401


async def test_a_token_opens_the_extraction_service_while_its_attempt_lasts(
    running: Running, server: RunningServer
) -> None:
    async with Http(server.url, running.token) as http:
        call = ("/v1/extract", b'{"url": "nonsense"}')
        assert (await http.post(*call, Content_Type="application/json")).status == 400
        await running.store.attempts.end(running.attempt, "finished")
        assert (await http.post(*call, Content_Type="application/json")).status == 403

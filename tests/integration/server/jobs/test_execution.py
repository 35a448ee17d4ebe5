"""Attempts at jobs that are asked to end before they have a process, and a database that is away meanwhile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.jobs.attempts.execution import Execution, Intent, Terms
from scrapy_ext.server.jobs.attempts.output import Output
from scrapy_ext.server.jobs.nodes.node import Node, NodeConfig, Pools
from scrapy_ext.server.jobs.versions.environments import LOCAL, Environments, LocalProject, Prepared
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.jobs.states import Change
from tests.support.eventually import TIMEOUT, eventually_async


class Building(Environments):
    """A build that never ends, of a database that is away when it is asked first."""

    asked = 0

    async def prepare(self, project: int, version: str | None) -> Prepared:
        self.asked += 1
        if self.asked == 1:
            raise StoreAwayError("away")
        await asyncio.Event().wait()
        raise AssertionError


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    yield store
    await store.close()


async def scheduled(store: Store, spider: str = "quick") -> JobKey:
    (key,) = await store.jobs.add(1, [NewJob(spider, JobState.PENDING, {})], "tests")
    assert isinstance(key, JobKey)
    return key


async def stored(store: Store, key: JobKey) -> StoredJob:
    job = await store.jobs.get(key)
    assert job is not None
    return job


@pytest.mark.parametrize(
    ("intent", "state", "reason"),
    [(Intent.CANCEL, JobState.FINISHED, "cancelled"), (Intent.DRAIN, JobState.PENDING, None)],
)
async def test_one_that_is_asked_to_end_does_not_wait_for_its_build(
    store: Store, tmp_path: Path, intent: Intent, state: JobState, reason: str | None
) -> None:
    key = await scheduled(store)
    await store.nodes.join(StoredNode("node", "here", 1, frozenset(), 1, 1, 1, draining=False))
    (attempt,) = await store.attempts.place()
    building = Building(store, tmp_path / "cache")
    execution = Execution(store, building, Terms("http://127.0.0.1:1"), attempt, asyncio.Semaphore(1))

    async def builds() -> bool:
        return building.asked == 2

    await eventually_async(builds, what="the build")
    if intent is Intent.CANCEL:
        await store.jobs.cancel(1, [key], "tests")
    execution.stop(intent)
    await asyncio.wait_for(execution.task, TIMEOUT)
    job = await stored(store, key)
    assert (job.state, job.metadata.get("close_reason")) == (state, reason)
    assert await store.attempts.numbers(key) == []


class Prepares(Environments):
    """Environments of a Python that is ready."""

    async def prepare(self, project: int, version: str | None) -> Prepared:
        return Prepared(sys.executable, Path.cwd(), LOCAL, None)


class EndsWithout:
    """A process that ends with 0 when it is terminated, before its crawl has a session: it sends no reason."""

    pid = 0
    output = Output()

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.is_begun = asyncio.Event()

    async def start(self, *_: Any, **__: Any) -> EndsWithout:
        self.is_begun.set()
        return self

    async def up(self) -> None:
        await self.ended.wait()

    async def wait(self) -> int:
        await self.ended.wait()
        return 0

    def terminate(self) -> None:
        self.ended.set()

    kill = terminate


@pytest.mark.parametrize(
    ("intent", "sent", "state", "reason"),
    [
        (Intent.CANCEL, None, JobState.FINISHED, "cancelled"),
        (Intent.END, None, JobState.FINISHED, "shutdown"),
        (Intent.TIME, None, JobState.FINISHED, "timed out"),
        (Intent.DRAIN, None, JobState.PENDING, None),
        (Intent.CANCEL, "finished", JobState.FINISHED, "finished"),
        (None, None, JobState.FINISHED, "failed"),
    ],
)
async def test_a_crawl_that_is_stopped_before_it_sends_a_reason_has_that_of_the_stop(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    intent: Intent | None,
    sent: str | None,
    state: JobState,
    reason: str | None,
) -> None:
    key = await scheduled(store)
    await store.nodes.join(StoredNode("node", "here", 1, frozenset(), 1, 1, 1, draining=False))
    (attempt,) = await store.attempts.place()
    process = EndsWithout()
    monkeypatch.setattr("scrapy_ext.server.jobs.attempts.execution.JobProcess", process)
    environments = Prepares(store, tmp_path / "cache", LocalProject(1, tmp_path))
    execution = Execution(store, environments, Terms("http://127.0.0.1:1"), attempt, asyncio.Semaphore(1))
    await asyncio.wait_for(process.is_begun.wait(), TIMEOUT)
    if sent is not None:
        await store.jobs.change(1, [Change(key, JobState.FINISHED, {"close_reason": sent})], "tests")
    if intent is Intent.CANCEL:
        await store.jobs.cancel(1, [key], "tests")
    if intent is None:
        process.terminate()
    else:
        execution.stop(intent)
    await asyncio.wait_for(execution.task, TIMEOUT)
    job = await stored(store, key)
    assert (job.state, job.metadata.get("close_reason")) == (state, reason)


async def test_a_node_that_leaves_gives_back_what_it_has_not_begun(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    local = LocalProject(1, tmp_path / "project")
    environments = Building(store, tmp_path / "cache", local)
    config = NodeConfig(units=1, local=local)
    other = await Store.open(tmp_path / "data")  # of another process: the node is not notified of what that adds
    node = Node(Pools(store, store, store), environments, "http://127.0.0.1:1", config)

    async def look() -> None:
        """Begin nothing: a node on a busy machine would look in between."""

    monkeypatch.setattr(node, "_poll", look)
    await node.start()
    try:
        key = await scheduled(other, "py:script.py")
        assert await other.attempts.place()
    finally:
        await node.stop()
        await other.close()
    job = await stored(store, key)
    assert (job.state, job.metadata.get("nodes_lost")) == (JobState.PENDING, None)
    assert await store.nodes.listed() == []


async def test_a_node_leaves_without_a_database(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ext.server.jobs.nodes.node._LAST_STEPS", 0.1)
    local = LocalProject(1, tmp_path)
    config = NodeConfig(units=1, local=local, grace=0)
    building = Building(store, tmp_path / "cache", local)
    node = Node(Pools(store, store, store), building, "http://127.0.0.1:1", config)
    await node.start()
    await scheduled(store)
    node.wake()

    async def builds() -> bool:
        return building.asked == 2

    await eventually_async(builds, what="the build")

    async def away(*_: object) -> None:
        raise StoreAwayError("away")

    monkeypatch.setattr(store.attempts, "give_back", away)
    await asyncio.wait_for(node.stop(), TIMEOUT)


async def test_one_whose_end_cannot_be_stored_is_not_run_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_ext.server.jobs.attempts.execution._LONG_RETRY", 0)
    key = await scheduled(store)
    await store.nodes.join(StoredNode("node", "here", 1, frozenset(), 1, 1, 1, draining=False))
    (attempt,) = await store.attempts.place()
    end, refusals = store.attempts.end, [ValueError("the database is odd")]

    async def odd(*arguments: Any) -> bool:
        if refusals:
            raise refusals.pop()
        return await end(*arguments)

    monkeypatch.setattr(store.attempts, "end", odd)
    execution = Execution(
        store, Environments(store, tmp_path), Terms("http://127.0.0.1:1"), attempt, asyncio.Semaphore(1)
    )
    await asyncio.wait_for(execution.task, TIMEOUT)
    assert execution.is_settled
    assert (await stored(store, key)).metadata["close_reason"] == "no_version"

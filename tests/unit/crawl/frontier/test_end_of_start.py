"""The end of start() in a group: reported when all of it is stored, and not before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.tracking import Tracker
from scrapy_ext.crawl.frontier.end_of_start import EndOfStart
from scrapy_ext.crawl.frontier.frontier import CrawlFrontier
from scrapy_ext.crawl.session import keeper
from tests.support.eventually import eventually_async


class World:
    """A worker that runs start() and other requests. ``steps``: what must happen first; ``reports``: of the end."""

    def __init__(self) -> None:
        self.processing = SimpleNamespace(active=1)
        self.engine = SimpleNamespace(_start=object(), scraper=SimpleNamespace(start_itemproc_async=self.processing))
        self.tracker = Tracker()
        self.local = self.tracker.local("fp", object(), "host", None)  # type: ignore[arg-type]
        self.sent, self.committed = asyncio.Event(), asyncio.Event()
        self.commits = SimpleNamespace(failure=None)
        self.failure: Exception | None = None
        self.reports = 0

    async def stored(self) -> None:
        await self.sent.wait()
        if self.failure is not None:
            raise self.failure

    async def flush(self) -> None:
        await self.committed.wait()

    def done(self) -> None:
        self.reports += 1

    def end(self) -> EndOfStart:
        """The object under test."""
        world: Any = self
        memory: Any = SimpleNamespace(tracker=self.tracker)
        return EndOfStart(world, memory, world, world, world)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(keeper, "_POLL", 0.0)
    return World()


async def passes() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_it_is_reported_once_when_everything_of_start_is_stored_whatever_else_runs(world: World) -> None:
    holder = world.tracker.sent(0, "other", object(), "host")  # type: ignore[arg-type]
    world.tracker.local("child", object(), "host", holder)  # type: ignore[arg-type]
    end = world.end()
    end.begin()
    steps = (
        lambda: setattr(world.engine, "_start", None),
        lambda: setattr(world.processing, "active", 0),
        lambda: world.tracker.drop(world.local),
        world.sent.set,
        world.committed.set,
    )
    for step in steps:
        await passes()
        assert world.reports == 0
        step()
    await eventually_async(lambda: world.reports, what="the report")
    await passes()
    assert world.reports == 1
    assert world.tracker.unfinished == 2


@pytest.mark.parametrize("where", ["requests", "commit", "close"])
async def test_nothing_is_reported_of_a_start_that_is_not_stored(world: World, where: str) -> None:
    world.engine._start, world.processing.active = None, 0
    world.tracker.drop(world.local)
    world.failure = PlatformError("away") if where == "requests" else None
    world.commits.failure = PlatformError("away") if where == "commit" else None
    end = world.end()
    end.begin()
    await passes()
    if where != "close":
        world.sent.set()
        world.committed.set()
    await passes()
    await end.close()
    assert world.reports == 0


@pytest.mark.parametrize("error", [PlatformError("away"), ValueError("no number")])
async def test_a_worker_that_cannot_continue_start_closes_the_crawl(error: Exception) -> None:
    failed: list[Exception] = []

    async def fail(_key: object) -> int:
        raise error

    frontier: Any = SimpleNamespace(
        give_up=failed.append,
        items=SimpleNamespace(skip_start_items=None),
        _ownership=SimpleNamespace(start_items_of_others=fail),
        _session=SimpleNamespace(job=SimpleNamespace(key=None)),
    )
    assert not await CrawlFrontier._before_start(frontier)
    assert failed == [error]

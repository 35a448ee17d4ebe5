"""Table of the tasks of housekeeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.housekeeping.loop import COUNT_INTERVAL, PURGE_INTERVAL, SPACE_INTERVAL, Progress, Task
from scrapy_ext.server.housekeeping.retention import INTERVAL, Retention
from scrapy_ext.server.jobs.versions.environments import Environments
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.interface import pause_after
from scrapy_ext.server.store.expiry.steps import Steps

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
#: Maximum seconds of a run. The other tasks run before it continues.
_LONGEST: Final = 10.0


def tasks_of(store: Store, config: ServerConfig, environments: Environments) -> list[Task]:
    """Return the tasks of a server."""
    expiry = store.expiry
    # A deleted job goes after its data, and space is free then.
    purged, space = asyncio.Event(), asyncio.Event()
    return [
        Task("deleted data", PURGE_INTERVAL, partial(_purge, store, (purged, space)), store.deleted),
        Task("free space", SPACE_INTERVAL, partial(_removing_nothing, store.return_space), space),
        Task("count of stored bytes", COUNT_INTERVAL, partial(_removing_nothing, store.count_stored)),
        _task("deleted jobs", 10 * _MINUTE, partial(expiry.deleted_jobs, config.keep_deleted), purged),
        _task("expired records", 10 * _MINUTE, expiry.expired_records),
        _task("frontiers", _HOUR, partial(expiry.frontiers, config.keep_dead_letters)),
        _task("staged items", _HOUR, expiry.staged_items),
        _task("activity", _HOUR, partial(expiry.messages, config.keep_activity, config.keep_activity_messages)),
        _task("deliveries", _HOUR, partial(expiry.deliveries, config.keep_deliveries)),
        _task("monitor results", _HOUR, partial(expiry.monitor_results, config.keep_monitor_results)),
        Task("forgotten incidents", _HOUR, partial(_counted, store.monitors.forget)),
        _task("uploads", _HOUR, expiry.uploads),
        Task("interrupted restores", _MINUTE, partial(_removing_nothing, store.restores.clean)),
        Task("retention", INTERVAL, partial(_removing_nothing, Retention(store).run)),
        *node_tasks(environments),
    ]


def node_tasks(environments: Environments) -> list[Task]:
    """Return the tasks of a machine that runs jobs."""

    async def run() -> Progress:
        return Progress(await environments.remove_unneeded())

    return [Task("environments", _HOUR, run)]


async def _purge(store: Store, followers: Sequence[asyncio.Event]) -> Progress:
    owners = (await store.purge()).owners
    if owners:
        for each in followers:
            each.set()
    return Progress(owners)


async def _removing_nothing(run: Callable[[], Awaitable[object]]) -> Progress:
    await run()
    return Progress(0)


async def _counted(run: Callable[[], Awaitable[int]]) -> Progress:
    return Progress(await run())


def _task(name: str, interval: float, begin: Callable[[], Steps], wake: asyncio.Event | None = None) -> Task:
    return Task(name, interval, _Removal(begin).run, wake)


class _Removal:
    """Removal in steps, with pauses. A long one continues where the run before was interrupted."""

    def __init__(self, begin: Callable[[], Steps]) -> None:
        self._begin = begin
        self._steps: Steps | None = None

    async def run(self) -> Progress:
        steps, self._steps = self._steps or self._begin(), None
        removed, began = 0, time.monotonic()
        deadline = began + _LONGEST
        async for rows in steps:
            removed += rows
            if time.monotonic() > deadline:
                self._steps = steps
                return Progress(removed, is_done=False)
            await asyncio.sleep(pause_after(time.monotonic() - began))
            began = time.monotonic()
        return Progress(removed)

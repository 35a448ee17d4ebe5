"""Housekeeping: a table of tasks that remove deleted and old data, and a loop for each.

Every task works in bounded steps, and can be interrupted between any two of them: the next run continues. Several
servers on one database may run the same task at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, NamedTuple

from scrapy_ext.api.platform.retention import Rule
from scrapy_ext.compatibility.python import run_together
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.jobs.versions.environments import Environments
from scrapy_ext.server.loops import Loop
from scrapy_ext.server.metrics import counter
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.interface import pause_after
from scrapy_ext.server.store.expiry.steps import Steps
from scrapy_ext.telemetry.families import Family

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
#: Seconds between two polls for deletions, which other servers make, too, and for changed rules of retention.
_PURGE_INTERVAL: Final = 30.0
_RETENTION_INTERVAL: Final = 30.0
#: Seconds between two rounds of retention over all rules.
_ROUND: Final = _HOUR
#: Seconds between the first runs of two tasks. At once, they would take all connections of the store, from the first
#: requests of a server, and each connection is memory.
_APART: Final = 0.02
#: Maximum seconds of a run. The other tasks run before it continues.
_LONGEST: Final = 10.0


class Progress(NamedTuple):
    """Result of a run: the number of removed objects, and whether the task is complete until its next interval."""

    removed: int
    is_done: bool = True


class Task(NamedTuple):
    """Task of housekeeping: its name in the log and the metrics, its interval in seconds, and one run of it."""

    name: str
    interval: float
    run: Callable[[], Awaitable[Progress]]
    #: Causes a run before the interval is over.
    wake: asyncio.Event | None = None


class Housekeeping:
    """Loops over the tasks, until :meth:`run` is cancelled."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._removed = {task.name: 0 for task in tasks}

    async def run(self) -> None:
        """Run forever; failures are logged and retried."""
        await run_together(*(self._repeat(task, number * _APART) for number, task in enumerate(self._tasks)))

    async def _repeat(self, task: Task, delay: float) -> None:
        async def act() -> float | None:
            progress = await task.run()
            self._removed[task.name] += progress.removed
            return None if progress.is_done else 0.0

        await asyncio.sleep(delay)
        await Loop(f"housekeeping ({task.name})", act, task.interval, task.wake).run()

    def metrics(self) -> Iterator[Family]:
        """Yield the metrics of the tasks."""
        samples = [({"task": name}, number) for name, number in self._removed.items()]
        yield from counter("housekeeping_removed_total", "Deleted and old objects that were removed.", samples)


def tasks_of(store: Store, config: ServerConfig, environments: Environments) -> list[Task]:
    """Return the tasks of a server."""
    expiry = store.expiry
    # A deleted job goes after its data, and space is free then.
    purged, space = asyncio.Event(), asyncio.Event()
    return [
        Task("deleted data", _PURGE_INTERVAL, partial(_purge, store, (purged, space)), store.deleted),
        Task("free space", _MINUTE, partial(_removing_nothing, store.return_space), space),
        Task("count of stored bytes", 10 * _MINUTE, partial(_removing_nothing, store.count_stored)),
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
        Task("retention", _RETENTION_INTERVAL, partial(_removing_nothing, Retention(store).run)),
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


class Retention:
    """Application of the enabled retention rules, each to all projects that it covers.

    A round over all rules takes as many runs as it needs, so that the other tasks go on. A new round begins after an
    hour, and soon after the enabled rules have changed. Nothing but the removed data itself is remembered: after a
    restart a new round begins.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: list[Rule] = []
        self._round: AsyncGenerator[None, None] | None = None
        self._due = 0.0

    async def run(self) -> None:
        """Continue the round, or begin one that is due, for some seconds."""
        rules = await self._store.retention.enabled()
        if rules != self._rules:
            self._rules, self._due = rules, 0.0
            await self._end()
        if self._round is None and rules and time.monotonic() >= self._due:
            self._round, self._due = self._steps(rules), time.monotonic() + _ROUND
        if self._round is not None:
            until = time.monotonic() + _LONGEST
            try:
                async for _ in self._round:
                    if time.monotonic() >= until:
                        return
            except Exception:
                self._due = 0.0  # the next run begins anew
                await self._end()
                raise
            await self._end()

    async def _end(self) -> None:
        if self._round is not None:
            await self._round.aclose()
            self._round = None

    async def _steps(self, rules: list[Rule]) -> AsyncGenerator[None, None]:
        projects = await self._store.jobs.projects()
        for rule in rules:
            for project in projects if rule.project is None else [rule.project]:
                async with aclosing(self._store.retention.apply(rule, project)) as steps:
                    async for done in steps:
                        yield
                        if done.over:
                            break

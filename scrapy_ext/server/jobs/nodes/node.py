"""A node: takes the jobs that are placed on it, and keeps saying that it is there.

Others take a node for dead whose beat stands still, and go on with its jobs. So a node that cannot say that it lives
stops the processes of its jobs in time, before others may begin: they go on when it has said so again, and are killed
when it was taken for dead. A thread of its own watches over that, which no stalled event loop holds up, and for a node
that is itself stopped a process of its own (``guard``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from scrapy_ext.server.jobs.attempts.execution import Door, Execution, Intent, Terms
from scrapy_ext.server.jobs.clock import elapsing
from scrapy_ext.server.jobs.nodes.carriers import Carrier
from scrapy_ext.server.jobs.nodes.guard import Guard
from scrapy_ext.server.jobs.nodes.presence import Presence
from scrapy_ext.server.jobs.nodes.reaping import DEAD_AFTER, Reaper
from scrapy_ext.server.jobs.nodes.watch import watch
from scrapy_ext.server.jobs.versions.environments import Environments, LocalProject
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.attempts import Attempt
from scrapy_ext.server.store.errors import StoreError
from scrapy_ext.server.store.nodes import Node as StoredNode
from scrapy_ext.server.store.nodes import new_name

#: Seconds between two beats, between two looks at what there is to do, and after which jobs stop for want of a beat.
_BEAT: Final = 2.0
_LOOK: Final = 1.0
_STOP_AFTER: Final = DEAD_AFTER - 2.0
#: Jobs that start at once: a start is what takes the processor, and beats must not wait for it.
_STARTS: Final = 2 * (os.cpu_count() or 1)
#: Seconds for jobs whose time to end is over to be killed, and their ends stored.
_LAST_STEPS: Final = 20.0
#: Seconds between two looks at the last beat.
_WATCH: Final = 0.1
#: How often a job may lose its node.
MOST_LOSSES: Final = 5

logger = logging.getLogger(__name__)


class NodeConfig(NamedTuple):
    """What a node takes: jobs of ``units`` at once, of its ``local`` project or of deployed versions.

    ``grace``: seconds for a job to end by itself when it is asked to. ``unit_memory``: MiB of memory for each unit of a
    job. ``job_timeout``: seconds that a job may run which says nothing of that itself; None: without end.
    """

    units: int
    tags: frozenset[str] = frozenset()
    local: LocalProject | None = None
    grace: float = 30.0
    unit_memory: int = 1024
    job_timeout: float | None = None


class Lines(NamedTuple):
    """A node's ways to the database: for what its jobs need, for what the nodes need, and for its beats alone."""

    jobs: Store
    nodes: Store
    beats: Store


class Node:
    """Started and stopped with the server."""

    def __init__(
        self,
        lines: Lines,
        environments: Environments,
        door: Door,
        config: NodeConfig,
        carrier: Carrier,
        *,
        presence: Presence | None = None,
    ) -> None:
        self._lines = lines
        self._store = lines.nodes
        self._environments = environments
        self._config = config
        self._carrier = carrier
        self._reaper = Reaper(lines.nodes, carrier, MOST_LOSSES)
        self._guard = Guard()
        self._presence = presence or Presence(None)
        self._terms = Terms(door.url, config.grace, config.unit_memory, config.job_timeout)
        self._starts = asyncio.Semaphore(_STARTS)
        self._jobs: dict[Attempt, Execution] = {}
        self._beat = 0
        self._confirmed = elapsing()
        self._draining = False
        self._ended = threading.Event()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._watching = threading.Thread(target=self._watch, name="node", daemon=True)
        self.name = ""

    async def start(self) -> None:
        """Join the others; raises :class:`StoreError`."""
        for node in await self._store.nodes.listed():
            if self._presence.gone([node.name]):
                await self._store.attempts.reap(node.name, node.beat, MOST_LOSSES)
        await self._join()
        self._tasks = [
            asyncio.create_task(self._again_and_again(_BEAT, self._say)),
            asyncio.create_task(self._again_and_again(_LOOK, self._look)),
            asyncio.create_task(watch(self._jobs.values)),
        ]
        self._lines.jobs.jobs.news.add(self.wake)
        self._watching.start()

    async def drain(self) -> None:
        """End the jobs, which wait for another node then, and take no more."""
        self._draining = True
        with contextlib.suppress(StoreError):
            await self._store.nodes.drain(self.name)
        for execution in self._jobs.values():
            execution.stop(Intent.DRAIN)
        if self._jobs:
            tasks = [execution.task for execution in self._jobs.values()]
            _, late = await asyncio.wait(tasks, timeout=self._config.grace + _LAST_STEPS)
            for task in late:  # the database does not take their end: others find that this node is gone
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        with contextlib.suppress(StoreError):  # what was given to it and not begun is no loss
            for held in await self._store.attempts.of_node(self.name):
                await self._store.attempts.give_back(held.attempt)

    async def stop(self) -> None:
        """Leave; what still runs is killed, and goes on elsewhere."""
        await self.drain()
        self._lines.jobs.jobs.news.discard(self.wake)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._carrier.stop()
        self._ended.set()
        await asyncio.to_thread(self._watching.join)
        with contextlib.suppress(StoreError):
            await self._store.nodes.leave(self.name)
        self._presence.hide(self.name)

    def wake(self) -> None:
        """Look at once: there may be something to do."""
        self._wake.set()

    async def _join(self) -> None:
        self.name = new_name()
        self._beat = 1
        sent = elapsing()
        local = self._config.local
        await self._store.nodes.join(
            StoredNode(
                name=self.name,
                host=socket.gethostname(),
                units=self._config.units,
                tags=self._config.tags,
                project=local.project if local is not None else None,
                beat=self._beat,
                started=self._store.clock(),
                draining=False,
            )
        )
        self._confirmed = sent
        self._presence.show(self.name)
        await self._carrier.serve(self.name, self.wake)

    async def _again_and_again(self, pause: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await act()
            except StoreError as error:
                self._reaper.blind()
                logger.warning("Node %s could not reach the database: %s", self.name, error)
            except Exception:
                logger.exception("Node %s failed in what it does all the time", self.name)
            if act == self._look:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), pause)
                self._wake.clear()
            else:
                await asyncio.sleep(pause)

    async def _say(self) -> None:
        self._beat += 1
        sent = elapsing()  # the answer may be late, and others count from what is stored
        if await self._lines.beats.nodes.beat(self.name, self._beat):
            self._confirmed = sent
            return
        logger.error("Node %s was taken for dead; its %d jobs go on elsewhere", self.name, len(self._jobs))
        for execution in self._jobs.values():
            execution.stop(Intent.LOST)
        if not self._draining:
            await self._join()

    async def _look(self) -> None:
        await self._reaper.look()
        if not self._draining:
            try:
                await self._store.attempts.place(self._carrier.carry)
            except StoreError:
                raise
            except Exception:  # whatever is wrong with one that waits, those that run are looked after
                logger.exception("Node %s could not place jobs", self.name)
        held = {each.attempt: each for each in await self._store.attempts.of_node(self.name)}
        for attempt, each in held.items():
            if attempt not in self._jobs and not self._draining:
                self._take(attempt)
            elif each.cancelled and attempt in self._jobs:
                self._jobs[attempt].stop(Intent.CANCEL)
            elif each.state.value != "running" and attempt in self._jobs:
                self._jobs[attempt].stop(Intent.END)
        for attempt, execution in self._jobs.items():
            if attempt not in held and not execution.is_settled:
                execution.stop(Intent.LOST)
            elif elapsing() < self._confirmed + _STOP_AFTER:
                execution.go_on()

    def _take(self, attempt: Attempt) -> None:
        execution = Execution(self._lines.jobs, self._environments, self._terms, attempt, self._starts)
        self._jobs[attempt] = execution
        execution.task.add_done_callback(lambda _: self._let_go(attempt))

    def _let_go(self, attempt: Attempt) -> None:
        self._jobs.pop(attempt, None)
        self._wake.set()

    def _watch(self) -> None:
        """In a thread: stop the jobs when the last beat is too old, and keep the guard informed who does it instead."""
        while not self._ended.wait(_WATCH):
            until = self._confirmed + _STOP_AFTER
            executions = list(self._jobs.values())
            self._guard.tell(until, [pid for execution in executions if (pid := execution.pid) is not None])
            if elapsing() >= until:
                for execution in executions:
                    execution.pause()
        self._guard.tell(0, [execution.pid for execution in self._jobs.values() if execution.pid is not None])
        self._guard.end()

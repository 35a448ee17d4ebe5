"""Node: runs the jobs that are placed on it, and sends heartbeats.

A node whose heartbeat is unchanged is dead to the other nodes, which place its jobs again. So a node whose heartbeats
are not stored stops the processes of its jobs (SIGSTOP) before that time. They continue once a heartbeat is stored, and
are killed when the node was removed as dead. A thread does that independently of the event loop, and for a node that is
itself stopped, a process beside it (``guard``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.compatibility.python import elapsing
from scrapy_ext.server.jobs.attempts.execution import Execution, Intent, Terms
from scrapy_ext.server.jobs.attempts.samples import MEASURED_EVERY, measure
from scrapy_ext.server.jobs.nodes.dead_nodes import DEAD_AFTER, Detection, NodeLocks
from scrapy_ext.server.jobs.nodes.watchdog import NodeGuard
from scrapy_ext.server.jobs.versions.environments import Environments, LocalProject
from scrapy_ext.server.loops import Loop
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.nodes import StoredNode, new_name

if TYPE_CHECKING:
    from scrapy_ext.server.jobs.nodes.notifier import Notifier

#: Seconds between heartbeats, between polls of the database, and from the last stored heartbeat until jobs stop.
_HEARTBEAT: Final = 2.0
_POLL: Final = 1.0
_STOP_AFTER: Final = DEAD_AFTER - 2.0
#: Maximum concurrent starts of jobs: they load the processor, which heartbeats need too.
_STARTS: Final = 2 * (os.cpu_count() or 1)
#: Seconds to kill jobs after the grace period, and to store their ends.
_LAST_STEPS: Final = 20.0
#: Seconds between two checks of the last heartbeat.
_WATCH: Final = 0.1
#: Maximum number of lost nodes of a job.
MOST_LOSSES: Final = 5

logger = logging.getLogger(__name__)


class NodeConfig(NamedTuple):
    #: Units of the jobs that run at once.
    units: int
    tags: frozenset[str] = frozenset()
    #: The project that runs without a deployed version.
    local: LocalProject | None = None
    #: Seconds between the request to end a job and its kill.
    grace: float = 30.0
    #: MiB of memory per unit of a job.
    unit_memory: int = 1024
    #: Seconds that jobs without a timeout of their own may run; None: without limit.
    job_timeout: float | None = None
    #: Whether processes of deployed versions get the variables of OpenTelemetry.
    opentelemetry: bool = False


class Pools(NamedTuple):
    """Connection pools of a node: for its jobs, for itself, and for its heartbeats."""

    jobs: Store
    nodes: Store
    heartbeats: Store


class Node:
    """A node, started and stopped with its server or worker.

    ``notifier`` None: the database is this process's own, so that the node that places a job is the one that runs it.
    """

    def __init__(
        self,
        pools: Pools,
        environments: Environments,
        url: str,
        config: NodeConfig,
        notifier: Notifier | None = None,
        *,
        locks: NodeLocks | None = None,
    ) -> None:
        self._pools = pools
        self._store = pools.nodes
        self._environments = environments
        self._config = config
        self._notifier = notifier
        self._detection = Detection(pools.nodes, MOST_LOSSES)
        self._guard = NodeGuard()
        self._locks = locks or NodeLocks(None)
        self._terms = Terms(url, config.grace, config.unit_memory, config.job_timeout, config.opentelemetry)
        self._starts = asyncio.Semaphore(_STARTS)
        self._jobs: dict[Attempt, Execution] = {}
        self._heartbeat = 0
        self._confirmed = elapsing()
        self._draining = False
        self._ended = threading.Event()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._watching = threading.Thread(target=self._watch, name="node", daemon=True)
        self.name = ""

    async def start(self) -> None:
        """Add the node, and release jobs of earlier nodes of this data folder; raise :class:`StoreError`."""
        for node in await self._store.nodes.listed():
            if self._locks.ended([node.name]):
                await self._store.attempts.release_jobs(node.name, node.heartbeat, MOST_LOSSES)
        await self._join()
        self._tasks = [
            asyncio.create_task(loop.run())
            for loop in (
                Loop("the node's heartbeats", partial(self._unless_lost, self._send_heartbeat), _HEARTBEAT),
                Loop("the node's jobs", partial(self._unless_lost, self._poll), _POLL, self._wake),
                Loop("the jobs' measurements", partial(measure, self._jobs.values), MEASURED_EVERY),
            )
        ]
        self._pools.jobs.jobs.news.add(self.wake)
        self._watching.start()

    async def drain(self) -> None:
        """Take no more jobs, and end the running ones, which are then pending for another node."""
        self._draining = True
        with contextlib.suppress(StoreError):
            await self._store.nodes.drain(self.name)
        for execution in self._jobs.values():
            execution.stop(Intent.DRAIN)
        if self._jobs:
            tasks = [execution.task for execution in self._jobs.values()]
            _, late = await asyncio.wait(tasks, timeout=self._config.grace + _LAST_STEPS)
            for task in late:  # their ends cannot be stored: other nodes will detect that this one is dead
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        with contextlib.suppress(StoreError):  # jobs that were placed here and never started
            for held in await self._store.attempts.of_node(self.name):
                await self._store.attempts.give_back(held.attempt)

    async def stop(self) -> None:
        """Drain and remove the node; jobs that still run are killed, and continue on another node."""
        await self.drain()
        self._pools.jobs.jobs.news.discard(self.wake)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._notifier is not None:
            await self._notifier.stop()
        self._ended.set()
        await asyncio.to_thread(self._watching.join)
        with contextlib.suppress(StoreError):
            await self._store.nodes.leave(self.name)
        self._locks.release(self.name)

    @property
    def trouble(self) -> str | None:
        """The reason why the node takes no jobs now; None if it does."""
        if self._draining:
            return "The node is draining."
        if elapsing() >= self._confirmed + _STOP_AFTER:
            return f"No heartbeat of the node was stored for {_STOP_AFTER:g} s. Its jobs are stopped until one is."
        return None

    def wake(self) -> None:
        """Poll at once."""
        self._wake.set()

    async def _join(self) -> None:
        self.name = new_name()
        self._heartbeat = 1
        sent = elapsing()
        local = self._config.local
        await self._store.nodes.join(
            StoredNode(
                name=self.name,
                host=socket.gethostname(),
                units=self._config.units,
                tags=self._config.tags,
                project=local.project if local is not None else None,
                heartbeat=self._heartbeat,
                started=self._store.clock(),
                draining=False,
            )
        )
        self._confirmed = sent
        self._locks.hold(self.name)
        if self._notifier is not None:
            await self._notifier.listen(self.name, self.wake)

    async def _unless_lost(self, act: Callable[[], Awaitable[None]]) -> None:
        """Run a pass. One that cannot reach the database says nothing about the heartbeats of others."""
        try:
            await act()
        except StoreError:
            self._detection.forget()
            raise

    async def _send_heartbeat(self) -> None:
        self._heartbeat += 1
        sent = elapsing()  # the answer may be late, and other nodes count from the commit
        if await self._pools.heartbeats.nodes.heartbeat(self.name, self._heartbeat):
            self._confirmed = sent
            return
        logger.error("Node %s was found dead by others; its %d jobs are placed again", self.name, len(self._jobs))
        for execution in self._jobs.values():
            execution.stop(Intent.LOST)
        if not self._draining:
            await self._join()

    async def _poll(self) -> None:
        await self._detection.poll()
        if not self._draining:
            try:
                await self._store.attempts.place(None if self._notifier is None else self._notifier.notify)
            except StoreError:
                raise
            except Exception:  # an invalid pending job does not affect the running ones
                logger.exception("Node %s could not place jobs", self.name)
        held = {each.attempt: each for each in await self._store.attempts.of_node(self.name)}
        for attempt, each in held.items():
            if attempt not in self._jobs and not self._draining:
                self._run(attempt)
            elif each.cancelled and attempt in self._jobs:
                self._jobs[attempt].stop(Intent.CANCEL)
            elif each.state is JobState.DELETED and attempt in self._jobs:
                self._jobs[attempt].discard()
            elif each.state is not JobState.RUNNING and attempt in self._jobs:
                self._jobs[attempt].stop(Intent.END)
        for attempt, execution in self._jobs.items():
            if attempt not in held and not execution.is_settled:
                execution.stop(Intent.LOST)
            elif elapsing() < self._confirmed + _STOP_AFTER:
                execution.resume()

    def _run(self, attempt: Attempt) -> None:
        execution = Execution(self._pools.jobs, self._environments, self._terms, attempt, self._starts)
        self._jobs[attempt] = execution
        execution.task.add_done_callback(lambda _: self._forget(attempt))

    def _forget(self, attempt: Attempt) -> None:
        self._jobs.pop(attempt, None)
        self._wake.set()

    def _watch(self) -> None:
        """In a thread: stop the jobs when the last heartbeat is too old, and inform the guard, which else does it."""
        while not self._ended.wait(_WATCH):
            until = self._confirmed + _STOP_AFTER
            executions = list(self._jobs.values())
            self._guard.extend(until, [pid for execution in executions if (pid := execution.pid) is not None])
            if elapsing() >= until:
                for execution in executions:
                    execution.pause()
        self._guard.extend(0, [execution.pid for execution in self._jobs.values() if execution.pid is not None])
        self._guard.end()

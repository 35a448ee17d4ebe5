"""Crawls that are killed and started again with the same job, until they are done."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import asyncpg

from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.store.engine.opening import FILE
from tests.support.crash import killed_server
from tests.support.crash.killed_server import KillAt
from tests.support.crash.maze import SETTINGS, SPIDER, Maze, Outcome, is_held_back, outcome
from tests.support.crawls import Crawl, Project, Running, ask_server, collect, key
from tests.support.eventually import TIMEOUT, eventually
from tests.support.faults import FaultProxy, KillPoint, Step
from tests.support.servers import RunningServer

#: Calls that a crawl makes as long as it gets on. One that hangs may still read its slots and renew its claims.
_PROGRESS = (Step.CHILDREN, Step.PAYLOAD, Step.JOURNAL, Step.ITEMS, Step.ACKNOWLEDGE)


class Life:
    """One process of a worker, from its start to its end."""

    def __init__(self, running: Running, proxy: FaultProxy) -> None:
        self._running = running
        self.pid = running.process.pid
        self.proxy = proxy

    @property
    def log(self) -> str:
        return self._running.log.read_text()

    @property
    def job(self) -> str | None:
        """The job that it runs, once it has printed its ID."""
        found = re.search(r"Job (\d+/\d+/\d+) (started|resumed)", self.log)
        return found[1] if found else None

    @property
    def is_over(self) -> bool:
        return self._running.process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def end(self) -> Crawl:
        """Wait until it has ended by itself."""
        return self._running.end(TIMEOUT)

    def die(self) -> None:
        """Wait until it was killed at its kill point."""
        crawl = self.end()
        assert crawl.returncode == -signal.SIGKILL, (
            f"it ended ({crawl.returncode}, {crawl.reason}) before the place to kill it at; "
            f"it made these calls: {dict(self.proxy.steps)}\n{crawl.log[-3000:]}"
        )

    def kill(self) -> None:
        """Kill it now, unless it has ended."""
        self._running.process.kill()
        self._running.process.wait()


def until(condition: Callable[[], object], what: str, *lives: Life) -> None:
    """Wait until something is so, which these processes must live to see."""

    def read() -> object:
        found = condition()
        for life in () if found else lives:
            assert not life.is_over, f"it ended too early for this: {what}\n{life.log[-3000:]}"
        return found

    eventually(read, what=what)


class Worker:
    """One worker of a crawl, through all of its lives; all of them run the same job."""

    def __init__(self, crawls: Crawls, *arguments: str) -> None:
        self._crawls = crawls
        self._arguments = arguments
        self.lives: list[Life] = []
        #: Whether it was killed for good, and its job is left as it was.
        self.is_given_up = False

    @property
    def job(self) -> str | None:
        """The job; None as long as no life has printed one."""
        return next(filter(None, (life.job for life in self.lives)), None)

    @property
    def is_done(self) -> bool:
        """True if its job is finished. A process may be killed after that."""
        return self.job is not None and self._crawls.state_of(self.job) == ("finished", "finished")

    def start(
        self,
        kill_at: KillPoint | None = None,
        *,
        victim: int | None = None,
        latency: float = 0.0,
        proxied: bool = True,
        arguments: Sequence[str] = (),
    ) -> Life:
        """Begin a life, with a proxy of its own before the platform unless it is not ``proxied``. ``victim`` is the
        process that is killed; if it is not named, the one that is started. ``arguments`` are those of this life."""
        job = self.job
        resumed = ("-s", f"PLATFORM_JOB={job}") if job is not None else ()
        proxy = self._crawls.proxy(latency, kill_at)
        life = self._crawls.start(proxy, *self._arguments, *resumed, *arguments, proxied=proxied)
        proxy.victim = victim or life.pid
        self.lives.append(life)
        return life

    def finish(self) -> Crawl:
        """Begin a life that is not disturbed, and see it to its end."""
        return finished(self.start())


def finished(life: Life) -> Crawl:
    """See a life to its end, which must be a good one."""
    crawl = life.end()
    assert (crawl.returncode, crawl.reason) == (0, "finished"), (
        f"{crawl.returncode} {crawl.reason}\n{crawl.log[-3000:]}"
    )
    return crawl


def survive(plans: Mapping[Worker, Sequence[KillPoint]], latency: float = 0.0) -> None:
    """Run workers side by side until all are done. Each is killed at these points, one a life, and started again
    each time; one that is done before a point was not killed there. Fail when none of them gets on any more."""
    points = {worker: iter(plan) for worker, plan in plans.items()}
    lives = {worker: worker.start(next(points[worker], None), latency=latency) for worker in plans}
    progress, deadline = 0, time.monotonic() + TIMEOUT
    while lives:
        all_lives = [life for worker in plans for life in worker.lives]
        made = len(all_lives) + sum(life.proxy.steps[step] for life in all_lives for step in _PROGRESS)
        if made > progress:
            progress, deadline = made, time.monotonic() + TIMEOUT
        assert time.monotonic() < deadline, "\n".join(life.log[-2000:] for life in lives.values())
        for worker, life in list(lives.items()):
            if not life.is_over:
                continue
            was_killed = life.end().returncode == -signal.SIGKILL
            if was_killed and not worker.is_done:
                lives[worker] = worker.start(next(points[worker], None), latency=latency)
                continue
            del lives[worker]
            if not was_killed:
                finished(life)
        time.sleep(0.02)


class Platform:
    """The real server, which can be started again with the same data on the same port.

    ``kill_at``: where the first one kills itself; in all of them, removals have small steps then.
    """

    def __init__(
        self,
        data: Path,
        *,
        database: str | None = None,
        key: str | None = None,
        options: Sequence[str] = (),
        kill_at: KillAt | None = None,
    ) -> None:
        self.data = data
        self.database = database
        self._options = options
        self._server = self._start(*(("--platform-key", key) if key else ()), kill_at=kill_at)
        self.url = self._server.url
        self.key = key or self._server.platform_key

    def _start(self, *options: str, kill_at: KillAt | None = None, program: str = "scrapy_ext.server") -> RunningServer:
        if kill_at is None:
            return RunningServer(self.data, database=self.database, options=(*self._options, *options), program=program)
        return RunningServer(
            self.data,
            database=self.database,
            options=(*self._options, *options),
            environment=kill_at.environment,
            program=killed_server.__name__,
        )

    @property
    def pid(self) -> int:
        return self._server.process.pid

    @property
    def was_killed(self) -> bool:
        return self._server.process.poll() == -signal.SIGKILL

    @property
    def log(self) -> str:
        return self._server.log()

    def kill(self) -> None:
        self._server.kill()

    def start_again(self, kill_at: KillAt | None = None) -> None:
        """Start it again, after a kill if it still runs."""
        self._server.kill()
        self._server = self._start(*self._same, kill_at=kill_at)

    def upgrade(self, program: str) -> int:
        """Let it drain and end, and start a module that runs another server; returns the exit code of the first."""
        code = self._server.terminate()
        self._server = self._start(*self._same, program=program)
        return code

    @property
    def _same(self) -> tuple[str, ...]:
        return "--port", self.url.rpartition(":")[2], "--platform-key", self.key

    def close(self) -> None:
        if self._server.process.returncode is None:
            self._server.stop()
        else:
            self._server.kill()  # closes its pipes

    async def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on the database; returns its rows."""
        if self.database is None:
            with closing(sqlite3.connect(self.data / FILE, isolation_level=None, timeout=60)) as connection:
                return connection.execute(sql).fetchall()
        connection = await asyncpg.connect(self.database)
        try:
            return list(map(tuple, await connection.fetch(sql)))
        finally:
            await connection.close()


class Crawls:
    """Crawls of one maze on one platform: one worker in the frontier of its job, several in one that they share."""

    def __init__(self, folder: Path, platform: Platform, maze: Maze, settings: str = "") -> None:
        self._platform = platform
        self.maze = maze
        # Jobs of other tests may be on the same platform, frontiers too.
        self._shared = re.sub(r"\W", "-", f"{folder.parent.name}-{folder.name}")[-60:]
        self._is_shared = False
        ours = f"PLATFORM_API_KEY = {platform.key!r}\n"
        self._project = Project(folder / "project", SPIDER, SETTINGS + ours + settings, is_forked=False)
        self._workers: list[Worker] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            for life in worker.lives:
                life.kill()
        self._open.close()

    def workers(self, count: int, name: str = "") -> list[Worker]:
        """So many workers; ``name`` is the setting FRONTIER_WORKER of all if it is not to be ``index/count``."""
        return [self.worker(name or f"{index}/{count}") for index in range(count)]

    def worker(self, name: str = "0/1", *, start_items: int = 0, in_shared: bool = False) -> Worker:
        """One worker, by the setting FRONTIER_WORKER; ``start_items`` is how many its ``start`` yields. It is alone in
        the frontier of its job, unless others work beside it, or ``in_shared``."""
        self._is_shared |= in_shared or name != "0/1"
        shared = ("-s", f"FRONTIER_NAME={self._shared}") if self._is_shared else ()
        named = ("-s", f"FRONTIER_WORKER={name}", *shared)
        worker = Worker(self, *self.maze.arguments, *named, "-a", f"start_items={start_items}")
        self._workers.append(worker)
        return worker

    def group(self, count: int, *, start_items: int = 0) -> list[Worker]:
        """So many workers of one job, which is running and has no worker yet."""

        async def push(client: PlatformClient) -> str:
            return (await client.jobq.push(1, "maze", state="running", spider_type="manual")).key

        given = ("-s", f"PLATFORM_JOB={self.ask(push)}", "-s", f"CRAWL_GROUP={count}")
        arguments = (*self.maze.arguments, *given, "-a", f"start_items={start_items}")
        workers = [Worker(self, *arguments) for _ in range(count)]
        self._workers += workers
        return workers

    def proxy(self, latency: float, kill_at: KillPoint | None) -> FaultProxy:
        return self._open.enter_context(FaultProxy(self._platform.url, latency=latency, kill_at=kill_at))

    def start(self, proxy: FaultProxy, *arguments: str, proxied: bool) -> Life:
        url = proxy.url if proxied else self._platform.url
        return Life(self._project.start("maze", *arguments, "-s", f"PLATFORM_URL={url}"), proxy)

    # ── what is on the platform ──

    def ask(self, ask: Callable[[PlatformClient], object]) -> object:
        return ask_server(self._platform.url, self._platform.key, ask)

    @property
    def frontier(self) -> str:
        """The name of the frontier."""
        return self._shared if self._is_shared else "job-" + "-".join(self.jobs[0].split("/")[1:])

    @property
    def jobs(self) -> list[str]:
        return [*dict.fromkeys(worker.job for worker in self._workers if worker.job is not None)]

    def stored(self) -> Counter[str]:
        """The items of all jobs together."""

        async def read(client: PlatformClient) -> Counter[str]:
            items = [item for job in self.jobs for item in await collect(client.items.iter(key(job)))]
            assert all(len(item["pad"]) == int(found[1]) for item in items if (found := _LENGTH.search(item["text"])))
            return Counter(item["text"] for item in items)

        return self.ask(read)

    def state_of(self, job: str) -> tuple[str, str | None]:
        """State and close reason of a job."""

        async def read(client: PlatformClient) -> tuple[str, str | None]:
            metadata = await client.jobs.metadata(key(job))
            return metadata["state"], metadata.get("close_reason")

        return self.ask(read)

    def left(self) -> dict[str, list[str]]:
        """Paths of the requests that are in the frontier's slots, by slot; journals are left out."""

        async def read(client: PlatformClient) -> dict[str, list[str]]:
            left = {}
            for slot in await client.frontier.slots(1, self.frontier):
                if slot.isdigit() or slot == "dead-letters":
                    batches = await client.frontier.read(1, self.frontier, slot, 1000)
                    left[slot] = [_address(qdata) for batch in batches for _, qdata in batch.requests]
            return left

        return self.ask(read)

    # ── what is promised ──

    def expected(self, start_items: int = 0) -> Outcome:
        return outcome(self.maze.pages, start_items)

    def check(self, start_items: int = 0) -> None:
        """Every item is stored once, every job is finished, nothing is left but the dead letters, once."""
        expected = self.expected(start_items)
        same(self.stored(), expected.items, "items")
        unfinished = [worker.job for worker in self._workers if not (worker.is_given_up or worker.is_done)]
        assert not unfinished, f"not finished: {[(job, job and self.state_of(job)) for job in unfinished]}"
        left = self.left()
        same(Counter(left.pop("dead-letters", [])), expected.dead_letters, "dead letters")
        assert not any(left.values()), f"left in the frontier: {left}"

    def check_hits(self) -> None:
        """Nothing was fetched twice, but for what a request that cannot be stored holds back, and for pages whose
        callback always fails: each process begins to count their attempts anew."""
        outcome = self.expected()
        hits, expected = self.maze.hits, outcome.hits
        failing = {"/" + address.partition("/")[2] for address in outcome.dead_letters}
        settled = [path for path in hits | expected if not is_held_back(path) and path not in failing]
        same(*(Counter({path: counter[path] for path in settled}) for counter in (hits, expected)), "hits of the site")


_LENGTH = re.compile(r"\+(\d+)$")


def _address(qdata: dict) -> str:
    """Host and path of a stored request, wherever in its record the URL is."""
    found = re.search(r"http://([\d.]+):\d+(/[\w/]+)", str(qdata))
    assert found, qdata
    return found[1] + found[2]


def same(found: Counter[str], expected: Counter[str], what: str) -> None:
    """Both are the same; says what is missing and what is too many."""
    missing, too_many = expected - found, found - expected
    assert found == expected, f"{what}: missing {_shown(missing)}; too many {_shown(too_many)}"


def _shown(counter: Counter[str]) -> str:
    listed = [f"{count} x {name}" if count > 1 else name for name, count in sorted(counter.items())]
    return f"{counter.total()} [{', '.join(listed[:20])}{', ...' if len(listed) > 20 else ''}]"

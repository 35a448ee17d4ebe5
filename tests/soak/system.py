"""The system under test, and the sites.

It is two servers and three workers on PostgreSQL with a standby, or one server with a file of SQLite.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess.proc import Process, table
from tests.soak.clocks import Clock, library
from tests.soak.database import AWAY, Database
from tests.soak.links import Links
from tests.soak.nodes import Node, new_keys
from tests.soak.postgresql import Replicated
from tests.soak.project import write_project
from tests.soak.sites import Pace, Trees
from tests.soak.sqlite import Sqlite
from tests.support.http import Answer, Http

ENGINES = ("postgresql", "sqlite")
#: Servers and workers of an engine.
_NODES = {"postgresql": (2, 3), "sqlite": (1, 0)}
#: For calls whose body is a form in bytes.
AS_FORM = {"Content_Type": "application/x-www-form-urlencoded"}
#: Seconds until everything works again after a harm, at most.
RECOVERY_SECONDS = 180.0
_PAUSE = 0.3


class System:
    """Made with everything started; :meth:`close` ends all of it."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.folder = folder
        self.engine = engine
        self.pulses = folder / "pulses"
        self.pulses.mkdir()
        self.project = write_project(folder / "project")
        self.pace = Pace()
        #: Faults, one sentence each, with the second of the run.
        self.faults: list[str] = []
        #: Jobs of which a process of their own was killed.
        self.killed_jobs: set[str] = set()
        #: When the clock of a node and its jobs went forward, by the steady clock that pulses have too.
        self.clock_jumps: list[float] = []
        #: True once the sites were slow or mute.
        self.site_was_harmed = False
        self.began = time.monotonic()
        #: Processes that were seen below the nodes, by PID and start.
        self.seen: set[tuple[int, int]] = set()
        self.keys = new_keys()
        self._open = contextlib.ExitStack()
        try:
            self.trees = Trees(self.pace)
            self._open.callback(self.trees.close)
            self.links = Links()
            self._open.callback(self.links.close)
            #: PostgreSQL; None with SQLite.
            self.replicated = Replicated() if engine == "postgresql" else None
            if self.replicated is not None:
                self._open.callback(self.replicated.remove)
            self.nodes = self._make_nodes()
            self.database: Database = self.replicated or Sqlite(folder / self.nodes[0].name, lambda: self.nodes[0].pid)
            self._open.callback(self._kill_nodes)
            with ThreadPoolExecutor() as pool:
                list(pool.map(Node.start, self.nodes))
        except BaseException:
            self._open.close()
            raise

    def _make_nodes(self) -> list[Node]:
        built = library(self.folder)
        self.has_clocks = built is not None
        servers, workers = _NODES[self.engine]
        names = [f"server-{number}" for number in range(1, servers + 1)]
        names += [f"worker-{number}" for number in range(1, workers + 1)]
        options = ["--local-project", str(self.project), "--allow-host", self.trees.host]
        made = []
        for name in names:
            folder = self.folder / name
            folder.mkdir()
            clock = Clock(built, folder / "clock") if built is not None else None
            made.append(Node(name, folder, self.replicated, self.links, self.keys, options, clock))
        return made

    @property
    def servers(self) -> list[Node]:
        return [node for node in self.nodes if node.is_server]

    def now(self) -> float:
        """Seconds of the run."""
        return time.monotonic() - self.began

    def fault(self, what: str) -> None:
        """Note that something is wrong."""
        self.faults.append(f"[{self.now():.0f} s] {what}")

    def watch_processes(self) -> dict[int, Process]:
        """Note the processes below all nodes, which must be gone at the end; returns all of the machine."""
        processes = table()
        for node in self.nodes:
            self.seen.update((each.pid, each.started) for each in node.tree(processes))
        return processes

    def left_over(self) -> list[int]:
        """Processes that were seen below nodes and are there."""
        now = table()
        return [pid for pid, started in self.seen if pid in now and now[pid].started == started]

    # ── calls ──

    def clients(self) -> list[Http]:
        """HTTP clients of all servers, by the links of clients."""
        found = []
        for node in self.servers:
            assert node.to_clients is not None
            found.append(Http(f"http://127.0.0.1:{node.to_clients.port}", self.keys.platform))
        return found

    # ── well again ──

    def mend(self) -> None:
        """End whatever was done to connections, clocks and sites."""
        for node in self.nodes:
            for link in (node.to_database, node.to_clients):
                if link is not None:
                    link.mend()
            if node.clock is not None:
                node.clock.step(0)
            if node.is_stopped:
                node.send(signal.SIGCONT)
        self.pace.mend()

    async def revive(self) -> None:
        """Start what is not running; a node that has ended without being killed is a fault."""
        await asyncio.to_thread(self.database.start_again)
        for node in self.nodes:
            if node.pid is None and node.process is not None and node.process.process.returncode != -signal.SIGKILL:
                log = await asyncio.to_thread(node.take_leave)
                self.fault(f"{node.name} ended by itself: {log[-400:]}")
        ended = [node for node in self.nodes if node.pid is None]
        await asyncio.gather(*(asyncio.to_thread(node.start) for node in ended))

    async def well(self) -> float | None:
        """Wait until everything works again; returns the seconds, None when it does not."""
        began = time.monotonic()
        while time.monotonic() < began + RECOVERY_SECONDS:
            with contextlib.suppress(*AWAY):
                if await self._is_well():
                    return time.monotonic() - began
            await asyncio.sleep(_PAUSE)
        return None

    async def _is_well(self) -> bool:
        if any(node.pid is None for node in self.nodes):
            return False
        if not await asyncio.to_thread(lambda: self.database.is_covered):
            return False
        if await self.database.count("nodes") != len(self.nodes):
            return False
        if await self.database.query("SELECT 1 FROM attempts WHERE node NOT IN (SELECT node FROM nodes)"):
            return False
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            for node in self.servers:
                async with session.get(f"{node.url}/readyz") as answer:
                    if answer.status != 200:
                        return False
        return True

    # ── the end ──

    def stop_nodes(self) -> None:
        """End all nodes in order; what does not end well is a fault."""
        with ThreadPoolExecutor() as pool:
            codes = list(pool.map(Node.stop, [node for node in self.nodes if node.pid is not None]))
        if any(codes):
            self.fault(f"nodes that were asked to end did so with {codes}")

    def _kill_nodes(self) -> None:
        for node in self.nodes:
            if node.pid is not None:
                node.send(signal.SIGCONT)
                with contextlib.suppress(Exception):  # the others are to be ended all the same
                    node.kill()

    def close(self) -> None:
        """End everything, whatever state it is in."""
        with contextlib.suppress(Exception):
            self.mend()
        self._open.close()
        for pid in self.left_over():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def ask(
    clients: list[Http], method: str, path: str, body: Any = None, *, first: int = 0, **headers: str
) -> Answer:
    """The answer (200 to 499, but for 429) of any server, however often it takes; ``first``: of which one at first."""
    deadline = time.monotonic() + 2 * RECOVERY_SECONDS
    number = first
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError, *TIMEOUT_ERRORS):
            answer = await clients[number % len(clients)].call(method, path, body, **headers)
            if answer.status < 500 and answer.status != 429:
                return answer
        number += 1
        assert time.monotonic() < deadline, "no server answers"
        await asyncio.sleep(_PAUSE)


def pulses_of(file: Path) -> dict[int, tuple[float, float]]:
    """Of each process of a job, its first and its last sign of work."""
    found: dict[int, tuple[float, float]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        pid, _, at = line.partition(" ")
        first, _ = found.get(int(pid), (float(at), 0.0))
        found[int(pid)] = (first, float(at))
    return found

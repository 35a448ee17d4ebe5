"""Samples of what must not grow: memory, descriptors, threads, sizes, rows."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from scrapy_ext.jobprocess.proc import Process, below
from tests.soak.database import AWAY
from tests.soak.flatness import Rule, Sample, Slope, slope_of
from tests.soak.nodes import Node, command_of
from tests.soak.system import System

EVERY = 5.0
_MIB = 2**20
#: Records from which on the size of an empty database does not matter.
_MANY = 20_000
#: Without last_commits, which has a row for every connection of the last seven days, and each outage makes new ones.
#: Tables with a row for what is under way, or for what somebody waits for; those that are there.
_TABLES = (
    "attempts",
    "nodes",
    "webhook_deliveries",
    "frontier_batches",
    "removals",
)
#: Part of the run in which what is kept fills up.
_FILLS_UP = -0.4
RULES: Mapping[str, Rule] = {
    "memory of a server, MiB": Rule(0.1, 48, 90),
    "memory of a worker, MiB": Rule(0.1, 48, 90),
    "memory of a server with its extractors, MiB": Rule(0.1, 96, 90),
    "descriptors of a server": Rule(0.1, 24, 90),
    "descriptors of a worker": Rule(0.1, 24, 90),
    # The pool of threads of a process fills up in one step of up to six, when it is first needed.
    "threads of a server": Rule(0.1, 16, 90),
    "threads of a worker": Rule(0.1, 16, 90),
    # What is stored stays. So the size counts for each record, and what grows beside shows.
    "size of the database for 1,000 acknowledged records, KiB": Rule(0.25, 8, _FILLS_UP),
    "size of the log of the database beyond its limit, MiB": Rule(0.25, 48, _FILLS_UP),
    "size of the folders of project and nodes, MiB": Rule(0.25, 16, _FILLS_UP),
    **{f"rows of {table}": Rule(0.25, 300, _FILLS_UP) for table in _TABLES},
}


class Sampler:
    """Takes samples until it is cancelled."""

    def __init__(self, system: System, records: Callable[[], int]) -> None:
        self._system = system
        self._records = records
        self._tables: list[str] | None = None
        self.samples: dict[str, list[Sample]] = {name: [] for name in RULES}

    async def run(self) -> None:
        while True:
            processes = await asyncio.to_thread(self._system.watch_processes)
            for node in self._system.nodes:
                self._of_node(node, processes)
            folders = [self._system.project, *(self._system.folder / node.name for node in self._system.nodes)]
            size = await asyncio.to_thread(_size_of_all, folders)
            self._add("size of the folders of project and nodes, MiB", "folders", size / _MIB)
            with contextlib.suppress(*AWAY):
                await self._of_database()
            await asyncio.sleep(EVERY)

    def _add(self, name: str, life: str, value: float) -> None:
        self.samples[name].append(Sample(round(self._system.now(), 1), life, value))

    def _of_node(self, node: Node, processes: Mapping[int, Process]) -> None:
        pid = node.pid
        if pid is None or pid not in processes or node.is_stopped:
            return
        kind = "server" if node.is_server else "worker"
        self._add(f"memory of a {kind}, MiB", node.life, processes[pid].memory / _MIB)
        with contextlib.suppress(OSError):
            self._add(f"descriptors of a {kind}", node.life, len(os.listdir(f"/proc/{pid}/fd")))
            self._add(f"threads of a {kind}", node.life, len(os.listdir(f"/proc/{pid}/task")))
        if node.is_server:
            own = [processes[pid], *(each for each in below([pid], processes)[pid][1:] if _is_extractor(each))]
            name = "memory of a server with its extractors, MiB"
            self._add(name, node.life, sum(each.memory for each in own) / _MIB)

    async def _of_database(self) -> None:
        database = self._system.database
        if self._tables is None:
            there = await database.tables()
            self._tables = [table for table in _TABLES if table in there]
        sizes = await database.sizes()
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in self._tables)
        (rows,) = await database.query(f"SELECT {counts}")
        if (records := self._records()) > _MANY:
            name = "size of the database for 1,000 acknowledged records, KiB"
            self._add(name, "database", sizes.tables / 1024 / records * 1000)
        self._add("size of the log of the database beyond its limit, MiB", sizes.log_life, sizes.log / _MIB)
        for table, count in zip(self._tables, rows, strict=True):
            self._add(f"rows of {table}", "database", count)

    def slopes(self) -> dict[str, Slope]:
        """Of all that was sampled often enough."""
        found = ((name, slope_of(self.samples[name], rule)) for name, rule in RULES.items())
        return {name: slope for name, slope in found if slope is not None}

    def write(self, file: Path) -> None:
        """Write all samples, a line each."""
        with file.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("seconds", "what", "life", "value"))
            writer.writerows(self._rows())

    def _rows(self) -> Iterator[tuple[float, str, str, float]]:
        for name, samples in self.samples.items():
            yield from ((each.at, name, each.life, round(each.value, 3)) for each in samples)


def _is_extractor(process: Process) -> bool:
    return "extractor_process" in command_of(process.pid)


def _size_of_all(folders: Iterable[Path]) -> int:
    return sum(map(_size, folders))


def _size(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total

"""Processor time and memory of servers and of the PostgreSQL that they use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rig.load import cpu_seconds, memory_now


class Processors:
    """The processes of servers, and the main process of a PostgreSQL; 0: none."""

    def __init__(self, servers: Sequence[int], postgresql: int = 0) -> None:
        self._servers = servers
        self._postgresql = postgresql
        #: Processor seconds of connections when they were last seen: those that have ended still count.
        self._seen: dict[int, float] = {}

    def seconds(self) -> tuple[float, float]:
        """Return the processor seconds so far of the servers and of PostgreSQL."""
        for pid in self._children():
            try:
                self._seen[pid] = cpu_seconds(pid)
            except FileNotFoundError:
                continue
        return sum(map(cpu_seconds, self._servers)), sum(self._seen.values())

    def memory(self) -> tuple[int, int]:
        """Return the resident bytes of the servers and of PostgreSQL, whose shared pages count once."""
        return sum(map(memory_now, self._servers)), sum(map(_proportional, self._children()))

    def _children(self) -> list[int]:
        if not self._postgresql:
            return []
        main = self._postgresql
        return [main, *map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())]


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)

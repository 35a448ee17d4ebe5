"""The processes of one browser: what memory they hold, and how all of them are ended.

A browser is started as the leader of a process group, and what it starts stays in that group, so the group is
the browser, also when its first process is gone and cannot be asked for its children any more.

Memory is what a process holds for itself, ``RssAnon`` and ``RssShmem`` of ``/proc/PID/status``: the pages of the
program's file, which all of its processes share, would be counted once for each of them. These two can be read
for sandboxed processes too, which ``smaps_rollup`` (PSS) cannot. Where there is no ``/proc``, no process is seen,
and no bound of memory holds.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Final, NamedTuple

_PROC: Final = "/proc"
_MEMORY: Final = (b"RssAnon", b"RssShmem")


class BrowserProcess(NamedTuple):
    """One process of a browser; ``memory`` is in bytes. A renderer has pages in it, as a rule one."""

    pid: int
    is_renderer: bool
    memory: int


class ProcessGroup:
    """The processes of one browser, by the identifier of one of them.

    ``leader`` is the first one, which may be gone; 0 where there are no groups. Raises :class:`ProcessLookupError`
    when the named one is gone.
    """

    def __init__(self, pid: int) -> None:
        # On Windows there are no groups, and Playwright ends the browser's processes by their tree.
        self.leader = os.getpgid(pid) if hasattr(os, "getpgid") else 0
        if self.leader and self.leader == os.getpgrp():
            self.leader = 0  # It would be our own end.

    def processes(self) -> list[BrowserProcess]:
        """Those that live. It reads some hundred small files: call it in a thread."""
        return [
            BrowserProcess(pid, b"--type=renderer" in _read(pid, "cmdline"), _memory(_read(pid, "status")))
            for pid in self._members()
        ]

    def is_empty(self) -> bool:
        """Whether no process is left."""
        return next(self._members(), None) is None

    def kill(self) -> None:
        """End all of them at once, also those that hang or are stopped."""
        if self.leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)

    def _members(self) -> Iterator[int]:
        if not self.leader or not os.path.isdir(_PROC):
            return
        for name in os.listdir(_PROC):
            if name.isdigit():
                # After the name, which may have anything in it: state, parent, group.
                fields = _read(int(name), "stat").rpartition(b")")[2].split(None, 3)
                if len(fields) == 4 and int(fields[2]) == self.leader and fields[0] not in (b"Z", b"X"):
                    yield int(name)


def parent_of(pid: int) -> int | None:
    """The process that started one; None when it cannot be told."""
    fields = _read(pid, "stat").rpartition(b")")[2].split(None, 2)
    return int(fields[1]) if len(fields) == 3 else None


def kill(pid: int) -> None:
    """End one process, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _read(pid: int, what: str) -> bytes:
    try:
        with open(f"{_PROC}/{pid}/{what}", "rb") as file:
            return file.read()
    except OSError:
        return b""  # It ended in the meantime.


def _memory(status: bytes) -> int:
    fields = (line.partition(b":") for line in status.splitlines())
    return sum(1024 * int(value.split()[0]) for name, _, value in fields if name in _MEMORY)

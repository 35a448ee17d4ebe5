"""The processes of one browser: their memory, and the end of all of them.

A browser is started as the leader of a process group, and its children stay in that group, so the group is the browser,
also when its first process ended and its children cannot be listed any more.

Memory is the private memory of a process: pages of the program's file, which all of its processes share, would be
counted once for each of them. Without ``/proc`` no process is found, and no memory limit applies.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NamedTuple

from scrapy_ext.jobprocess import proc


class BrowserProcess(NamedTuple):
    """One process of a browser; ``memory`` is in bytes. A renderer has pages in it, usually one."""

    pid: int
    is_renderer: bool
    memory: int


class ProcessGroup:
    """The processes of one browser, by the identifier of one of them.

    ``leader`` is the first one, which may have ended; 0 where there are no groups. Raises :class:`ProcessLookupError`
    when the given process ended.
    """

    def __init__(self, pid: int) -> None:
        # On Windows there are no groups, and Playwright ends the browser's processes by their tree.
        self.leader = os.getpgid(pid) if hasattr(os, "getpgid") else 0
        if self.leader and self.leader == os.getpgrp():
            self.leader = 0  # It would end the server itself.

    def processes(self) -> list[BrowserProcess]:
        """Return the processes that live. This reads some hundred small files: call it in a thread."""
        return [
            BrowserProcess(pid, b"--type=renderer" in proc.command_line(pid), proc.own_memory(pid))
            for pid in self._members()
        ]

    def is_empty(self) -> bool:
        """Return whether no process is left."""
        return not self._members()

    def kill(self) -> None:
        """End all of them at once, also those that hang or are stopped."""
        if self.leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)

    def _members(self) -> list[int]:
        if not self.leader:
            return []
        return [process.pid for process in proc.table().values() if process.group == self.leader]


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None when it is unknown."""
    process = proc.of_pid(pid)
    return None if process is None else process.parent


def kill(pid: int) -> None:
    """End one process, if it still runs."""
    proc.send([pid], getattr(signal, "SIGKILL", signal.SIGTERM))

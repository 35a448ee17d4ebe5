"""The processes of one browser: what memory they hold, and how all of them are ended.

A browser is started as the leader of a process group, and what it starts stays in that group, so the group is
the browser, also when its first process is gone and cannot be asked for its children any more.

Memory is what a process holds for itself: the pages of the program's file, which all of its processes share, would be
counted once for each of them. Where there is no ``/proc``, no process is seen, and no bound of memory holds.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NamedTuple

from scrapy_ext.jobprocess import proc


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
            BrowserProcess(pid, b"--type=renderer" in proc.command_line(pid), proc.own_memory(pid))
            for pid in self._members()
        ]

    def is_empty(self) -> bool:
        """Whether no process is left."""
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
    """The process that started one; None when it cannot be told."""
    process = proc.of_pid(pid)
    return None if process is None else process.parent


def kill(pid: int) -> None:
    """End one process, if it is still there."""
    proc.send([pid], getattr(signal, "SIGKILL", signal.SIGTERM))

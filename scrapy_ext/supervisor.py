"""The first process of a job: it starts the one that does the work, and stays until nothing of the job is left.

Rules that hold here:

- Whatever the job starts is below this process, also what leaves its group or makes a daemon of itself: Linux hands
  orphans to the nearest *subreaper*, which this is.
- When the work has ended, what is left below is killed, and waited for. The same happens at once when the node is gone,
  which shows as the end of standard input.
- What does the work is in a group of its own, with this process's ID and without this process, which so goes on when
  that group is stopped.
- Should this process be killed, the kernel kills the one that does the work.
- It ends as the work has ended: with the same exit status, or by the same signal.

It imports little and has no threads, so that it can fork, and takes little memory of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from typing import Final, NoReturn

from scrapy_ext.processes import below, table

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
#: What comes from outside.
_ASKED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Seconds for killed processes to be gone.
_PATIENCE: Final = 10.0


def split(source: int, work_only: int) -> None:
    """Fork. This returns in the process that does the work; the other one never returns. ``source``: where the end of
    the node shows. ``work_only``: a file descriptor (or -1) that only the work keeps."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)  # one that is stopped must see that the node is gone
    parent, group = os.getpid(), os.getpgrp()
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)  # until somebody listens
    work = os.fork()
    if work:
        if work_only >= 0:
            os.close(work_only)
        os.setpgid(0, group)
        _Supervisor(work, source).run()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
    os.close(source)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class _Supervisor:
    def __init__(self, work: int, source: int) -> None:
        self._work = work
        self._source = source
        self._status: int | None = None

    def run(self) -> NoReturn:
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: self._pass_on(number))
        for number in (signal.SIGINT, signal.SIGHUP):  # of the terminal: they are for the node
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
        while self._status is None:
            ready, _, _ = select.select([self._source, wake], [], [])
            if self._source in ready and not self._hears_of_node():
                break
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
            self._reap()
        self._kill_all()
        self._end()

    def _pass_on(self, number: int) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._work, number)

    def _hears_of_node(self) -> bool:
        try:
            return bool(os.read(self._source, 4096))
        except OSError:
            return False

    def _reap(self) -> bool:
        """Wait for who has ended; returns whether anybody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._work:
                self._status = status

    def _kill_all(self) -> None:
        own, deadline = os.getpid(), time.monotonic() + _PATIENCE
        while self._reap() and time.monotonic() < deadline:
            tree = [process.pid for process in below([own], table())[own][1:]]
            if not tree and self._status is None:  # a system that does not show its processes
                tree = [self._work]
            for pid in tree:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    def _end(self) -> NoReturn:
        status = self._status
        if status is None or os.WIFSIGNALED(status):
            number = signal.SIGKILL if status is None else os.WTERMSIG(status)
            with contextlib.suppress(OSError, ValueError):
                import resource

                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one of the work is enough
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            os._exit(128 + number)
        os._exit(os.WEXITSTATUS(status))

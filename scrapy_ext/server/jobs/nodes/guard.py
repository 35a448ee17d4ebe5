"""A small process beside a node that stops the node's jobs when the node itself cannot.

A node that is stopped (SIGSTOP, a debugger, a container that is frozen) says nothing more, and others go on with its
jobs. Its own threads are stopped as well, and its jobs are not. So this process gets, line by line, until when the
node is known to live (seconds of ``clock``) and the supervisors of its jobs. It stops what these supervise at that
time, lets it go on when it hears of a later one, and sees to it that all end when the node is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from typing import Final

from scrapy_ext.jobprocess.confinement import system
from scrapy_ext.jobprocess.proc import signal_below
from scrapy_ext.server.jobs.clock import elapsing

#: Seconds between two looks at the clock: timers stand still while the machine sleeps, and the clock does not.
_LOOK: Final = 0.5
#: Seconds for supervisors to end all of a job when the node is gone.
_PATIENCE: Final = 12.0


class NodeGuard:
    """The node's side of it. Used by one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._told = b""

    def tell(self, until: float, jobs: Iterable[int]) -> None:
        """Let what these supervise run until then; starts the guard when there is something to guard."""
        line = b" ".join([b"%.3f" % until, *(b"%d" % job for job in sorted(jobs))]) + b"\n"
        if self._process is None or self._process.poll() is not None:
            if b" " not in line:
                return
            self._start()
        elif line == self._told:
            return
        assert self._process is not None and self._process.stdin is not None  # noqa: PT018, S101 - started above
        try:
            os.write(self._process.stdin.fileno(), line)  # a line is short enough to be written as a whole or not
            self._told = line
        except OSError:
            return  # it is told again

    def end(self) -> None:
        """End it, and with it whatever is left of the jobs."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2 * _PATIENCE)

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this module
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        os.set_blocking(self._process.stdin.fileno(), False)


def main() -> None:
    """Guard what standard input names."""
    system.hide_memory()
    until, jobs, stopped, rest = float("inf"), set[int](), set[int](), b""
    while True:
        wait = until - elapsing()
        readable, _, _ = select.select([0], [], [], min(wait, _LOOK) if wait > 0 else _LOOK)
        if readable:
            piece = os.read(0, 65536)
            if not piece:
                _end(jobs)
                return
            *lines, rest = (rest + piece).split(b"\n")
            if lines:
                first, *named = lines[-1].split()
                until, jobs = float(first), set(map(int, named))
        if elapsing() >= until:
            for job in jobs:  # again and again: one that was just starting may have begun meanwhile
                _send(job, signal.SIGSTOP)
            stopped = jobs
        elif stopped:
            for job in stopped & jobs:
                _send(job, signal.SIGCONT)
            stopped = set()


def _send(job: int, number: int) -> None:
    """Send a signal to all that a process supervises."""
    with contextlib.suppress(OSError):
        os.killpg(job, number)
    signal_below(job, number)


def _end(jobs: Collection[int]) -> None:
    """Supervisors end when their node does, unless they are stopped or just begin."""
    left, deadline = set(jobs), time.monotonic() + _PATIENCE
    for job in left:
        _send(job, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(job, signal.SIGCONT)
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = {job for job in left if _is_there(job)}
    for job in left:
        _send(job, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(job, signal.SIGKILL)


def _is_there(job: int) -> bool:
    try:
        os.kill(job, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()

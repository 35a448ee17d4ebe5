"""Process beside a node that stops the node's jobs when the node itself cannot.

A stopped node (SIGSTOP, a debugger, a frozen container) sends no heartbeats, and other nodes continue its jobs. Its
threads are stopped too, but its jobs are not. So the guard receives, line by line, the time until which the node is
alive (seconds of ``clock``), and the supervisors of its jobs. It stops the jobs at that time, continues them when a
later time arrives, and ends all of them when the node has ended.
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

from scrapy_ext.compatibility.python import elapsing
from scrapy_ext.jobprocess.confinement import system
from scrapy_ext.jobprocess.proc import signal_below

#: Seconds between two checks of the clock, which advances while the machine sleeps, unlike timers.
_CHECK: Final = 0.5
#: Seconds for supervisors to end their jobs after the end of the node.
_END_SECONDS: Final = 12.0


class NodeGuard:
    """The guard of a node, used by one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = b""

    def extend(self, until: float, jobs: Iterable[int]) -> None:
        """Allow the jobs of these supervisors to run until a time; start the guard if it does not run."""
        line = b" ".join([b"%.3f" % until, *(b"%d" % job for job in sorted(jobs))]) + b"\n"
        if self._process is None or self._process.poll() is not None:
            if b" " not in line:
                return
            self._start()
        elif line == self._sent:
            return
        assert self._process is not None and self._process.stdin is not None  # noqa: PT018, S101 - started above
        try:
            os.write(self._process.stdin.fileno(), line)  # a short line is written as a whole or not at all
            self._sent = line
        except OSError:
            return  # the next call sends it again

    def end(self) -> None:
        """End the guard and the remaining jobs."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2 * _END_SECONDS)

    def _start(self) -> None:
        from scrapy_ext.compatibility.python import safe_module  # imports asyncio, which the guard does not need

        self._process = subprocess.Popen(  # noqa: S603 - this module
            [sys.executable, *safe_module(__name__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        os.set_blocking(self._process.stdin.fileno(), False)


def main() -> None:
    """Guard the jobs that standard input lists."""
    system.hide_memory()
    until, jobs, stopped, rest = float("inf"), set[int](), set[int](), b""
    while True:
        wait = until - elapsing()
        readable, _, _ = select.select([0], [], [], min(wait, _CHECK) if wait > 0 else _CHECK)
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
            for job in jobs:  # repeatedly, since a job may start meanwhile
                _send(job, signal.SIGSTOP)
            stopped = jobs
        elif stopped:
            for job in stopped & jobs:
                _send(job, signal.SIGCONT)
            stopped = set()


def _send(job: int, number: int) -> None:
    """Send a signal to the processes below a supervisor."""
    with contextlib.suppress(OSError):
        os.killpg(job, number)
    signal_below(job, number)


def _end(jobs: Collection[int]) -> None:
    """End supervisors that did not end with their node, since they were stopped or starting."""
    left, deadline = set(jobs), time.monotonic() + _END_SECONDS
    for job in left:
        _send(job, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(job, signal.SIGCONT)
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = {job for job in left if _exists(job)}
    for job in left:
        _send(job, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(job, signal.SIGKILL)


def _exists(job: int) -> bool:
    try:
        os.kill(job, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()

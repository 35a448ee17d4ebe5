"""A small process beside a node that stops the node's jobs when the node itself cannot.

A node that is stopped (SIGSTOP, a debugger, a container that is frozen) says nothing more, and others go on with its
jobs. Its own threads are stopped as well, and its jobs are not. So this process gets, line by line, until when the
node is known to live (seconds of ``clock``) and the process groups of its jobs. It stops them at that time, lets them
go on when it hears of a later one, and kills them when the node is gone.

It is run as a file, with nothing of this package: ``python -I guard.py``.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

#: Seconds between two looks at the clock: timers stand still while the machine sleeps, and the clock does not.
_LOOK = 0.5


class Guard:
    """The node's side of it. Used by one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._told = b""

    def tell(self, until: float, groups: Iterable[int]) -> None:
        """Let these process groups run until then; starts the guard when there is something to guard."""
        line = b" ".join([b"%.3f" % until, *(b"%d" % group for group in sorted(groups))]) + b"\n"
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
                self._process.wait(timeout=5)

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this file
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={},
        )
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        os.set_blocking(self._process.stdin.fileno(), False)


def main() -> None:
    """Guard what standard input names."""
    until, groups, stopped, rest = float("inf"), set[int](), set[int](), b""
    while True:
        now = _elapsing()
        readable, _, _ = select.select([0], [], [], max(min(until - now, _LOOK), 0) if now < until else _LOOK)
        if readable:
            piece = os.read(0, 65536)
            if not piece:
                _send(groups, signal.SIGKILL)
                return
            *lines, rest = (rest + piece).split(b"\n")
            if lines:
                first, *named = lines[-1].split()
                until, groups = float(first), set(map(int, named))
        if _elapsing() >= until:
            _send(groups - stopped, signal.SIGSTOP)
            stopped |= groups
        elif stopped:
            _send(stopped & groups, signal.SIGCONT)
            stopped = set()


def _send(groups: Iterable[int], number: int) -> None:
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, number)


def _elapsing() -> float:
    """As ``clock.elapsing``, which cannot be imported here."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


if __name__ == "__main__":
    main()

"""Processes that report when they are ready, and that end with the benchmark."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

#: The folder that contains ``rig``.
BENCHMARKS: Final = Path(__file__).parents[1]
_START_SECONDS: Final = 60
_END_SECONDS: Final = 20


class Running:
    """A ready process; ``said`` is its first line of output."""

    def __init__(self, process: subprocess.Popen[str], said: str) -> None:
        self.process = process
        self.said = said

    def ask(self, line: str) -> str:
        """Write a line to its standard input and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return _line(self.process, line)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment without the user's own services, with ``rig`` importable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLATFORM_", "EXTRACT_API_"))}
    path = os.pathsep.join(filter(None, (str(BENCHMARKS), os.environ.get("PYTHONPATH"))))
    return {**kept, "PYTHONPATH": path, **(extra or {})}


@contextlib.contextmanager
def python(*arguments: str, extra: Mapping[str, str] | None = None) -> Generator[Running]:
    """Run ``python arguments``, which prints a line when it is ready and ends with its standard input."""
    with _popen([sys.executable, *arguments], extra) as process:
        yield Running(process, _line(process, " ".join(arguments)))


@contextlib.contextmanager
def program(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program without output until the end of the block."""
    with _popen(command) as process:
        yield process


@contextlib.contextmanager
def _popen(command: Sequence[str], extra: Mapping[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(extra),
        )
        try:
            yield process
        except BaseException:
            errors.seek(0)
            sys.stderr.write(errors.read()[-3000:])
            raise
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str], what: str) -> str:
    """Return the next line of standard output. Only one is outstanding, so none stays in a buffer."""
    assert process.stdout is not None
    deadline = time.monotonic() + _START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(deadline - time.monotonic()):
            raise SystemExit(f"{what}: nothing said within {_START_SECONDS} s")
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{what}: ended instead of being ready")
    return line.strip()


def end_with_signal() -> None:
    """Let SIGTERM unwind this process, so that its children are ended."""

    def stop(*_: object) -> None:
        sys.exit(143)

    signal.signal(signal.SIGTERM, stop)

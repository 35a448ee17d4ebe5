"""The processes of this machine by the program ``ps``, on systems without ``/proc``, such as macOS.

``ps`` starts in some milliseconds, and has the same options on macOS, on the BSDs and on Linux.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

_COLUMNS: Final = ("pid=", "ppid=", "pgid=", "rss=", "stat=", "lstart=")
#: Times and their words are the same in each call.
_ENVIRONMENT: Final = {"LC_ALL": "C", "TZ": "UTC", "COLUMNS": "100000"}
#: Options that list all processes with the variables that they were started with, where this user may see those.
_WITH_VARIABLES: tuple[str, ...] = ("-A", "-E", "-ww")
_FOLDERS: Final = "/bin:/usr/bin"
_SECONDS: Final = 10.0
#: Seconds of all calls, where one does not end in its time, or where a signal ends it, such as those to all processes
#: below its caller: what it has not listed must not be read as ended.
_ALL_SECONDS: Final = 60.0


class Row(NamedTuple):
    """A process: IDs of itself, its parent and its group, resident bytes, and a number for the time of its start."""

    pid: int
    parent: int
    group: int
    memory: int
    started: int


def rows(pid: int | None = None) -> Iterator[Row]:
    """Yield all processes that have not ended, or the one with an ID."""
    which = ["-A"] if pid is None else ["-p", str(pid)]
    own, text = _output([*which, *(word for column in _COLUMNS for word in ("-o", column))])
    for line in text.splitlines():
        fields = line.split(None, len(_COLUMNS) - 1)
        if len(fields) == len(_COLUMNS) and not fields[4].startswith(b"Z"):
            number, parent, group, kilobytes = map(int, fields[:4])
            if number != own:
                yield Row(number, parent, group, kilobytes * 1024, zlib.crc32(fields[5]))


def command_line(pid: int) -> bytes:
    """Return the command of a process, empty when it has ended."""
    return _output(["-p", str(pid), "-o", "command="])[1].strip()


def with_variable(name: str, value: str) -> list[int]:
    """Return the IDs of the processes of this user that were started with a variable of the environment."""
    own, text = _output([*_WITH_VARIABLES, "-o", "pid=", "-o", "command="])
    wanted = f"{name}={value}".encode()
    found = []
    for line in text.splitlines():
        number, _, words = line.strip().partition(b" ")
        if wanted in words.split() and int(number) != own:
            found.append(int(number))
    return found


def _output(arguments: list[str]) -> tuple[int, bytes]:
    """Return the ID of the program that was run, and its output; empty without the program, or where it never ends.

    Needs its exit status: callers do not ignore SIGCHLD."""
    # Imported where they are used: Linux does not need them.
    import shutil
    import subprocess

    program = shutil.which("ps", path=os.pathsep.join([_FOLDERS, os.environ.get("PATH", "")]))
    if program is None:
        return 0, b""
    number = 0
    deadline = time.monotonic() + _ALL_SECONDS
    while time.monotonic() < deadline:
        with subprocess.Popen(  # noqa: S603 - the system's own program
            [program, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_ENVIRONMENT,
        ) as process:  # fmt: skip
            number = process.pid
            try:
                output = process.communicate(timeout=_SECONDS)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                continue
        if process.returncode >= 0:
            return number, output
    return number, b""

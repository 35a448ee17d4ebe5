"""Processes that work for a moment and are not trusted: with a time limit, bounded output, and no secrets.

Each is the leader of a group of its own, and the whole group is killed when it ends, by itself or by force. It also
ends with the process that started it, however that ends. One that runs code of a deployed version is confined, and has
a supervisor, which ends all that it has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from scrapy_ext.jobprocess import supervisor
from scrapy_ext.jobprocess.confinement import Confinement, own_ports
from scrapy_ext.jobprocess.confinement.system import PR_SET_PDEATHSIG

#: Lines of output that are kept, the last ones, and characters of each.
_KEPT_LINES: Final = 100
_LINE: Final = 1000
_PIECE: Final = 64 * 1024
#: Seconds for what a process has said when it has ended, while one that it started keeps its output open.
_LAST_WORDS: Final = 0.5
#: Seconds for a supervisor to end all that it supervises.
_PATIENCE: Final = 12.0

#: What a build may know of the server's environment: how to reach packages, and how text is written.
_PASSED: Final = (
    *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
)
#: Of that, what processes of deployed code get.
_PASSED_TO_JOBS: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SSL_CERT_FILE",
)
#: What no process of a job gets, however it was deployed.
_KEPT_BACK: Final = ("SERVER_", "PG", "ATTRIBUTES_API_KEY")
_PASSED_PREFIXES: Final = ("PIP_", "LC_")


class TimedOutError(Exception):
    """The process did not end in its time and was killed."""


class Ended:
    """How a process ended: its status, and the last lines that it said."""

    def __init__(self, status: int, said: Sequence[str]) -> None:
        self.status = status
        self.said = "\n".join(said)


def bare_environment() -> dict[str, str]:
    """The server's environment without its secrets."""
    return {
        name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    } | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}


def job_environment() -> dict[str, str]:
    """Of the server's environment, what processes of deployed code get."""
    return {name: value for name, value in os.environ.items() if name in _PASSED_TO_JOBS}


def local_environment() -> dict[str, str]:
    """The server's environment for processes of the operator's own project, without the server's secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_KEPT_BACK)}


def die_with_parent() -> None:
    """End this process when the one that started it does; called in the process itself. Where the system cannot do
    that, nothing happens."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before it could be noticed
            os._exit(1)


async def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    given: bytes = b"",
    descriptors: Sequence[int] = (),
    on_line: Callable[[str], None] = lambda _line: None,
    confinement: Confinement | None = None,
) -> Ended:
    """Run a process to its end; raises :class:`TimedOutError`. ``on_line`` is told each line that it says."""
    if confinement is not None:
        fields = confinement._asdict()
        parent, text, own = os.getpid(), given.decode(), own_ports.descriptor()
        task = supervisor.Task(parent, command, str(folder), environment, text, descriptors, fields, own)
        descriptors = supervisor.descriptors(task)
        command, environment, given = supervisor.command(), supervisor.environment(), supervisor.line_of(task)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        pass_fds=descriptors,
    )
    said: deque[str] = deque(maxlen=_KEPT_LINES)
    try:
        async with asyncio.timeout(seconds):
            await _talk(process, given, said, on_line, supervised=confinement is not None)
            return Ended(await process.wait(), said)
    except TimeoutError:
        raise TimedOutError from None
    finally:
        await asyncio.shield(_end(process, supervised=confinement is not None))


async def _end(process: asyncio.subprocess.Process, *, supervised: bool) -> None:
    if supervised and process.stdin is not None:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _talk(
    process: asyncio.subprocess.Process,
    given: bytes,
    said: deque[str],
    on_line: Callable[[str], None],
    *,
    supervised: bool,
) -> None:
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(ConnectionError):
        process.stdin.write(given)
        await process.stdin.drain()
    if not supervised:  # a supervisor takes the end of its input for that of this process
        process.stdin.close()
    rest = b""
    ended = asyncio.ensure_future(process.wait())
    try:
        while True:
            # What a grandchild keeps open does not hold up who waits for the child.
            reading = asyncio.ensure_future(process.stdout.read(_PIECE))
            await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait([reading], timeout=_LAST_WORDS)
            if not reading.done():
                reading.cancel()
                break
            if not (piece := reading.result()):
                break
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[-_PIECE:]
            for line in lines:
                _note(line, said, on_line)
    finally:
        ended.cancel()
    if rest:
        _note(rest, said, on_line)


def _note(line: bytes, said: deque[str], on_line: Callable[[str], None]) -> None:
    text = line.decode(errors="replace").rstrip()[:_LINE]
    said.append(text)
    on_line(text)

"""A child process: started, fed, read, bounded in time and output, killed, and waited for.

A child leads a process group, which is killed as a whole. Processes that it starts can leave that group; so untrusted
code runs under a *supervisor*, which ends all of them, also when the parent of the child has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.jobprocess import supervisor
from scrapy_ext.jobprocess.confinement import Confinement, addresses, system

T = TypeVar("T")

#: Last lines of output that are kept.
_KEPT_LINES: Final = 100
_PIECE: Final = 64 * 1024
#: Seconds to read the last output of an ended child while a process that it started keeps the pipe open.
_LAST_OUTPUT: Final = 0.5
#: Seconds for a supervisor to end its processes, and for a killed process to end.
_SUPERVISOR: Final = 12.0
_KILLED: Final = 5.0


class Supervision(NamedTuple):
    """Conditions of a supervised program. ``confinement`` None: it has the rights of this process. ``own_ports``: the
    descriptor of ports that a confined program cannot connect to; None: those of this process."""

    confinement: Confinement | None
    own_ports: int | None = None


class Ended(NamedTuple):
    """The exit status of a child, negative for a signal, and the last lines of its output."""

    status: int
    output: str


class Child:
    """A child process. Create it with :meth:`start`, and always call :meth:`end`."""

    def __init__(self, process: asyncio.subprocess.Process, *, supervised: bool) -> None:
        self._process = process
        self._supervised = supervised
        self.pid = process.pid

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path | None = None,
        given: bytes | None = None,
        descriptors: Sequence[int] = (),
        errors: int | None = STDOUT,
        supervision: Supervision | None = None,
        session: bool = True,
        dies_with_parent: bool = False,
    ) -> Child:
        """Start a program; raises ``OSError``.

        ``given``: its whole standard input; None: the input stays open, for :meth:`feed`. ``descriptors``: those that
        it inherits. ``errors``: target of standard error, as in :mod:`subprocess`. ``session``: without a terminal.
        """
        if supervision is not None:
            confinement, ports = supervision
            program = supervisor.SupervisedProgram(
                parent=os.getpid(),
                command=command,
                folder=str(folder or Path.cwd()),
                environment=environment,
                input=(given or b"").decode(),
                keep=descriptors,
                confinement=None if confinement is None else confinement._asdict(),
                own_ports=addresses.closed_ports() if ports is None else ports,
            )
            command, environment, given = supervisor.command(), supervisor.environment(), supervisor.line_of(program)
            descriptors, folder = supervisor.descriptors(program), None  # the supervisor enters the folder
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=dict(environment),
            stdin=DEVNULL if given == b"" else PIPE,
            stdout=PIPE,
            stderr=errors,
            start_new_session=session,
            pass_fds=descriptors,
            preexec_fn=die_with_parent if dies_with_parent else None,
        )
        child = cls(process, supervised=supervision is not None)
        if given:
            child._write(given)
            if supervision is None:  # for a supervisor, the end of its input means the end of this process
                child.close_input()
        return child

    @property
    def output(self) -> asyncio.StreamReader:
        return _pipe(self._process.stdout)

    @property
    def errors(self) -> asyncio.StreamReader:
        """The standard error of a child that was started with a pipe for it."""
        return _pipe(self._process.stderr)

    async def feed(self, data: bytes) -> None:
        """Write to the standard input; raises ``ConnectionError`` when the child has closed it."""
        await self._write(data).drain()

    def _write(self, data: bytes) -> asyncio.StreamWriter:
        into = _pipe(self._process.stdin)
        into.write(data)
        return into

    def close_input(self) -> None:
        """Close the standard input once all of it is written. A supervisor then ends its program."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def terminate(self) -> None:
        """Send SIGTERM. A supervisor passes it on to the program alone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    async def wait(self) -> int:
        """Wait for the end; returns the exit status, negative for a signal."""
        return await self._process.wait()

    async def end(self) -> None:
        """Kill it and its group, or its supervised processes, and wait for their end."""
        if self._supervised:
            self.close_input()
            with contextlib.suppress(*TIMEOUT_ERRORS):
                await asyncio.wait_for(self.wait(), _SUPERVISOR)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self.kill_group()
        with contextlib.suppress(*TIMEOUT_ERRORS):
            await asyncio.wait_for(self.wait(), _KILLED)

    def kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def read_lines(self, on_line: Callable[[str], None], longest: int) -> None:
        """Read the output until it or the child ends: a process that the child started may keep the pipe open."""
        rest = b""
        ended = asyncio.ensure_future(self.wait())
        try:
            while True:
                reading = asyncio.ensure_future(self.output.read(_PIECE))
                await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    await asyncio.wait([reading], timeout=_LAST_OUTPUT)
                if not reading.done():
                    reading.cancel()
                    break
                if not (piece := reading.result()):
                    break
                *lines, rest = (rest + piece).split(b"\n")
                rest = rest[-_PIECE:]
                for line in lines:
                    on_line(_text(line, longest))
        finally:
            ended.cancel()
        if rest:
            on_line(_text(rest, longest))


async def run(
    starting: Awaitable[Child],
    *,
    seconds: float | None = None,
    on_line: Callable[[str], None] = lambda _line: None,
    longest: int = 1000,
) -> Ended:
    """Read a child to its end, and end its remaining processes; raises ``TimeoutError`` after ``seconds``.

    ``on_line`` is called with the first ``longest`` characters of each line of its output.
    """
    kept: deque[str] = deque(maxlen=_KEPT_LINES)

    def take(line: str) -> None:
        kept.append(line)
        on_line(line)

    child = await starting
    try:
        async with timeout_after(seconds):
            await child.read_lines(take, longest)
            return Ended(await child.wait(), "\n".join(kept))
    finally:
        await asyncio.shield(child.end())


def die_with_parent() -> None:
    """End this process when its parent ends, on Linux; called in the process itself."""
    if system.IS_LINUX:
        parent = os.getppid()
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before this was set
            os._exit(1)


def _pipe(end: T | None) -> T:
    """Return an end of a pipe that the child was started with; raise ``ValueError`` without one."""
    if end is None:
        raise ValueError("the child was started without this pipe")
    return end


def _text(line: bytes, longest: int) -> str:
    return line.decode(errors="replace").rstrip()[:longest]

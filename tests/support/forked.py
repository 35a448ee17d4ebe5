"""Processes of Python that begin as a fork of one which has imported Scrapy and this package.

These imports are most of the processor time of a short crawl. The forked process is one of its own: PID, working
directory, environment, descriptors, session, signals and exit status are as :class:`subprocess.Popen` makes them. Four
things differ: its parent, its command line in ``/proc``, memory that it shares, and the seed of hashes, which all have
in common. Tests of these, of starts and of imports start a real one, as the crash tests do.

Run as a module, this is the fork server. Each process that needs one starts it, with its address as the argument. It
ends with its standard input.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import runpy
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple, TextIO
from unittest.mock import patch

from scrapy.cmdline import _get_commands_dict
from scrapy.settings import BaseSettings, Settings

from scrapy_ext.compatibility.python import Self

#: Modules that may be started; of each, a fork has imported most of what it needs.
MODULES = ("scrapy", "scrapy_ext.server", "scrapy_ext.server.launch", "tests.acceptance.parity.run")
#: What a crawl and a server import, beside the components that Scrapy enables.
_IMPORTED = (
    *("scrapy.cmdline", "scrapy.crawler", "scrapy.spiderloader", "scrapy.squeues", "aiohttp", "uvloop"),
    *("scrapy_ext.addon", "scrapy_ext.downloadermiddlewares", "scrapy_ext.spidermiddlewares", "scrapy_ext.pipelines"),
    *("scrapy_ext.scheduler", "scrapy_ext.pqueues", "scrapy_ext.dupefilters", "scrapy_ext.extensions"),
    *("scrapy_ext.crawl.extraction", "scrapy_ext.crawl.session.embedded", "scrapy_ext.poet.middleware"),
    *("scrapy_ext.server.__main__", "scrapy_ext.server.serve", "scrapy_ext.server.extraction.service"),
    *("scrapy_ext.server.extraction.routes", "scrapy_ext.server.scrapyd.jobs", "uvicorn.lifespan.on"),
)
_MESSAGE, _DESCRIPTORS = 1 << 17, 16
#: Descriptors of a request are moved above this one, so that they are not in the way of their places.
_ABOVE = 200

#: Variables that an interpreter reads when it starts, or a package when it is imported.
_READ_EARLY = ("PYTHON", "OTEL_", "LC_", "LANG")


class _ForkServer(NamedTuple):
    """A fork server: the path of its socket, and what its interpreter and packages have read of the environment."""

    address: str
    read: Mapping[str, str]


#: The one that this process itself comes from.
_own: _ForkServer | None = None


# ── in a process that starts others ──


class ForkedProcess:
    """A process of the fork server, with the methods of :class:`subprocess.Popen` that tests use."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        pass_fds: Sequence[int] = (),
        start_new_session: bool = False,
    ) -> None:
        self.args = list(command)
        self.returncode: int | None = None
        self._status: int | None = None
        request = {
            "command": self.args,
            "folder": str(Path(cwd or "").absolute()),
            "environment": dict(os.environ if env is None else env),
            "places": [0, 1, 2, *pass_fds],
            "has_session": start_new_session,
        }
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.connect(_fork_server().address)
        with contextlib.ExitStack() as given:
            pipes = [_Stream(stream, place, given) for place, stream in enumerate((stdin, stdout, stderr))]
            descriptors = [*(pipe.theirs for pipe in pipes), *pass_fds]
            socket.send_fds(self._connection, [json.dumps(request).encode()], descriptors)
            self.pid = int(self._connection.recv(_MESSAGE))
        self.stdin, self.stdout, self.stderr = (pipe.ours for pipe in pipes)
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        try:
            with self._connection as connection:
                self._status = int(connection.recv(_MESSAGE))
                # Nobody here uses its number any more.
                connection.send(b"known")
                connection.recv(_MESSAGE)
        finally:
            self._ended.set()

    def poll(self) -> int | None:
        """Return its exit status if it has ended."""
        if self._ended.is_set():
            self.returncode = self._status
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; returns its exit status."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.returncode = self._status
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self._status is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdout, self.stderr, self.stdin):
            if pipe is not None:
                pipe.close()
        self.wait()


class _Stream:
    """A standard stream of a process: its descriptor for the process, and for a pipe its other end."""

    def __init__(self, wanted: Any, place: int, given: contextlib.ExitStack) -> None:
        self.ours: IO[bytes] | None = None
        if wanted is None:
            self.theirs = place
        elif wanted == subprocess.PIPE:
            reading, writing = os.pipe()
            self.theirs, kept, mode = (writing, reading, "rb") if place else (reading, writing, "wb")
            self.ours = os.fdopen(kept, mode)
            given.callback(os.close, self.theirs)
        elif wanted == subprocess.DEVNULL:
            self.theirs = os.open(os.devnull, os.O_RDWR)
            given.callback(os.close, self.theirs)
        else:
            self.theirs = wanted if isinstance(wanted, int) else wanted.fileno()


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | ForkedProcess:
    """Start ``python -m`` of one of :data:`MODULES`, forked where that makes no difference; options as ``Popen``."""
    return ForkedProcess(command, **options) if _is_forked(command, options.get("env")) else _POPEN(command, **options)


def run(
    command: Sequence[str], *, input: str = "", timeout: float = 300, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Start a command as :func:`start` does, and wait until it has ended; returns its output."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        with start(command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, **options) as process:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(input.encode())
            try:
                status = process.wait(timeout)
            except BaseException:
                process.kill()
                raise
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(command, status, stdout.read().decode(), stderr.read().decode())


@contextlib.contextmanager
def embedded_servers() -> Iterator[None]:
    """Let the servers that this process embeds be forks meanwhile."""
    from scrapy_ext.crawl.session import embedded

    with patch.dict(vars(embedded), subprocess=_FORKING):
        yield


#: The real one also where a module has another.
_POPEN = subprocess.Popen
#: Of :mod:`subprocess`, as much as the start of an embedded server uses.
_FORKING = SimpleNamespace(Popen=start, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


def _is_forked(command: Sequence[str], env: Mapping[str, str] | None) -> bool:
    """Return True if a fork of this interpreter does what the command does with these variables."""
    return (
        sys.platform == "linux"
        and list(command[:2]) == [sys.executable, "-m"]
        and command[2] in MODULES
        and _read_early(os.environ if env is None else env) == _fork_server().read
    )


def _read_early(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_EARLY)}


@functools.cache
def _fork_server() -> _ForkServer:
    """Return the fork server of this process, which is ready."""
    if _own is not None:
        return _own
    address = str(Path(tempfile.mkdtemp(prefix="scrapy-ext-forks-")) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, address],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(process.__exit__, None, None, None)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return _ForkServer(address, _read_early(os.environ))


# ── the fork server ──


def main(address: str) -> None:
    """Fork for each connection; returns in a forked process, which runs its module."""
    gc.disable()
    for name in _IMPORTED:
        importlib.import_module(name)
    _import_scrapy()
    assert "twisted.internet.reactor" not in sys.modules
    gc.freeze()
    # It is the forked that end by a Ctrl-C; those who wait for them are not waited for.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    connection = _accepted(address)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request = _started(connection)
    _become(request)
    run_module(*request["command"][2:])


def _import_scrapy() -> None:
    """Import the commands and the components that Scrapy enables."""
    settings = Settings()
    _get_commands_dict(settings, inproject=False)
    for value in (attribute.value for attribute in settings.attributes.values()):
        for path in (*value, *value.values()) if isinstance(value, BaseSettings) else (value,):
            if isinstance(path, str) and path.startswith("scrapy."):
                with contextlib.suppress(ImportError):
                    importlib.import_module(path.rpartition(".")[0])


def _accepted(address: str) -> socket.socket:
    """Return a connection, in a process of its own."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        os.write(1, b"ready\n")
        while True:
            if sys.stdin.fileno() in select.select([0, listener], [], [])[0]:
                Path(address).unlink()
                Path(address).parent.rmdir()
                os._exit(0)
            connection, _ = listener.accept()
            if os.fork() == 0:
                return connection
            connection.close()


def _started(connection: socket.socket) -> dict[str, Any]:
    """Return the request of a connection in the process that is to do it; its parent reports how that ends."""
    message, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE, _DESCRIPTORS)
    request: dict[str, Any] = json.loads(message)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _place(descriptors, request["places"])
        return request
    for descriptor in (0, 1, *descriptors):
        os.close(descriptor)
    with contextlib.suppress(ConnectionError):
        connection.send(str(pid).encode())
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        connection.send(str(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status).encode())
        # Until then its number is of no other process.
        connection.recv(_MESSAGE)
    os.waitpid(pid, 0)
    os._exit(0)


def _place(descriptors: Sequence[int], places: Sequence[int]) -> None:
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, place in zip(moved, places, strict=True):
        os.dup2(descriptor, place)
        os.close(descriptor)


# ── in the forked process ──


def _become(request: Mapping[str, Any]) -> None:
    """Become what :class:`subprocess.Popen` would have made of a request."""
    global _own  # noqa: PLW0603 - of the process
    _own = _ForkServer(sys.argv[1], _read_early(os.environ))
    if request["has_session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[0] = request["folder"]
    sys.orig_argv[:] = sys.argv[:] = request["command"]
    sys.stdin = sys.__stdin__ = _opened(0, "r")
    sys.stdout = sys.__stdout__ = _opened(1, "w")
    tempfile.tempdir = None
    gc.enable()


def _opened(descriptor: int, mode: str) -> TextIO:
    """Return a standard stream as an interpreter with the locale of this one opens it."""
    own = (sys.stdin, sys.stdout)[descriptor]
    buffering = 1 if os.isatty(descriptor) else -1
    return open(descriptor, mode, buffering, encoding=own.encoding, errors=own.errors, closefd=False)


def run_module(name: str, *arguments: str) -> None:
    """Run a module as ``python -m``, with what it makes once in each process made anew."""
    from scrapy_ext.crawl.session import embedded
    from scrapy_ext.server import launch
    from scrapy_ext.server.config.command_line import SECRETS
    from scrapy_ext.server.http import health, request_context

    vars(health)["_STARTED"] = time.time()
    vars(request_context)["_process"] = secrets.token_hex(4)
    # The server of a crawl is forked too.
    vars(embedded)["subprocess"] = _FORKING

    def forget_secrets(*_: object) -> None:
        for secret in SECRETS:
            os.environ.pop(secret, None)

    # Not executed anew: the imports would begin again.
    vars(launch)["_execute_anew"] = forget_secrets
    if name == launch.MODULE:
        del sys.modules[name]  # as of now it is the main module
    sys.argv = ["-m", *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1])

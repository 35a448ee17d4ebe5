"""The real server as a process of its own, for tests that need one."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support import forked
from tests.support.eventually import TIMEOUT


class RunningServer:
    """A server on a free port, ready when the constructor returns; it ends with the test process in any case.

    ``database`` is the address of a PostgreSQL database that is used instead of ``data``. ``file_limit`` bounds
    how long (bytes) a file of the server may grow, as a full disk would. With ``worker`` it is a worker, and ``url``
    its name. ``before`` runs in its process before its program. ``environment`` is added to that of this process. With
    ``apart``, a Ctrl-C in the terminal does not reach it. ``program``: a module that runs the server.
    """

    def __init__(
        self,
        data: Path,
        *,
        allow_hosts: Sequence[str] = (),
        options: Sequence[str] = (),
        keys: bool = True,
        database: str | None = None,
        file_limit: int | None = None,
        worker: bool = False,
        before: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
        apart: bool = False,
        program: str = "scrapy_ext.server",
    ) -> None:
        self.data = data
        self.database = database
        self.extract_key = secrets.token_hex(16)
        self.platform_key = secrets.token_hex(16)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server has ended
        self._said = ""
        hosts = [option for host in allow_hosts for option in ("--allow-host", host)]
        given = {"EXTRACT_API_KEY": self.extract_key, "PLATFORM_API_KEY": self.platform_key} if keys else {}
        if database is not None:
            given["SERVER_DATABASE"] = database
        store = ["--data", str(data)] if database is None else []
        first = ["worker"] if worker else ["--port", "0", *store]
        if file_limit is not None:
            before = partial(limit_files, file_limit)
        self.process = self._started(
            [*command(*first, "--exit-with-stdin", program=program), *hosts, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**without_keys(), **(environment or {}), **given},
            start_new_session=apart,
            **({} if before is None else {"preexec_fn": before}),
        )
        try:
            self.url = self._ready()
        except BaseException:
            self.kill()
            raise

    def _started(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | forked.ForkedProcess:
        return subprocess.Popen(command, **options)

    def _ready(self) -> str:
        """The address of the ``ready`` line."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + TIMEOUT
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise AssertionError(f"no ready line within {TIMEOUT:g} s\n{self.log()}")
                piece = os.read(self.process.stdout.fileno(), 4096)
                if not piece:
                    raise AssertionError(f"the server ended instead of being ready\n{self.log()}")
                line += piece
        word, _, url = line.decode().strip().partition(" ")
        assert word == "ready", line
        return url

    @property
    def where(self) -> Path | DatabaseUrl:
        """Its database, for what opens that beside it."""
        return self.data if self.database is None else DatabaseUrl(self.database)

    def log(self) -> str:
        """Standard error of the server."""
        if not self._log.closed:
            self._log.seek(0)
            self._said = self._log.read().decode(errors="replace")
        return self._said

    def stop(self) -> int:
        """End it as its starter does, by closing its standard input; returns its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def terminate(self) -> int:
        """End it as a user does; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait until it has ended by itself; returns its exit code."""
        try:
            return self.process.wait(timeout=TIMEOUT)
        finally:
            self.log()
            self._log.close()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.stop()


class ForkedServer(RunningServer):
    """A server that costs less processor time than its imports would, for tests of what it answers."""

    def _started(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | forked.ForkedProcess:
        return forked.start(command, **options)


def command(*options: str, program: str = "scrapy_ext.server") -> list[str]:
    """The server's command line."""
    return [sys.executable, "-m", program, *options]


def without_keys() -> Mapping[str, str]:
    """The environment without what the user's own services may have in it."""
    own = ("_API_KEY", "SERVER_DATABASE")
    return {name: value for name, value in os.environ.items() if not name.endswith(own)}


def limit_files(size: int) -> None:
    """Let no file of this process grow further, as a full disk would."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

"""``scrapy platform`` as its user runs it, and a platform to run it against."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeVar
from unittest.mock import patch

import msgspec
import pytest
from scrapy.cmdline import execute

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.compatibility.python import Self, chdir
from tests.support import forked
from tests.support.eventually import TIMEOUT, eventually

T = TypeVar("T")


@dataclass
class Done:
    """Result of a run of the command."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """The JSON lines that it has printed."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def scrapy(*arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Done:
    """Run a command of Scrapy in this process, where starting Python would take most of the time.

    ``environment`` replaces that of the tests. In the folder of a project, Scrapy adds the project to the environment
    and to the path of imports: neither stays behind, nor do the project's modules.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, environment or {}, clear=environment is not None))
        stack.enter_context(patch.object(sys, "path", [*sys.path]))
        if folder is not None:
            stack.enter_context(chdir(folder))
            stack.callback(_forget_modules, set(sys.modules), folder)
        stack.enter_context(forked.embedded_servers())
        stack.enter_context(redirect_stdout(streams[0]))
        stack.enter_context(redirect_stderr(streams[1]))
        ended = stack.enter_context(pytest.raises(SystemExit))
        execute(["scrapy", *arguments])
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return Done(int(ended.value.code or 0), *texts)


def _forget_modules(before: set[str], folder: Path) -> None:
    """Forget the modules that were imported from a folder since ``before``."""
    for name in set(sys.modules) - before:
        places = [getattr(sys.modules[name], "__file__", None), *getattr(sys.modules[name], "__path__", ())]
        if any(place and Path(place).is_relative_to(folder) for place in places):
            del sys.modules[name]


class Going:
    """A command that runs, with what it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes] | forked.ForkedProcess, stdout: IO[bytes] | int) -> None:
        self.process = process
        self.stdout = bytearray()
        self.stderr = bytearray()
        assert process.stderr is not None
        self._readers = [
            threading.Thread(target=_collect, args=(source, into), daemon=True)
            for source, into in ((stdout, self.stdout), (process.stderr, self.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines that it has printed."""
        whole = bytes(self.stdout).rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def text(self) -> str:
        """Its standard output without styles."""
        return plain(bytes(self.stdout).decode(errors="replace").replace("\r\n", "\n"))

    def said(self) -> str:
        """Its standard error."""
        return bytes(self.stderr).decode()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; the command must not end before."""

        def read() -> object:
            # What came before its end counts.
            ended = self.process.poll() is not None
            found = condition()
            assert found or not ended, (self.text(), self.said())
            return found

        eventually(read, details=lambda: (self.text(), self.said()))

    def end(self) -> int:
        """Wait until it has ended by itself; its exit code."""
        code = self.process.wait(TIMEOUT)
        for reader in self._readers:
            reader.join(TIMEOUT)
        return code

    def interrupt(self) -> int:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()


@dataclass
class Platform:
    """A platform, one project of it, and how to run the command against it."""

    environment: dict[str, str]
    folder: Path
    project: int

    def with_project(self, project: int) -> Platform:
        """The same platform with another project."""
        return replace(self, project=project, environment={**self.environment, "PLATFORM_PROJECT": str(project)})

    def call(self, work: Callable[[PlatformClient], Awaitable[T]]) -> T:
        """Do something as another client."""

        async def done() -> T:
            urls = PlatformUrls.single(self.environment["PLATFORM_URL"])
            async with PlatformClient(urls, self.environment["PLATFORM_API_KEY"]) as client:
                return await work(client)

        return asyncio.run(done())

    def job(self, spider: str = "books", **metadata: Any) -> JobKey:
        """A job that runs."""
        return JobKey.parse(self.call(lambda client: client.jobq.push(self.project, spider, **metadata)).key)

    def ends(self, key: JobKey, reason: str = "finished") -> None:
        """Metadata that a runner writes when a job has ended."""
        self.call(lambda client: client.jobq.update(self.project, key, state="finished", close_reason=reason))

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run the command in this process."""
        return scrapy("platform", *arguments, folder=self.folder, environment={**self.environment, **environment})

    def lines(self, *arguments: str) -> list[dict[str, Any]]:
        """Output of the command in a pipe."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.records

    def refused(self, *arguments: str) -> str:
        """The one line that a command says which fails."""
        done = self.run(*arguments)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done
        assert done.stderr.startswith(f"scrapy platform {arguments[0]}: ")
        return done.stderr

    def start(self, *arguments: str, terminal: bool = False, columns: int = 120, **environment: str) -> Going:
        """Run the command as a process of its own, in a pipe or in a terminal."""
        master, slave = pty.openpty() if terminal else (0, subprocess.PIPE)
        process = forked.start(
            [sys.executable, "-m", "scrapy", "platform", *arguments],
            cwd=self.folder,
            env={**self.environment, "COLUMNS": str(columns), "TERM": "xterm", **environment},
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=subprocess.PIPE,
        )
        if terminal:
            os.close(slave)
            return Going(process, master)
        assert process.stdout is not None
        return Going(process, process.stdout)

    def terminal(self, *arguments: str, columns: int = 120) -> str:
        """Output of the command in a terminal."""
        with self.start(*arguments, terminal=True, columns=columns) as going:
            assert going.end() == 0, going.said()
        return bytes(going.stdout).decode().replace("\r\n", "\n")


def _collect(source: IO[bytes] | int, into: bytearray) -> None:
    terminal = source if isinstance(source, int) else source.fileno()
    while piece := _read(terminal):
        into += piece
    if isinstance(source, int):
        os.close(source)
    else:
        source.close()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Linux reports a terminal whose other end is closed as an error, others as the end of the file.
        return b""


def plain(text: str) -> str:
    """The text without the styles that tables set."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def lines(records: Sequence[Any]) -> bytes:
    """Records as a client sends them."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)

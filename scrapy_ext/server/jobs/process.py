"""The process of one job: started, watched and ended.

It is the leader of a session of its own, so that what it starts ends with it, and a Ctrl-C in the server's terminal
does not reach it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.launch import Launch

#: Bytes of output that are kept: the end of it, which says why a process has ended.
_KEPT: Final = 256 * 1024
_PIECE: Final = 16 * 1024


class Ended(NamedTuple):
    """How a process has ended: its exit status, negative for a signal, and the end of what it wrote."""

    status: int
    output: list[str]


class JobProcess:
    """Made by :meth:`start`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self._output: deque[bytes] = deque()
        self._size = 0
        self._readers = [
            asyncio.create_task(self._read(stream)) for stream in (process.stdout, process.stderr) if stream
        ]

    @classmethod
    async def start(cls, python: str, directory: Path, environment: Mapping[str, str], launch: Launch) -> JobProcess:
        """Start a job; raises ``OSError``."""
        process = await asyncio.create_subprocess_exec(
            python,
            "-m",
            "scrapy_ext.launch",
            cwd=directory,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        process.stdin.write(msgspec.json.encode(launch) + b"\n")
        return cls(process)

    async def wait(self) -> Ended:
        """Wait until it has ended, and end what it has left behind."""
        status = await self._process.wait()
        self.signal(signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*self._readers, return_exceptions=True), 5)
        text = b"".join(self._output)[-_KEPT:].decode(errors="replace")
        return Ended(status, [line for line in text.splitlines() if line.strip()])

    def signal(self, number: int) -> None:
        """Send a signal to it and to all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(_PIECE):
            self._output.append(piece)
            self._size += len(piece)
            while self._size - len(self._output[0]) > _KEPT:
                self._size -= len(self._output.popleft())

"""The services that crawls store in, each a process on a free port of this machine."""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rig.processes import program, python

_START_SECONDS = 20


@dataclass(frozen=True)
class Platform:
    """The package's server."""

    port: int
    key: str
    pid: int
    data: Path

    def disk(self) -> int:
        """Return the bytes of its data."""
        return sum(file.stat().st_size for file in self.data.rglob("*") if file.is_file())


@contextmanager
def platform(where: Path | None = None, *, database: str | None = None, key: str | None = None) -> Generator[Platform]:
    """Run ``python -m scrapy_ext.server`` on an empty data directory, in a given one, or on PostgreSQL."""
    key = key or secrets.token_hex(16)
    keys = {"PLATFORM_API_KEY": key, "EXTRACT_API_KEY": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory(dir=where) as data:
        store = ("--data", data)
        if database is not None:
            store, keys = (), {**keys, "SERVER_DATABASE": database}
        options = ("--port", "0", *store, "--exit-with-stdin")
        with python("-m", "scrapy_ext.server", *options, extra=keys) as running:
            yield Platform(int(running.said.rsplit(":", 1)[1]), key, running.process.pid, Path(data))


@contextmanager
def redis() -> Generator[int]:
    """Run redis-server, in memory only; return its port."""
    if shutil.which("redis-server") is None:
        raise SystemExit("redis-server is needed: apt-get install redis-server")
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no")
        # Logs go to its own folder, since nobody reads its standard output.
        with program(["redis-server", *options, "--dir", folder, "--logfile", "log"]):
            _wait_for(port)
            yield port


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)

"""The servers and workers of the soak: started, killed, and started again where they were."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scrapy_ext.jobprocess.proc import Process, below, table
from tests.soak.clocks import Clock
from tests.soak.links import Link, Links
from tests.soak.postgresql import Replicated
from tests.support.free_ports import held_port, number_of
from tests.support.servers import RunningServer

#: Seconds for a node to start, which needs the database.
_SECONDS = 180.0
#: Of each of several nodes, and of one alone.
_UNITS, _UNITS_ALONE = 3, 6


class Keys(NamedTuple):
    """Those of all servers."""

    platform: str
    extract: str


class Node:
    """A server or a worker, with a link of its own to the database, and one from its clients to it. ``database``: None
    for a server with a file in ``folder``."""

    def __init__(
        self,
        name: str,
        folder: Path,
        database: Replicated | None,
        links: Links,
        keys: Keys,
        options: Sequence[str],
        clock: Clock | None,
    ) -> None:
        self.name = name
        self.is_server = name.startswith("server")
        self.clock = clock
        self._folder = folder
        self._database = database
        units = _UNITS_ALONE if database is None else _UNITS
        self._options = [*options, "--units", str(units), "--stop-grace", "10"]
        self.to_database: Link | None = None
        if database is not None:
            self.to_database = links.make(database.primary.port)
            database.links.append(self.to_database)
        self.to_clients: Link | None = None
        self.url = ""
        if self.is_server:
            # Held until the end: while the server is down, no other program gets its port.
            self._port = held_port()
            port = number_of(self._port)
            self.url = f"http://127.0.0.1:{port}"
            self.to_clients = links.make(port)
            named = ["--port", str(port), "--platform-key", keys.platform, "--extract-key", keys.extract]
            self._options += named
        self.process: RunningServer | None = None
        #: Number of times that it was started.
        self.lives = 0
        self.is_stopped = False

    @property
    def life(self) -> str:
        """The name of its present process."""
        return f"{self.name}-{self.lives}"

    @property
    def pid(self) -> int | None:
        """Its process; None while it has none."""
        running = self.process
        return running.process.pid if running is not None and running.process.poll() is None else None

    @property
    def _address(self) -> str | None:
        """That of the database."""
        if self._database is None or self.to_database is None:
            return None
        return self._database.url(self.to_database)

    def start(self) -> None:
        """Start it, again and again while the database does not let it."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                self.process = RunningServer(
                    self._folder,
                    database=self._address,
                    options=self._options,
                    worker=not self.is_server,
                    environment=self.clock.environment if self.clock is not None else None,
                    apart=True,
                )
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                self.lives += 1
                return

    def kill(self) -> None:
        """End it as a power cut does."""
        if self.process is not None:
            self.process.kill()
            self._keep_log()

    def stop(self) -> int:
        """End it as a service manager does; returns its exit code."""
        assert self.process is not None
        try:
            return self.process.terminate()
        finally:
            self._keep_log()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, and not what it has started."""
        if self.process is not None and self.process.process.poll() is None:
            self.process.process.send_signal(number)
        self.is_stopped = number is signal.SIGSTOP

    def take_leave(self) -> str:
        """Of a process that has ended by itself: its log."""
        assert self.process is not None
        self.process.kill()
        self._keep_log()
        return self.process.log()

    def _keep_log(self) -> None:
        assert self.process is not None
        logs = self._folder / "logs"
        logs.mkdir(exist_ok=True)
        (logs / f"{self.life}.log").write_text(self.process.log())

    def tree(self, processes: dict[int, Process] | None = None) -> list[Process]:
        """It and all that it has started."""
        pid = self.pid
        return [] if pid is None else below([pid], processes or table())[pid]

    def child(self, module: str) -> int | None:
        """A process that it has started itself, by the module that this runs."""
        pid = self.pid
        for process in self.tree():
            if process.parent == pid and module in command_of(process.pid):
                return process.pid
        return None


def command_of(pid: int) -> str:
    """The command line of a process; "" where there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def new_keys() -> Keys:
    return Keys(secrets.token_hex(16), secrets.token_hex(16))

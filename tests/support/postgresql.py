"""A PostgreSQL of the tests' own: on a free port of this machine, in a temporary folder, gone when they end."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pwd
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.support.eventually import TIMEOUT
from tests.support.free_ports import held_port, number_of

_NEEDED = """PostgreSQL 13 or later is needed for these tests, and was not found: neither in PATH, nor where Debian and
Homebrew put it. On Debian and Ubuntu: apt-get install postgresql. Elsewhere, put the folder of initdb into PATH."""
_USER = "scrapy"
#: Who runs it when the tests run as root, whom PostgreSQL refuses.
_UNPRIVILEGED = ("postgres", "nobody")


class Cluster:
    """A server with a superuser ``scrapy``, synced to disk as a real one; every database is made for one test.

    ``settings`` go over those of all tests. ``segment`` is the size (MiB, a power of 2) of the files of its log.
    ``primary``: the cluster whose streaming standby it is, with the same password, segments and settings.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        segment: int | None = None,
        primary: Cluster | None = None,
    ) -> None:
        self._bin = _programs()
        self._owner = _owner()
        self._settings = dict(settings or {})
        self._segment = segment
        self._primary = primary
        self._file_limit: int | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="scrapy-ext-postgresql-"))
        self._numbers = itertools.count(1)
        self.password = secrets.token_hex(8) if primary is None else primary.password
        #: Its port stays its own while it is created, and while it is down.
        self._port = held_port()
        self.port = number_of(self._port)
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._create()
            self.start()
        except BaseException:
            self.remove()
            raise

    def _create(self) -> None:
        if self._primary is not None:
            self._copy(self._primary)
            return
        secret = self._folder / "password"
        secret.write_text(self.password)
        if self._owner is not None:
            for path in (self._folder, secret):
                os.chown(path, self._owner.pw_uid, self._owner.pw_gid)
        options = ["--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        if self._segment is not None:
            options.append(f"--wal-segsize={self._segment}")
        self._run("initdb", f"--pgdata={self.data}", f"--username={_USER}", *options)

    def _copy(self, primary: Cluster) -> None:
        """Become a standby, with a slot of its own on the primary so that this one keeps what it has yet to send."""
        if self._owner is not None:
            os.chown(self._folder, self._owner.pw_uid, self._owner.pw_gid)
        slot = f"standby_{self.port}"
        options = ["--write-recovery-conf", "--create-slot", f"--slot={slot}", "--checkpoint=fast", "--no-sync"]
        where = ["--host=127.0.0.1", f"--port={primary.port}"]
        self._run("pg_basebackup", f"--pgdata={self.data}", "--wal-method=stream", *where, *options)

    @property
    def data(self) -> Path:
        """The folder of its files."""
        return self._folder / "data"

    def log(self) -> str:
        """Return what it has logged."""
        path = self._folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def standby(self) -> Cluster:
        """Return a streaming standby of this server, started, with its data so far. Whoever asks removes it."""
        return Cluster(self._settings, segment=self._segment, primary=self)

    def promote(self) -> None:
        """Make a primary server of a standby; returns when it takes writes."""
        self._run("pg_ctl", "promote", "--wait", f"--pgdata={self.data}")
        self._primary = None

    def limit_files(self, limit: int | None) -> None:
        """Bound how long (bytes) the files of the running server may grow, as :meth:`start` does; None: no bound.

        A program of the system does it as the user that the server runs as: even root may need a privilege for that
        which containers do not have.
        """
        size = f"--fsize={'unlimited' if limit is None else limit}:"
        for pid in self._pids():
            # One that has ended meanwhile is not there.
            subprocess.run(["prlimit", f"--pid={pid}", size], check=False, capture_output=True, **self._as_owner())

    def longest_file(self) -> int:
        """Return the size (bytes) of the longest file of its tables, or of a segment of its log if that is longer."""
        sizes = [(self._segment or 16) * 2**20]
        for path in (self.data / "base").glob("*/*"):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return max(sizes)

    def start(self, *, file_limit: int | None = None) -> None:
        """Start it, and wait until it answers. After a kill, those that it had started may be in the way a moment.

        ``file_limit`` bounds how long (bytes) its files may grow, as a full disk would. PostgreSQL calls it a full
        disk when a part of what it writes gets there, so that the bound must not be at the end of a page.
        """
        self._file_limit = file_limit
        deadline = time.monotonic() + TIMEOUT
        self._spawn()
        while self._call("pg_isready", "--quiet").returncode != 0:
            if time.monotonic() > deadline:
                raise AssertionError(f"PostgreSQL did not start\n{self.log()}")
            if self.process is not None and self.process.poll() is not None:
                self._spawn()
            time.sleep(0.05)

    def _spawn(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self._folder,
            "fsync": "on",
            "max_connections": 200,
            "shared_buffers": "64MB",
            **self._settings,
        }
        given = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, *given],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self._begin,  # noqa: PLW1509
                start_new_session=True,  # a Ctrl-C in the terminal is for the tests
                **self._as_owner(),
            )

    def _begin(self) -> None:
        _end_with_parent()
        if self._file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._file_limit, self._file_limit))

    def kill(self) -> None:
        """End it as a power cut does: its first process, and with it those that it has started."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=TIMEOUT)

    def stop(self) -> None:
        """End it without waiting for its clients."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)  # what it holds is thrown away: nothing to write out
            self.process.wait(timeout=TIMEOUT)

    def pause(self) -> None:
        """Let it hang: its processes are there and do nothing."""
        for pid in self._pids():
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause."""
        for pid in reversed(self._pids()):
            os.kill(pid, signal.SIGCONT)

    def _pids(self) -> list[int]:
        """Of its first process and of those that it has started."""
        assert self.process is not None
        first = self.process.pid
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    def remove(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        self._port.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def database(self, template: str = "template0") -> str:
        """The address of a new database, a copy of another."""
        name = f"test_{next(self._numbers)}"
        self._run("createdb", "--maintenance-db=postgres", f"--template={template}", name)
        return self.url(name)

    def url(self, name: str, password: str | None = None) -> str:
        """The address of a database."""
        return f"postgresql://{_USER}:{password or self.password}@127.0.0.1:{self.port}/{name}"

    @property
    def socket(self) -> Path:
        """Its Unix socket."""
        return self._folder / f".s.PGSQL.{self.port}"

    def query(self, url: str, sql: str) -> list[list[str]]:
        """Rows of a query as text."""
        done = self._run("psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command", sql, url)
        return [line.split("|") for line in done.stdout.decode().splitlines()]

    def run_file(self, url: str, path: Path) -> None:
        """Run the SQL of a file in a database."""
        with path.open("rb") as file:
            self._run("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", url, stdin=file)

    def dump(self, url: str) -> str:
        """Return the SQL that makes a database."""
        return self._run("pg_dump", "--no-owner", "--inserts", url).stdout.decode()

    def _run(self, program: str, *options: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
        done = self._call(program, *options, stdin=stdin)
        assert done.returncode == 0, f"{program}: {done.stderr.decode()}"
        return done

    def _call(self, program: str, *options: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
        environment = {
            **os.environ,
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGUSER": _USER,
            "PGPASSWORD": self.password,
        }
        command = [self._bin / program, *options]
        return subprocess.run(
            command, stdin=stdin, capture_output=True, timeout=300, check=False, env=environment, **self._as_owner()
        )

    def _as_owner(self) -> dict[str, Any]:
        # The folder of the tests may be closed to others than root.
        place: dict[str, Any] = {"cwd": self._folder}
        if self._owner is not None:
            place |= {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}
        return place


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A server, removed at the end."""
    made = Cluster()
    try:
        yield made
    finally:
        made.remove()


def _programs() -> Path:
    """The folder of PostgreSQL's programs, which Debian keeps out of PATH."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places: Sequence[Path] = [
        *Path("/usr/lib/postgresql").glob("*/bin"),
        *Path("/opt/homebrew/opt").glob("postgresql@*/bin"),
        *Path("/usr/local/opt").glob("postgresql@*/bin"),
    ]
    usable = [place for place in places if (place / "initdb").exists()]
    if not usable:
        raise RuntimeError(_NEEDED)
    return max(usable, key=_version)


def _version(place: Path) -> int:
    digits = place.parent.name.rpartition("@")[2]
    return int(digits) if digits.isdigit() else 0


def _owner() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in _UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as.")


def _end_with_parent() -> None:
    """Let it end with the tests however these end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG

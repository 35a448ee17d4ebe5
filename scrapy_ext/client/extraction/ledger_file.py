"""The file of a ledger: an SQLite database that one process uses.

- Everything is called from one thread, the ledger's.
- The lock is taken with the first transaction and kept until the process ends, however it does.
- Answers are rows; the oldest go when there are more than ``max_bytes``. Pages that become free are used again.
- What is committed has left the process: it survives SIGKILL. The log is synced only before it is copied into the file,
  so that a power cut may take the last answers, and leaves the file whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from scrapy_ext.client.extraction.budget import Spent

#: How the file says what it is: "ExtL", and the version of its tables.
APPLICATION_ID: Final = 0x4578744C
FORMAT: Final = 1

#: What a row takes beside its answer, so that many small answers are bounded too.
ROW_BYTES: Final = 256
#: How long a lock is waited for: a run that is just ending lets go of it.
_BUSY_SECONDS: Final = 1.0
#: Large answers fill large pages faster.
_PAGE_BYTES: Final = 16384
#: What is written is collected in a log of this size before it is copied into the file. Pages are used again soon, so
#: that most of it is never copied.
_LOG_BYTES: Final = 64 * 2**20
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNUSABLE: Final = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)

_TABLES: Final = (
    "CREATE TABLE totals (requests INTEGER NOT NULL, cost REAL NOT NULL, in_flight INTEGER NOT NULL, "
    "unanswered INTEGER NOT NULL, stored_bytes INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0.0, 0, 0, 0)",
    # The order of id is that of age.
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL, answer BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


class LedgerError(Exception):
    """A ledger file that must not be used. The message names the file and what to do."""


class Batch(NamedTuple):
    """What one flush writes. A key without an answer has its row removed."""

    answers: dict[bytes, bytes | None]
    requests: int
    cost: float
    in_flight: int


class Opened(NamedTuple):
    """What former runs left."""

    spent: Spent
    unanswered: int
    keys: set[bytes]


class LedgerFile:
    """The file at a path; :meth:`open` comes first."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None
        self._stored_bytes = 0

    def open(self) -> Opened:
        """Raises :class:`LedgerError` for a file that must not be used, and what SQLite and the system raise where
        there can be none."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # SQLite says what is wrong with the path.
            # Answers are their owner's; SQLite gives the files beside this one the same mode.
            self._path.touch(mode=0o600)
        with self._told_apart():
            try:
                self._connect()
                return self._begun()
            except BaseException:
                self._disconnect()
                raise

    def read(self, key: bytes) -> bytes | None:
        """An answer, if it is there and whole."""
        row = self._opened.execute("SELECT checksum, answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None or zlib.crc32(row[1]) != row[0]:
            return None
        answer: bytes = row[1]
        return answer

    def write(self, batch: Batch) -> list[bytes]:
        """Commit a batch; returns the keys of answers that had to go for want of room."""
        execute = self._opened.execute
        execute("BEGIN IMMEDIATE")
        for key, answer in batch.answers.items():
            removed = execute("DELETE FROM answers WHERE key = ? RETURNING size", (key,)).fetchall()
            self._stored_bytes -= sum(size for (size,) in removed)
            if answer is not None:
                size = len(answer) + ROW_BYTES
                execute(
                    "INSERT INTO answers (key, size, checksum, answer) VALUES (?, ?, ?, ?)",
                    (key, size, zlib.crc32(answer), answer),
                )
                self._stored_bytes += size
        dropped = self._make_room()
        execute(
            "UPDATE totals SET requests = ?, cost = ?, in_flight = ?, stored_bytes = ?",
            (batch.requests, batch.cost, batch.in_flight, self._stored_bytes),
        )
        execute("COMMIT")
        return dropped

    def close(self, remove: bool) -> None:
        """Let go of the file; ``remove``: delete it."""
        if not remove and self._connection is not None:
            with contextlib.suppress(sqlite3.Error):  # It is as good without.
                self._compact(self._connection)
        self._disconnect()
        if remove:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.ProgrammingError("the ledger is closed")
        return self._connection

    def _connect(self) -> None:
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        self._connection = connection
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("BEGIN EXCLUSIVE")
        self._check_format(connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # Some builds overwrite what is deleted with zeros, which costs as much as writing it.
        connection.execute("PRAGMA secure_delete = OFF")
        log_bytes = min(_LOG_BYTES, max(self._max_bytes // 4, 2**20))
        connection.execute(f"PRAGMA wal_autocheckpoint = {log_bytes // _PAGE_BYTES}")
        connection.execute(f"PRAGMA journal_size_limit = {log_bytes}")

    def _check_format(self, connection: sqlite3.Connection) -> None:
        tables, application, version = (
            connection.execute(query).fetchone()[0]
            for query in ("SELECT count(*) FROM sqlite_schema", "PRAGMA application_id", "PRAGMA user_version")
        )
        if not tables and not application and not version:
            for statement in _TABLES:
                connection.execute(statement)
        elif application != APPLICATION_ID:
            raise LedgerError(
                f"{self._path} is a database of something else, not a ledger. Delete it, or move it away."
            )
        elif version != FORMAT:
            raise LedgerError(
                f"{self._path} is a ledger of format {version}, and this version reads format {FORMAT}. Go on with the "
                "version that wrote it, or delete it: at worst, answers are paid for twice."
            )

    def _begun(self) -> Opened:
        execute = self._opened.execute
        execute("BEGIN IMMEDIATE")
        # Those who were in flight when the last run ended will not be heard of.
        execute("UPDATE totals SET unanswered = unanswered + in_flight, in_flight = 0")
        ((requests, cost, unanswered, self._stored_bytes),) = execute(
            "SELECT requests, cost, unanswered, stored_bytes FROM totals"
        ).fetchall()
        dropped = self._make_room()
        execute("UPDATE totals SET stored_bytes = ?", (self._stored_bytes,))
        execute("COMMIT")
        keys = {key for (key,) in execute("SELECT key FROM answers")}
        return Opened(Spent(requests, cost), unanswered, keys.difference(dropped))

    def _make_room(self) -> list[bytes]:
        dropped: list[bytes] = []
        while self._stored_bytes > self._max_bytes:
            oldest = self._opened.execute(
                "DELETE FROM answers WHERE id = (SELECT min(id) FROM answers) RETURNING key, size"
            ).fetchall()
            if not oldest:
                break
            dropped += [key for key, _ in oldest]
            self._stored_bytes -= sum(size for _, size in oldest)
        return dropped

    def _compact(self, connection: sqlite3.Connection) -> None:
        """Pages are used again while the crawl runs; what it leaves behind should not be mostly free ones."""
        pages, free = (
            connection.execute(query).fetchone()[0] for query in ("PRAGMA page_count", "PRAGMA freelist_count")
        )
        if free > pages / 2:
            connection.execute("VACUUM")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextlib.contextmanager
    def _told_apart(self) -> Iterator[None]:
        """A file that cannot be had is the caller's to survive; one that must not be touched is told."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _UNUSABLE:
                raise
            raise LedgerError(self._told(code, error)) from error
        except (ValueError, TypeError) as error:
            raise LedgerError(self._told(sqlite3.SQLITE_CORRUPT, error)) from error

    def _told(self, code: int, error: Exception) -> str:
        if code in _LOCKED:
            return (
                f"{self._path} is in use: another crawl that runs now writes this ledger. Wait until it ends, or give "
                "this crawl a place of its own."
            )
        return (
            f"{self._path} is damaged or not a ledger ({error}). Delete it: at worst, answers are paid for twice. Or "
            "move it away."
        )

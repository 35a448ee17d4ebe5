"""The file of a ledger: an SQLite database that one process uses.

- All calls come from one thread, the ledger's.
- The lock is taken with the first transaction and released when the process ends, also by a kill.
- Answers are rows; the oldest are deleted when there are more than ``max_bytes``. Free pages are used again.
- A committed transaction has left the process: it survives SIGKILL. The write-ahead log is synced only before it is
  copied into the file, so that a power failure may lose the last answers, and leaves the file intact.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from scrapy_ext.client.extraction.budget import Spent
from scrapy_ext.compatibility import sqlite

#: Identification of the file: "ExtL", and the version of its tables.
APPLICATION_ID: Final = 0x4578744C
FORMAT: Final = 1

#: Bytes of a row besides its answer, so that many small answers are bounded, too.
ROW_BYTES: Final = 256
#: Seconds to wait for the lock: a run that is ending releases it.
_BUSY_SECONDS: Final = 1.0
#: Large answers fill large pages faster.
_PAGE_BYTES: Final = 16384
#: Size of the write-ahead log before it is copied into the file. Pages are used again soon, so that most of it is never
#: copied.
_LOG_BYTES: Final = 64 * 2**20
_LOCKED: Final = (sqlite.BUSY, sqlite.LOCKED)
_UNUSABLE: Final = (
    sqlite.CANTOPEN,
    sqlite.FULL,
    sqlite.IOERR,
    sqlite.PERM,
    sqlite.READONLY,
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


class LedgerChanges(NamedTuple):
    """Changes that one flush writes. The row of a key without an answer is deleted."""

    answers: dict[bytes, bytes | None]
    requests: int
    cost: float
    in_flight: int


class Opened(NamedTuple):
    """Totals and keys of former runs."""

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
        """Open or create the file. Raises :class:`LedgerError` for a file that must not be touched, and
        ``sqlite3.Error`` or ``OSError`` when the system cannot open it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # SQLite says what is wrong with the path.
            # Answers are private to the user; SQLite gives the files beside this one the same mode.
            self._path.touch(mode=0o600)
        with self._classified_errors():
            try:
                self._connect()
                return self._begun()
            except BaseException:
                self._disconnect()
                raise

    def read(self, key: bytes) -> bytes | None:
        """Return an answer; None when it is absent or damaged."""
        row = self._opened.execute("SELECT checksum, answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None or zlib.crc32(row[1]) != row[0]:
            return None
        answer: bytes = row[1]
        return answer

    def write(self, changes: LedgerChanges) -> list[bytes]:
        """Commit changes; returns the keys of answers that were deleted for lack of room."""
        execute = self._opened.execute
        execute("BEGIN IMMEDIATE")
        for key, answer in changes.answers.items():
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
            (changes.requests, changes.cost, changes.in_flight, self._stored_bytes),
        )
        execute("COMMIT")
        return dropped

    def close(self, remove: bool) -> None:
        if not remove and self._connection is not None:
            with contextlib.suppress(sqlite3.Error):  # The file is as good without.
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
        # Requests in flight when the last run ended get no answer.
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
        """Shrink a file that is mostly free pages, which a running crawl uses again."""
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
    def _classified_errors(self) -> Iterator[None]:
        """Raise :class:`LedgerError` unless the error is one of the system, which the caller handles."""
        try:
            yield
        except sqlite3.Error as error:
            code = sqlite.code_of(error)
            if code in _UNUSABLE:
                raise
            raise LedgerError(self._message(code, error)) from error
        except (ValueError, TypeError) as error:
            raise LedgerError(self._message(sqlite.CORRUPT, error)) from error

    def _message(self, code: int, error: Exception) -> str:
        if code in _LOCKED:
            return (
                f"{self._path} is in use: another crawl that runs now writes this ledger. Wait until it ends, or give "
                "this crawl another path."
            )
        return (
            f"{self._path} is damaged or not a ledger ({error}). Delete it: at worst, answers are paid for twice. Or "
            "move it away."
        )

"""The files of a ledger, which one process uses: an SQLite database, and the bytes of the answers
(:mod:`~scrapy_ext.client.extraction.ledger_answers`).

- All calls come from one thread, the ledger's.
- The lock is taken with the first transaction and released when the process ends, also by a kill.
- Answers have rows with their places; the oldest are deleted when there are more than ``max_bytes``.
- A committed transaction has left the process: it survives SIGKILL. The write-ahead log is synced only before it is
  copied into the file, so that a power failure may lose the last answers, and leaves the database intact. An answer
  whose bytes did not reach the disk fails its checksum.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from scrapy_ext.api.compression import crc32
from scrapy_ext.client.extraction.budget import Spent
from scrapy_ext.client.extraction.ledger_answers import AnswerFile, Place
from scrapy_ext.client.extraction.ledger_entries import LedgerChanges, Opened
from scrapy_ext.compatibility import sqlite

T = TypeVar("T")

#: Identification of the file: "ExtL", and the version of its tables.
APPLICATION_ID: Final = 0x4578744C
FORMAT: Final = 2

#: Bytes of a row besides its answer, so that many small answers are bounded, too.
ROW_BYTES: Final = 256
#: Rows that one statement writes or deletes: a statement gives up the interpreter's lock, which the thread of a busy
#: crawl gets back only after 5 ms.
_ROWS: Final = 100
#: Seconds to wait for the lock: a run that is ending releases it.
_BUSY_SECONDS: Final = 1.0
#: Size of the write-ahead log before it is copied into the file. Pages are used again soon, so that most of it is never
#: copied.
_LOG_BYTES: Final = 2**20
_PAGE_BYTES: Final = 4096
#: Suffix of the file of the answers.
_ANSWERS: Final = "-answers"
_LOCKED: Final = (sqlite.BUSY, sqlite.LOCKED)
_UNUSABLE: Final = (
    sqlite.CANTOPEN,
    sqlite.FULL,
    sqlite.IOERR,
    sqlite.PERM,
    sqlite.READONLY,
)

_ANSWERS_TABLE: Final = (
    # The order of id is that of age.
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, place INTEGER NOT NULL, "
    "size INTEGER NOT NULL, checksum INTEGER NOT NULL)"
)
_TABLES: Final = (
    "CREATE TABLE totals (requests INTEGER NOT NULL, cost REAL NOT NULL, in_flight INTEGER NOT NULL, "
    "unanswered INTEGER NOT NULL, stored_bytes INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0.0, 0, 0, 0)",
    _ANSWERS_TABLE,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)
#: Format 1 had the answers in the database. The totals stay, by which budgets hold.
_FROM_FORMAT_1: Final = (
    "DROP TABLE answers",
    _ANSWERS_TABLE,
    "UPDATE totals SET stored_bytes = 0",
    f"PRAGMA user_version = {FORMAT}",
)

logger = logging.getLogger(__name__)


class LedgerError(Exception):
    """A ledger file that must not be used. The message names the file and what to do."""


class LedgerFile:
    """The file at a path; :meth:`open` comes first."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None
        self._answers: AnswerFile | None = None
        self._stored_bytes = 0

    def open(self) -> Opened:
        """Open or create the file. Raises :class:`LedgerError` for a file that must not be touched, and
        ``sqlite3.Error`` or ``OSError`` when the system cannot open it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # SQLite says what is wrong with the path.
            # Answers are private to the user; SQLite gives the files beside this one the same mode.
            self.path.touch(mode=0o600)
        with self._classified_errors():
            try:
                return self._begun(self._connect())
            except BaseException:
                self._disconnect()
                raise

    def read(self, key: bytes) -> bytes | None:
        """Return an answer; None when it is absent or damaged."""
        connection, answers = self._opened
        row = connection.execute("SELECT place, size, checksum FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        answer = answers.read(Place(*row[:2]))
        return answer if len(answer) == row[1] and crc32(answer) == row[2] else None

    def write(self, changes: LedgerChanges) -> list[bytes]:
        """Commit changes; returns the keys of answers that were deleted for lack of room."""
        connection, answers = self._opened
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        freed = [place for keys in _parts(list(changes.removed)) for place in self._delete(keys)]
        places = answers.write([*changes.answers.values()])
        rows = [
            (key, *place, crc32(answer)) for (key, answer), place in zip(changes.answers.items(), places, strict=True)
        ]
        self._stored_bytes += sum(place.size + ROW_BYTES for place in places)
        for part in _parts(rows):
            values = ", ".join(["(?, ?, ?, ?)"] * len(part))
            execute(
                f"INSERT INTO answers (key, place, size, checksum) VALUES {values}",  # noqa: S608 - question marks
                list(chain.from_iterable(part)),
            )
        dropped, more = self._make_room(connection)
        execute(
            "UPDATE totals SET requests = ?, cost = ?, in_flight = ?, stored_bytes = ?",
            (changes.requests, changes.cost, changes.in_flight, self._stored_bytes),
        )
        execute("COMMIT")
        for place in freed + more:
            answers.free(place)
        return dropped

    def close(self, remove: bool) -> None:
        self._disconnect()
        if remove:
            for suffix in ("", "-wal", "-shm", "-journal", _ANSWERS):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    @property
    def _opened(self) -> tuple[sqlite3.Connection, AnswerFile]:
        if self._connection is None or self._answers is None:
            raise sqlite3.ProgrammingError("the ledger is closed")
        return self._connection, self._answers

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        self._connection = connection
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("BEGIN EXCLUSIVE")
        self._check_format(connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // _PAGE_BYTES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        tables, application, version = (
            connection.execute(query).fetchone()[0]
            for query in ("SELECT count(*) FROM sqlite_schema", "PRAGMA application_id", "PRAGMA user_version")
        )
        if not tables and not application and not version:
            for statement in _TABLES:
                connection.execute(statement)
        elif application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is a database of something else, not a ledger. Delete it, or move it away.")
        elif version == 1:
            for statement in _FROM_FORMAT_1:
                connection.execute(statement)
            logger.warning(
                "%s is of an earlier version: its answers are not used and may be paid for twice. Let crawls end "
                "before an upgrade to prevent this",
                self.path,
            )
        elif version != FORMAT:
            raise LedgerError(
                f"{self.path} is a ledger of format {version}, and this version reads format {FORMAT}. Go on with the "
                "version that wrote it, or delete it: at worst, answers are paid for twice."
            )

    def _begun(self, connection: sqlite3.Connection) -> Opened:
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        # Requests in flight when the last run ended get no answer.
        execute("UPDATE totals SET unanswered = unanswered + in_flight, in_flight = 0")
        ((requests, cost, unanswered, self._stored_bytes),) = execute(
            "SELECT requests, cost, unanswered, stored_bytes FROM totals"
        ).fetchall()
        answers = self.path.with_name(self.path.name + _ANSWERS)
        length = answers.stat().st_size if answers.exists() else 0
        # Rows of a damaged database, and of answers that a power failure has lost.
        self._deleted(
            execute(
                "DELETE FROM answers WHERE place < 0 OR size < 0 OR place > ? OR size > ? - place "
                "OR typeof(place) != 'integer' OR typeof(size) != 'integer' RETURNING place, size",
                (length, length),
            )
        )
        self._make_room(connection)
        execute("UPDATE totals SET stored_bytes = ?", (self._stored_bytes,))
        execute("COMMIT")
        places = {key: Place(*place) for key, *place in execute("SELECT key, place, size FROM answers")}
        self._answers = AnswerFile(answers, places.values())
        return Opened(Spent(requests, cost), unanswered, set(places))

    def _make_room(self, connection: sqlite3.Connection) -> tuple[list[bytes], list[Place]]:
        """Delete the oldest rows while there are too many bytes; return their keys and places."""
        dropped: list[bytes] = []
        freed: list[Place] = []
        while self._stored_bytes > self.max_bytes:
            oldest = connection.execute(
                "DELETE FROM answers WHERE id = (SELECT min(id) FROM answers) RETURNING key, place, size"
            ).fetchall()
            if not oldest:
                break
            dropped += [key for key, *_ in oldest]
            freed += self._deleted(place for _, *place in oldest)
        return dropped, freed

    def _delete(self, keys: Sequence[bytes]) -> list[Place]:
        """Delete the rows of these keys, as far as they exist; return their places."""
        connection, _ = self._opened
        those = f"WHERE key IN ({', '.join('?' * len(keys))})"
        # One row with all places, for the thread waits for the interpreter's lock after each row.
        query = f"SELECT group_concat(place || ' ' || size) FROM answers {those}"  # noqa: S608 - question marks
        ((found,),) = connection.execute(query, keys)
        if not found:
            return []
        connection.execute(f"DELETE FROM answers {those}", keys)  # noqa: S608 - question marks
        return self._deleted([int(number) for number in place.split()] for place in found.split(","))

    def _deleted(self, rows: Iterable[Sequence[int]]) -> list[Place]:
        """Return the places of deleted rows, which count no more."""
        places = [Place(*row) for row in rows]
        self._stored_bytes -= sum(place.size + ROW_BYTES for place in places)
        return places

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        answers, self._answers = self._answers, None
        try:
            if answers is not None:
                answers.close()
        finally:
            # Last, since it has the lock.
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
                f"{self.path} is in use: another crawl that runs now writes this ledger. Wait until it ends, or give "
                "this crawl another path."
            )
        return (
            f"{self.path} is damaged or not a ledger ({error}). Delete it: at worst, answers are paid for twice. Or "
            "move it away."
        )


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Return rows in parts, each for one statement."""
    return (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))

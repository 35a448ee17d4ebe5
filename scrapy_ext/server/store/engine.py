"""The seam between the stores and a database; the only module that knows SQLite.

A store's operation is written once, as ``async def operation(tx, ...)``, in SQL with ``$1`` placeholders that
SQLite and PostgreSQL both accept. Rules that hold for every operation:

- It awaits nothing but ``tx``, and it may be run again from its start, so that it touches nothing outside ``tx``.
- All of it is stored or none of it: it runs in one transaction, and its result is seen only after the commit.
- ``write`` returns when the data is durable (committed and synced to disk), never before.

How SQLite does it: ``tx`` never suspends there, so that one thread drives operations as plain calls
(``coroutine.send(None)`` runs one to its end). That thread takes whatever operations have queued up while the
last commit was syncing and commits them together, each in a savepoint of its own: one slow sync pays for many
callers, and one that fails does not disturb the others. Several processes may share the file; each commit takes
SQLite's write lock (``BEGIN IMMEDIATE``) before it reads anything, and a lock held elsewhere is waited for. For
that reason nothing here or above may remember what the database says.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

from scrapy_ext.server.store.errors import SchemaError, StoreBusyError, StoreError, StoreFullError
from scrapy_ext.server.store.measures import Measures

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]

#: How long a lock that another process holds is waited for.
BUSY_SECONDS: Final = 30.0
#: Operations in one commit.
_MAX_GROUP: Final = 128
#: Rows of one INSERT that returns something.
_ROWS_PER_INSERT: Final = 128
_READERS: Final = 4
_OLDEST_SQLITE: Final = (3, 35, 0)
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Transaction(Protocol):
    """What an operation may use."""

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """All rows of a query."""

    async def fetchrow(self, sql: str, *arguments: Any) -> Row | None:
        """The first row of a query."""

    async def execute(self, sql: str, *arguments: Any) -> int:
        """Run a statement; returns how many rows it changed."""

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of arguments."""

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Run ``INSERT INTO … VALUES ($1, …) … RETURNING …`` for every row; returns what it gives, unordered."""

    async def script(self, sql: str) -> None:
        """Run the statements of a migration."""


Operation = Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]]


class Engine(Protocol):
    """A database."""

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that changes data; returns after its commit. Raises :class:`StoreError`."""

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that only reads, on one consistent state of the data. Raises :class:`StoreError`."""

    @property
    def measures(self) -> Measures:
        """What it has done so far."""

    async def size(self) -> int:
        """Bytes that the database takes on disk."""

    async def close(self) -> None:
        """Finish what was begun and let go of the database."""


class SqliteEngine:
    """A database file in WAL mode: one writing thread, several reading ones."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._writer = _Writer(path, connection)
        self._writer.start()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-reader")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []

    @classmethod
    async def open(cls, path: Path) -> SqliteEngine:
        """Open or create the file; raises :class:`StoreError`."""
        return cls(path, await asyncio.to_thread(_open_writer, path))

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        job = _Job(lambda tx: operation(tx, *args, **kwargs), asyncio.get_running_loop())
        self._writer.submit(job)
        return await job.future

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, lambda tx: operation(tx, *args, **kwargs))

    @property
    def measures(self) -> Measures:
        """See :class:`Engine`."""
        self._writer.measures.waiting = self._writer.waiting
        return self._writer.measures

    async def size(self) -> int:
        """See :class:`Engine`."""
        return await asyncio.to_thread(_size, self._path)

    async def close(self) -> None:
        """See :class:`Engine`."""
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._connections:
            connection.close()
        await asyncio.to_thread(self._writer.close)

    def _read(self, start: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        try:
            connection = self._reader()
            connection.execute("BEGIN")
            try:
                return _drive(start(_SqliteTransaction(connection)))
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise _translated(error, self._path) from error

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = _connect(self._path)
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
            self._connections.append(connection)
        return connection


class _Job(Generic[T]):
    """An operation that waits for the writer, and where its outcome goes."""

    def __init__(self, start: Callable[[Transaction], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop) -> None:
        self.start = start
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.outcome: T | BaseException | None = None

    def deliver(self) -> None:
        if self.future.done():  # its caller was cancelled
            return
        if isinstance(self.outcome, BaseException):
            self.future.set_exception(self.outcome)
        else:
            self.future.set_result(self.outcome)  # type: ignore[arg-type]


class _Writer(threading.Thread):
    """The thread that owns the writing connection."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(name="store-writer", daemon=True)
        self._path = path
        self._connection = connection
        self._waiting: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self.measures = Measures()

    @property
    def waiting(self) -> int:
        """Operations that are in the queue."""
        return self._waiting.qsize()

    def submit(self, job: _Job[Any]) -> None:
        if self._closed:
            raise StoreError("The store is closed. The server is shutting down; try again when it is back.")
        self._waiting.put(job)

    def close(self) -> None:
        self._closed = True
        self._waiting.put(None)
        self.join()

    def run(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, ended = self._group(first)
            self._run_group(group)
            if ended:
                break
        self._connection.close()

    def _group(self, first: _Job[Any]) -> tuple[list[_Job[Any]], bool]:
        group = [first]
        while len(group) < _MAX_GROUP:
            try:
                job = self._waiting.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _run_group(self, group: list[_Job[Any]]) -> None:
        try:
            self._commit(group)
        except sqlite3.Error as error:
            if len(group) > 1 and _code(error) not in _LOCKED:  # alone, those that are not to blame may succeed
                for job in group:
                    self._run_group([job])
                return
            for job in group:
                job.outcome = _translated(error, self._path)
        except BaseException as error:
            for job in group:
                job.outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            group[0].loop.call_soon_threadsafe(_deliver, group)

    def _commit(self, group: list[_Job[Any]]) -> None:
        connection = self._connection
        transaction = _SqliteTransaction(connection)
        began, changes = time.perf_counter(), connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in group:
                connection.execute("SAVEPOINT operation")
                try:
                    job.outcome = _drive(job.start(transaction))
                except sqlite3.IntegrityError as error:
                    job.outcome = _translated(error, self._path)
                    connection.execute("ROLLBACK TO operation")
                except sqlite3.Error:
                    raise
                except Exception as error:
                    job.outcome = error
                    connection.execute("ROLLBACK TO operation")
                connection.execute("RELEASE operation")
            connection.execute("COMMIT")
            self.measures.committed(len(group), connection.total_changes - changes, time.perf_counter() - began)
        except BaseException:
            self.measures.failures += 1
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _deliver(group: list[_Job[Any]]) -> None:
    for job in group:
        job.deliver()


def _drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run an operation to its end, which it reaches without suspending."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a store operation awaited something other than its transaction")


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        return self._connection.execute(_native(sql), arguments).fetchall()

    async def fetchrow(self, sql: str, *arguments: Any) -> Row | None:
        cursor = self._connection.execute(_native(sql), arguments)
        row: Row | None = cursor.fetchone()
        cursor.close()
        return row

    async def execute(self, sql: str, *arguments: Any) -> int:
        return self._connection.execute(_native(sql), arguments).rowcount

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(_native(sql), rows)

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        returned: list[Row] = []
        for first in range(0, len(rows), _ROWS_PER_INSERT):
            part = rows[first : first + _ROWS_PER_INSERT]
            arguments = [value for row in part for value in row]
            returned += self._connection.execute(_multiplied(sql, len(part)), arguments).fetchall()
        return returned

    async def script(self, sql: str) -> None:
        # sqlite3.executescript would commit first; a migration belongs to its transaction.
        for statement in _for_sqlite(sql).split(";\n"):
            if statement.strip():
                self._connection.execute(statement)


@lru_cache(maxsize=1024)
def _native(sql: str) -> str:
    return re.sub(r"\$(\d+)", r"?\1", sql)


@lru_cache(maxsize=1024)
def _multiplied(sql: str, rows: int) -> str:
    head, group, tail = re.split(r"(\((?:\$\d+(?:,\s*)?)+\))", sql, maxsplit=1)
    marks = "(" + ", ".join("?" * group.count("$")) + ")"
    return head + ", ".join([marks] * rows) + tail


def _for_sqlite(sql: str) -> str:
    """Migrations may say something to SQLite alone, inside what other engines read as a comment."""
    return re.sub(r"/\*sqlite (.*?)\*/", r"\1", re.sub(r"--.*", "", sql))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _open_writer(path: Path) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed. Use a newer Python or SQLite."
        )
    with contextlib.suppress(OSError):  # SQLite says what is wrong with the path
        path.touch(mode=0o600)  # the data is its owner's; SQLite gives the files beside it the same mode
    try:
        connection = _connect(path)
        _check_whose(connection, path)
        _enter_wal(connection)
        # FULL syncs the log at every commit: what was answered with 200 survives a power cut, not only a crash.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA cache_size = -65536")
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    return connection


def _check_whose(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of another program before anything is changed in it."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and "schema_version" not in names:
        raise SchemaError(
            f"{path} is not a database of this server, but of another program. Use another data directory."
        )


def _size(path: Path) -> int:
    size = 0
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            size += path.with_name(path.name + suffix).stat().st_size
    return size


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switching the journal does not wait for other processes that are opening the same file, so wait here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _translated(error: sqlite3.Error, path: Path) -> StoreError:
    code = _code(error)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreFullError(
            f"{path} cannot be written ({error}). The disk is full, over a quota or failing: make room and try again."
        )
    if code in _LOCKED:
        return StoreBusyError(f"{path} was locked by another process for {BUSY_SECONDS:.0f} s. Try again.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(
            f"{path} cannot be written ({error}). Check the permissions of the data directory, or use another one."
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError(
            f"{path} is damaged or not a database ({error}). Move it away to start afresh, or put a backup in place."
        )
    return StoreError(f"{path}: the database refused an operation ({error}). Please report this.")

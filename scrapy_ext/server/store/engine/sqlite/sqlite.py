"""SQLite behind the seam: a file in WAL mode, one writing thread, several reading ones.

A transaction never suspends here, so that one thread drives operations as plain calls (``coroutine.send(None)``
runs one to its end). That thread takes whatever operations have queued up while the last commit was syncing and
commits them together, each in a savepoint of its own: one slow sync pays for many callers, and one that fails does
not disturb the others. Several processes may share the file; each commit takes SQLite's write lock
(``BEGIN IMMEDIATE``) before it reads anything, which is why ``FOR UPDATE`` means nothing more here, and a lock
held elsewhere is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.interface import Operation, P, Snapshot, Transaction
from scrapy_ext.server.store.engine.measures import Measures
from scrapy_ext.server.store.engine.sqlite.checkpoints import Checkpoints
from scrapy_ext.server.store.engine.sqlite.file import (
    LOCKED,
    code_of,
    connect,
    connect_reader,
    open_writer,
    size_of,
    translated,
    vacuum,
)
from scrapy_ext.server.store.engine.sqlite.inline_reads import Glances, NotAtOnceError
from scrapy_ext.server.store.engine.sqlite.transaction import SqliteTransaction, Start, drive, run_reading

T = TypeVar("T")

#: Operations in one commit.
_MAX_GROUP: Final = 128
_READERS: Final = 4
_CLOSED: Final = "The store is closed. The server is shutting down; try again when it is back."


class SqliteEngine:
    """A database file in WAL mode: one writing thread, several reading ones."""

    def __init__(self, path: Path, connection: sqlite3.Connection, glances: Glances) -> None:
        self._path = path
        self._glances = glances
        self._writer = _Writer(path, connection)
        self._writer.start()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-reader")
        self._closed = False
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []

    @classmethod
    async def open(cls, path: Path) -> SqliteEngine:
        """Open or create the file; raises :class:`StoreError`."""
        return cls(path, *await asyncio.to_thread(lambda: (open_writer(path), Glances(path))))

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        job = _Job(lambda tx: operation(tx, *args, **kwargs), asyncio.get_running_loop())
        self._writer.submit(job)
        return await job.future

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        if self._closed:
            raise StoreError(_CLOSED)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, lambda tx: operation(tx, *args, **kwargs))

    async def glance(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        try:
            return self._glances.read(lambda tx: operation(tx, *args, **kwargs))
        except NotAtOnceError:
            return await self.read(operation, *args, **kwargs)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """See :class:`Engine`. The log cannot be cut shorter while it lasts."""
        with ThreadPoolExecutor(1, thread_name_prefix="store-snapshot") as thread:
            loop = asyncio.get_running_loop()
            try:
                snapshot = await loop.run_in_executor(thread, _SqliteSnapshot, self._path, thread)
            except sqlite3.Error as error:
                raise translated(error, self._path) from error
            try:
                yield snapshot
            finally:
                await loop.run_in_executor(thread, snapshot.close)

    async def forget_deleted(self) -> None:
        """See :class:`Engine`. The log is emptied once no reader needs it."""
        self._writer.forget_deleted()
        await self.write(_nothing)

    async def end_sessions(self, host: str, process: int) -> None:
        """See :class:`Engine`. The locks of a dead process are gone; one that was stopped cannot lose its."""

    async def vacuum(self) -> None:
        """See :class:`Engine`. Writes wait for it."""
        await asyncio.to_thread(vacuum, self._path)

    @property
    def measures(self) -> Measures:
        """See :class:`Engine`."""
        self._writer.measures.waiting = self._writer.waiting
        return self._writer.measures

    @property
    def trouble(self) -> str | None:
        """See :class:`Engine`. A file is never away: what is wrong with it fails the call."""
        return None

    async def size(self) -> int:
        """See :class:`Engine`."""
        return await asyncio.to_thread(size_of, self._path)

    async def close(self) -> None:
        """See :class:`Engine`."""
        self._closed = True
        self._glances.close()
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._connections:
            connection.close()
        await asyncio.to_thread(self._writer.close)

    def _read(self, start: Start[T]) -> T:
        try:
            return run_reading(self._reader(), start)
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect_reader(self._path)
            self._connections.append(connection)
        return connection


class _SqliteSnapshot:
    """A connection of its own, in one transaction; used by one thread."""

    def __init__(self, path: Path, thread: ThreadPoolExecutor) -> None:
        self._path = path
        self._thread = thread
        self._connection = connect_reader(path)
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # the state is that of the first read

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Snapshot`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._read, lambda tx: operation(tx, *args, **kwargs))

    def _read(self, start: Start[T]) -> T:
        try:
            return drive(start(SqliteTransaction(self._connection)))
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def close(self) -> None:
        self._connection.close()


class _Job(Generic[T]):
    """An operation that waits for the writer, and where its outcome goes."""

    def __init__(self, start: Start[T], loop: asyncio.AbstractEventLoop) -> None:
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
        self._closing = threading.Lock()
        self._checkpoints = Checkpoints(path, connect(path))
        self._to_forget = False
        self.measures = Measures()

    @property
    def waiting(self) -> int:
        """Operations that are in the queue."""
        return self._waiting.qsize()

    def submit(self, job: _Job[Any]) -> None:
        with self._closing:  # nothing comes behind the end of the queue, where it would wait for ever
            if not self._closed:
                self._waiting.put(job)
                return
        raise StoreError(_CLOSED)

    def forget_deleted(self) -> None:
        self._to_forget = True

    def close(self) -> None:
        with self._closing:
            self._closed = True
            self._waiting.put(None)
        self.join()

    def run(self) -> None:
        ended = False
        while not ended:
            try:
                first = self._waiting.get(timeout=self._checkpoints.wait)
            except queue.Empty:
                self._checkpoints.committed(self._connection)
                continue
            if first is None:
                break
            group, ended = self._group(first)
            self._run_group(group)
            if self._to_forget:
                self._to_forget = False
                self._checkpoints.forget()
            self._checkpoints.committed(self._connection)
        self._checkpoints.close()
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
            if len(group) > 1 and code_of(error) not in LOCKED:  # alone, those that are not to blame may succeed
                for job in group:
                    self._run_group([job])
                return
            failure = translated(error, self._path)
            self.measures.failed(failure)
            for job in group:
                job.outcome = failure
        except BaseException as error:
            for job in group:
                job.outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            group[0].loop.call_soon_threadsafe(_deliver, group)

    def _commit(self, group: list[_Job[Any]]) -> None:
        connection = self._connection
        transaction = SqliteTransaction(connection)
        began, changes = time.perf_counter(), connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in group:
                connection.execute("SAVEPOINT operation")
                try:
                    job.outcome = drive(job.start(transaction))
                except sqlite3.IntegrityError as error:
                    job.outcome = translated(error, self._path)
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


async def _nothing(_: Transaction) -> None:
    """A commit of nothing, after which the writer looks at the log."""


def _deliver(group: list[_Job[Any]]) -> None:
    for job in group:
        job.deliver()

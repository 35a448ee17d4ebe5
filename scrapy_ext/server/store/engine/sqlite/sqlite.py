"""SQLite engine: a file in WAL mode, with one writer thread and several reader threads.

A transaction never suspends, so that a thread runs operations as plain calls (:func:`drive`). The writer takes all
operations that were queued during the last sync and commits them together, each in its own savepoint: one slow sync
serves many callers, and a failed operation does not affect the others. Several processes may share the file. Each
commit takes SQLite's write lock (``BEGIN IMMEDIATE``) before its first read, so that ``FOR UPDATE`` has no further
effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from scrapy_ext.compatibility import sqlite
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.engine.interface import (
    Measures,
    Operation,
    P,
    SeveralStatements,
    Snapshot,
    Space,
    Transaction,
    pause_after,
)
from scrapy_ext.server.store.engine.sqlite.checkpoints import Checkpoints
from scrapy_ext.server.store.engine.sqlite.file import (
    LOCKED,
    connect,
    connect_reader,
    open_writer,
    size_of,
    translated,
    vacuum,
)
from scrapy_ext.server.store.engine.sqlite.reader_threads import ReaderThreads
from scrapy_ext.server.store.engine.sqlite.space import free_bytes, is_returnable, return_pages
from scrapy_ext.server.store.engine.sqlite.transaction import (
    OneStatement,
    SqliteTransaction,
    Start,
    drive,
    run_reading,
)
from scrapy_ext.telemetry.spans import inner_span

T = TypeVar("T")

#: Maximum operations per commit.
_MAX_GROUP: Final = 128
_READERS: Final = 4
#: Seconds after which an inline read is aborted, and SQLite's steps between two checks: some tens of microseconds.
_INLINE_SECONDS: Final = 0.001
_INLINE_STEPS: Final = 1000
#: Seconds between two looks at a log that is too long for a return of space, and until that is given up.
_LOG_WAIT: Final = 1.0
_LONGEST_LOG_WAIT: Final = 30.0
_SPAN: Final = {"db.system.name": "sqlite"}
_CLOSED: Final = "The store is closed. The server is shutting down; try again when it is back."


class NotInlineError(Exception):
    """The read must run in a thread."""


class InlineReader:
    """Connection for short reads in the event loop's own thread.

    Passing a read to another thread takes several times as long as a look-up by key. An inline read blocks the loop
    only briefly: it waits for no lock, is aborted after a millisecond, and reads a bounded number of bytes (see
    :class:`Engine`). A read that is refused or aborted runs again in a thread.
    """

    def __init__(self, path: Path) -> None:
        self._connection = connect_reader(path, wait=0)
        self._connection.set_progress_handler(self._is_late, _INLINE_STEPS)
        self._until = 0.0
        self._closed = False
        #: Operations of more than one statement, which need a transaction; its begin and end take half of a look-up.
        self._multi_statement: weakref.WeakSet[Operation[..., Any]] = weakref.WeakSet()

    def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read-only operation; raise :class:`NotInlineError`."""
        self._until = time.perf_counter() + _INLINE_SECONDS
        try:
            if operation not in self._multi_statement:
                try:
                    return drive(operation(OneStatement(self._connection), *args, **kwargs))
                except SeveralStatements:
                    self._multi_statement.add(operation)
            return run_reading(self._connection, lambda tx: operation(tx, *args, **kwargs))
        # Other errors than a lock or the time limit occur in the thread again.
        except sqlite3.Error:
            self._until = inf  # a rollback takes steps, too
            if not self._closed and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise NotInlineError from None

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    def _is_late(self) -> bool:
        return time.perf_counter() > self._until


class SqliteEngine:
    """The engine of a database file, opened by :meth:`open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, inline: InlineReader) -> None:
        self._path = path
        self._inline = inline
        self._writer = _Writer(path, connection)
        self._writer.start()
        self._readers = ReaderThreads(_READERS)
        self._closed = False
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []

    @classmethod
    async def open(cls, path: Path) -> SqliteEngine:
        """Open or create the file; raise :class:`StoreError`."""
        return cls(path, *await asyncio.to_thread(lambda: (open_writer(path), InlineReader(path))))

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        job = _Job(lambda tx: operation(tx, *args, **kwargs), asyncio.get_running_loop())
        with inner_span("commit", _SPAN):
            self._writer.submit(job)
            return await job.future

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise StoreError(_CLOSED)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, lambda tx: operation(tx, *args, **kwargs))

    async def read_inline(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return self._inline.read(operation, *args, **kwargs)
        except NotInlineError:
            return await self.read(operation, *args, **kwargs)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """The log is not shortened meanwhile."""
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
        """The log is emptied once no reader needs it."""
        self._writer.forget_deleted()
        await self.write(_nothing)

    async def return_space(self) -> int:
        """While the log is long, as during a backup, this waits for some time, and then ends."""
        returned, until = 0, time.monotonic() + _LONGEST_LOG_WAIT
        if not await self._of_reader(is_returnable):
            return returned
        while True:
            began = time.monotonic()
            returning = self._writer.between_commits(partial(return_pages, path=self._path))
            await self.write(_nothing)
            size = await asyncio.wrap_future(returning)
            if size is None and time.monotonic() < until:  # the log is long
                await asyncio.sleep(_LOG_WAIT)
                continue
            if not size:
                await self.forget_deleted()  # the file shrinks when the log is written back
                return returned
            returned, until = returned + size, time.monotonic() + _LONGEST_LOG_WAIT
            await asyncio.sleep(pause_after(time.monotonic() - began, size))

    async def space(self) -> Space:
        return Space(await self.size(), await self._of_reader(free_bytes))

    async def end_sessions(self, host: str, process: int) -> None:
        """The locks of a dead process are released already; those of a stopped one cannot be released."""

    async def vacuum(self) -> None:
        await asyncio.to_thread(vacuum, self._path)

    @property
    def measures(self) -> Measures:
        self._writer.measures.waiting = self._writer.waiting
        return self._writer.measures

    @property
    def trouble(self) -> str | None:
        """Always None: an unusable file fails each call."""
        return None

    async def size(self) -> int:
        return await asyncio.to_thread(size_of, self._path)

    async def close(self) -> None:
        self._closed = True
        self._inline.close()
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._connections:
            connection.close()
        await asyncio.to_thread(self._writer.close)

    async def _of_reader(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            try:
                return work(self._reader())
            except sqlite3.Error as error:
                raise translated(error, self._path) from error

        if self._closed:
            raise StoreError(_CLOSED)
        return await asyncio.get_running_loop().run_in_executor(self._readers, run)

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
    """One transaction of a connection that one thread uses."""

    def __init__(self, path: Path, thread: ThreadPoolExecutor) -> None:
        self._path = path
        self._thread = thread
        self._connection = connect_reader(path)
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # the first read determines the state

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
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
    """A queued operation, and its result or failure."""

    def __init__(self, start: Start[T], loop: asyncio.AbstractEventLoop) -> None:
        self.start = start
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.result: T
        self.failure: BaseException | None = None

    def report(self) -> None:
        if self.future.done():  # its caller was cancelled
            return
        if self.failure is not None:
            self.future.set_exception(self.failure)
        else:
            self.future.set_result(self.result)


class _Writer(threading.Thread):
    """Thread with the writing connection."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(name="store-writer", daemon=True)
        self._path = path
        self._connection = connection
        self._waiting: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._checkpoints = Checkpoints(path, connect(path))
        self._to_forget = False
        self._chores: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.measures = Measures()

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def submit(self, job: _Job[Any]) -> None:
        with self._closing:  # an operation behind the end of the queue would never run
            if not self._closed:
                self._waiting.put(job)
                return
        raise StoreError(_CLOSED)

    def forget_deleted(self) -> None:
        self._to_forget = True

    def between_commits(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Call ``work`` with the connection after the next commit."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work(self._connection))
            except sqlite3.Error as error:
                future.set_exception(translated(error, self._path))
            except BaseException as error:
                future.set_exception(error)

        self._chores.put(run)
        return future

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
                self._checkpoints.rested(self._connection)
                continue
            if first is None:
                break
            group, ended = self._group(first)
            self._run_group(group)
            if self._to_forget:
                self._to_forget = False
                self._checkpoints.forget()
            while not self._chores.empty():
                self._chores.get()()
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
            # One by one, the operations that did not cause the error succeed.
            if len(group) > 1 and sqlite.code_of(error) not in LOCKED:
                for job in group:
                    self._run_group([job])
                return
            failure = translated(error, self._path)
            self.measures.failed(failure)
            for job in group:
                job.failure = failure
        except BaseException as error:
            for job in group:
                job.failure = error
        with contextlib.suppress(RuntimeError):  # the loop of the callers has ended
            group[0].loop.call_soon_threadsafe(_report, group)

    def _commit(self, group: list[_Job[Any]]) -> None:
        connection = self._connection
        transaction = SqliteTransaction(connection)
        began, changes = time.perf_counter(), connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in group:
                connection.execute("SAVEPOINT operation")
                try:
                    job.result, job.failure = drive(job.start(transaction)), None
                except sqlite3.IntegrityError as error:
                    job.failure = translated(error, self._path)
                    connection.execute("ROLLBACK TO operation")
                except sqlite3.Error:
                    raise
                except Exception as error:
                    job.failure = error
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
    """Cause a commit, after which the writer checks the log."""


def _report(group: list[_Job[Any]]) -> None:
    for job in group:
        job.report()

"""PostgreSQL behind the seam: pools of connections, in a thread and an event loop of their own.

The thread keeps a transaction, and the locks it holds, from waiting for whatever else the server's loop has to do,
and the server's loop from waiting while an operation unpacks what it has read.

Writes run at READ COMMITTED, where ``FOR UPDATE`` reads what others have just committed; reads at REPEATABLE READ,
in which several statements see one state. What a transaction came to is always known:

- One that the database rolled back (a deadlock, a serialization failure) runs again.
- One whose connection broke before its COMMIT was sent is rolled back too, and runs again.
- One whose connection broke after that has left a mark or not (``postgresql_marks``): it runs again when it was rolled
  back, and its result stands when it was committed. So no operation needs to be idempotent.

A database that is away is waited for, but not for long; then the caller is told to try again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, TypeVar

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreBusyError, StoreError, StoreUncertainError
from scrapy_ext.server.store.engine.interface import Operation, P, Snapshot, Transaction
from scrapy_ext.server.store.engine.measures import Measures
from scrapy_ext.server.store.engine.postgresql.connection import application_name, connect, new_pool
from scrapy_ext.server.store.engine.postgresql.errors import DATABASE_ERRORS, Failure, failure_of, translated
from scrapy_ext.server.store.engine.postgresql.loop_thread import LoopThread
from scrapy_ext.server.store.engine.postgresql.marks import SET_MARK, Mark, is_set, new_mark
from scrapy_ext.server.store.engine.postgresql.outage import Outage
from scrapy_ext.server.store.engine.postgresql.pool import Pool
from scrapy_ext.server.store.engine.postgresql.pool_sizes import SERVER, Line
from scrapy_ext.server.store.engine.postgresql.transaction import (
    UNHURRIED_SECONDS,
    OneStatement,
    PostgresqlTransaction,
    SeveralStatements,
)

T = TypeVar("T")

#: How long a database that is away, or that rolls an operation back again and again, is tried.
PATIENCE_SECONDS: Final = 15.0
_PATIENCE_AT_START: Final = 3.0
_LONGEST_PAUSE: Final = 0.5

_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_Start = Callable[[Transaction], Coroutine[Any, Any, T]]


class PostgresqlEngine:
    """A database of a PostgreSQL server. Reads have connections of their own, so that they do not wait while all
    writes wait for one lock."""

    def __init__(self, url: DatabaseUrl, line: Line, loop: LoopThread, writers: Pool, readers: Pool) -> None:
        self._url = url
        self._patience = line.patience
        #: How long a free connection is waited for.
        self._wait = line.lock
        self._loop = loop
        self._writers = writers
        self._readers = readers
        #: The reading operations that are more than one statement.
        self._several: weakref.WeakSet[Operation[..., Any]] = weakref.WeakSet()
        self._closed = False
        self._measures = Measures()
        self._outage = Outage(url, quiet=line.quiet)

    @classmethod
    async def open(cls, url: DatabaseUrl, line: Line = SERVER) -> PostgresqlEngine:
        """Connect, and check what is there; raises :class:`StoreError`."""
        loop = LoopThread("store-postgresql")
        try:
            pools = await loop.run(_patiently(url, lambda: _pools(url, line), _PATIENCE_AT_START))
        except BaseException:
            await loop.close()
            raise
        return cls(url, line, loop, *pools)

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        self._check_open()
        return await self._loop.run(self._write(lambda tx: operation(tx, *args, **kwargs)))

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`."""
        self._check_open()
        return await self._loop.run(self._read(operation, lambda tx: operation(tx, *args, **kwargs)))

    async def glance(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Engine`. The way to the database is no shorter."""
        return await self.read(operation, *args, **kwargs)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """See :class:`Engine`. Rows that are deleted meanwhile cannot be cleaned up before it ends."""
        self._check_open()
        snapshot = _PostgresqlSnapshot(self._url, self._loop)
        await snapshot.begin()
        try:
            yield snapshot
        finally:
            await snapshot.end()

    async def forget_deleted(self) -> None:
        """See :class:`Engine`. Dead rows stay until the database's own vacuum, and in its log until that is reused."""

    async def end_sessions(self, host: str, process: int) -> None:
        """See :class:`Engine`. The server's own limits do not end one that waits for the rest of a command."""
        await self.write(_end_sessions, application_name(host, process))

    async def vacuum(self) -> None:
        """See :class:`Engine`. Nobody waits for it."""
        self._check_open()
        await self._loop.run(_patiently(self._url, lambda: _vacuum(self._url)))

    @property
    def measures(self) -> Measures:
        """See :class:`Engine`. Each write is a commit of its own."""
        return self._measures

    @property
    def trouble(self) -> str | None:
        """See :class:`Engine`."""
        return self._outage.cause

    async def size(self) -> int:
        """See :class:`Engine`."""
        return await self.read(_size)

    async def close(self) -> None:
        """See :class:`Engine`."""
        if not self._closed:
            self._closed = True
            await self._loop.run(_close(self._writers, self._readers))
            await self._loop.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed. The server is shutting down; try again when it is back.")

    # ── in the engine's thread ──

    async def _read(self, operation: Operation[..., T], start: _Start[T]) -> T:
        """Most reads are one statement, which needs no transaction around it: a third of the ways to the database.
        Those that turn out to need more are run again, and from then on in a transaction."""

        async def attempt() -> T:
            async with self._connection(self._readers) as connection:
                if operation not in self._several:
                    try:
                        return await start(OneStatement(connection))
                    except SeveralStatements:
                        self._several.add(operation)
                await connection.execute(_BEGIN_READ)
                result = await start(PostgresqlTransaction(connection))
                await connection.execute("COMMIT")
                return result

        return await _patiently(self._url, attempt, self._patience, self._outage)

    async def _write(self, start: _Start[T]) -> T:
        began, changed = time.perf_counter(), 0

        async def attempt() -> T:
            nonlocal changed
            commit = _Commit()
            result: T
            try:
                async with self._connection(self._writers) as connection:
                    commit.mark = new_mark(connection)
                    transaction = PostgresqlTransaction(connection, commit.mark)
                    await connection.execute(_BEGIN_WRITE)
                    result = await start(transaction)
                    changed = transaction.changed
                    await commit.run(connection, transaction)
            except DATABASE_ERRORS as error:
                self._outage.failed(error)
                if not (commit.is_sent and failure_of(error) is Failure.LOST):
                    raise
                if not await self._is_committed(commit):
                    raise
            return result

        self._measures.waiting += 1
        try:
            result = await _patiently(self._url, attempt, self._patience, self._outage)
        except StoreError as error:
            self._measures.failures += 1
            self._measures.failed(error)
            raise
        finally:
            self._measures.waiting -= 1
        self._measures.committed(1, changed, time.perf_counter() - began)
        return result

    @contextlib.asynccontextmanager
    async def _connection(self, pool: Pool) -> AsyncIterator[Any]:
        try:
            connection = await pool.take(self._wait)
        except TimeoutError as error:
            raise StoreBusyError(
                f"{self._url}: none of {pool.size} connections was free for {self._wait:.0f} s. Try again."
            ) from error
        try:
            yield connection
        except BaseException as error:
            with contextlib.suppress(*DATABASE_ERRORS):
                if failure_of(error) is Failure.LOST:
                    connection.terminate()  # whatever the driver thinks of it; its transaction ends with it
                elif connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
            raise
        finally:
            pool.give_back(connection)

    async def _is_committed(self, commit: _Commit) -> bool:
        """What became of a transaction whose COMMIT was sent and not answered."""
        mark = commit.mark
        assert mark is not None  # noqa: S101 - a transaction that was begun has one

        async def look() -> bool:
            async with self._connection(self._writers) as connection:
                return await is_set(connection, mark)

        try:
            return await _patiently(self._url, look, self._patience, self._outage)
        except StoreError as error:
            raise self._uncertain() from error

    def _uncertain(self) -> StoreUncertainError:
        return StoreUncertainError(
            f"{self._url} went away while it was committing, and cannot tell whether it did. "
            "What was sent may be stored or not: look, or send it again if that does no harm."
        )


class _Commit:
    """The end of a transaction: whether it was asked for, and the mark by which its outcome can be found out."""

    def __init__(self) -> None:
        self.is_sent = False
        self.mark: Mark | None = None

    async def run(self, connection: Any, transaction: PostgresqlTransaction) -> None:
        if transaction.unset_mark is not None:
            await connection.execute(SET_MARK, *transaction.unset_mark)
        self.is_sent = True
        if await connection.execute("COMMIT") != "COMMIT":  # a failed transaction is rolled back without an error
            raise RuntimeError("a store operation went on after an error of the database")


class _PostgresqlSnapshot:
    """A connection of its own, in one transaction."""

    def __init__(self, url: DatabaseUrl, loop: LoopThread) -> None:
        self._url = url
        self._loop = loop
        self._connection: Any = None

    async def begin(self) -> None:
        async def begin() -> None:
            self._connection = await connect(self._url)
            await self._connection.execute(_BEGIN_READ)
            await self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            await self._connection.execute("SELECT 1")  # the state is that of the first read

        await self._loop.run(_patiently(self._url, begin))

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """See :class:`Snapshot`."""

        async def run() -> T:
            try:
                return await operation(PostgresqlTransaction(self._connection), *args, **kwargs)
            except DATABASE_ERRORS as error:
                raise translated(error, self._url) from error

        return await self._loop.run(run())

    async def end(self) -> None:
        async def end() -> None:
            with contextlib.suppress(*DATABASE_ERRORS):
                await self._connection.close(timeout=5)

        await self._loop.run(end())


async def _patiently(
    url: DatabaseUrl,
    attempt: Callable[[], Coroutine[Any, Any, T]],
    seconds: float | None = None,
    outage: Outage | None = None,
) -> T:
    """The result of an attempt, made again while that can help; raises :class:`StoreError`."""
    deadline = time.monotonic() + (PATIENCE_SECONDS if seconds is None else seconds)
    for number in itertools.count():
        began = time.monotonic()
        try:
            result = await attempt()
        except DATABASE_ERRORS as error:
            if outage is not None:
                outage.failed(error)
            if failure_of(error) is Failure.FINAL or time.monotonic() > deadline:
                raise translated(error, url) from error
        else:
            if outage is not None and outage.cause is not None:
                outage.worked(began)
            return result
        await asyncio.sleep(random.uniform(0, min(0.005 * 2**number, _LONGEST_PAUSE)))
    raise AssertionError


async def _pools(url: DatabaseUrl, line: Line) -> tuple[Pool, Pool]:
    readers = await new_pool(url, line.readers, line, default_transaction_read_only="on")
    return await new_pool(url, line.writers, line), readers


async def _close(*pools: Pool) -> None:
    for pool in pools:
        await pool.close(PATIENCE_SECONDS)


async def _size(tx: Transaction) -> int:
    row = await tx.fetchrow("SELECT pg_database_size(current_database())")
    return row[0] if row else 0


async def _vacuum(url: DatabaseUrl) -> None:
    connection = await connect(url)
    try:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("VACUUM (ANALYZE)", timeout=UNHURRIED_SECONDS)
    finally:
        await connection.close(timeout=5)


async def _end_sessions(tx: Transaction, application: str) -> None:
    await tx.fetch(
        """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()""",
        application,
    )

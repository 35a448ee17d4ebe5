"""PostgreSQL engine: connection pools in a thread with an event loop of its own.

Because of the thread, a transaction with its locks does not wait for other work of the server's loop, nor the server's
loop for an operation that unpacks its rows. Short reads of one statement run in the server's loop (``inline_reads``).

Writes run at READ COMMITTED, where ``FOR UPDATE`` reads what others have just committed; reads at REPEATABLE READ,
where several statements see one state. The outcome of a transaction is always known:

- One that the database rolled back (a deadlock, a serialization failure) runs again.
- One whose connection was lost before its COMMIT was sent is rolled back too, and runs again.
- For one whose connection was lost later, the mark of its commit is looked up (``commit_marks``): it runs again if it
  was rolled back, and its result is returned if it was committed. So no operation needs to be idempotent.
- One that ends in an error of its own, such as a refusal because of what it has read, is rolled back, and its mark is
  committed in its place. So the error is raised only by the primary, as results are: what an old primary has may be
  out of date, and the operation runs again on the new one.

Calls wait a limited time for an unavailable database, and then raise ``StoreBusyError``.

A COMMIT is never cancelled: PostgreSQL would stop waiting for a synchronous standby, and return as if it had it. The
caller of one that is not answered is refused, and the commit ends when the standby is there, or when another server has
become the primary. A task of the engine (``_watch``) looks for that while calls take long.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.connection_limits import SERVER, ConnectionLimits
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError, StoreError, StoreUncertainError
from scrapy_ext.server.store.engine.interface import (
    Measures,
    Operation,
    P,
    SeveralStatements,
    Snapshot,
    Space,
    Transaction,
)
from scrapy_ext.server.store.engine.postgresql import retries
from scrapy_ext.server.store.engine.postgresql.commit_marks import SET_MARK, Mark, check_replicated, is_set, new_mark
from scrapy_ext.server.store.engine.postgresql.connection import (
    application_name,
    connected,
    look_for_primary,
    new_pool,
)
from scrapy_ext.server.store.engine.postgresql.errors import (
    DATABASE_ERRORS,
    Availability,
    Failure,
    failure_of,
    translated,
)
from scrapy_ext.server.store.engine.postgresql.inline_reads import InlineReads, LeftToThreadError
from scrapy_ext.server.store.engine.postgresql.loop_thread import Caller, LoopThread
from scrapy_ext.server.store.engine.postgresql.maintenance import (
    database_size,
    database_space,
    end_sessions_of,
    vacuum_database,
)
from scrapy_ext.server.store.engine.postgresql.pool import NoFreeConnectionError, Pool
from scrapy_ext.server.store.engine.postgresql.primary import primary_of
from scrapy_ext.server.store.engine.postgresql.snapshot import BEGIN_READ, PostgresqlSnapshot
from scrapy_ext.server.store.engine.postgresql.transaction import (
    MAINTENANCE_SECONDS,
    OneStatement,
    PostgresqlTransaction,
)
from scrapy_ext.telemetry.spans import inner_span

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")

_RETRY_AT_START: Final = 3.0
#: Seconds between two looks at the calls that are under way.
_WATCH: Final = 1.0
#: Seconds after which a call is slow: another server may have become the primary.
_SLOW: Final = 3.0
#: Seconds between two searches for another primary: while a call is slow, and if the address has several servers.
_SEARCH_SLOW: Final = 3.0
_SEARCH: Final = 10.0

_SPAN: Final = {"db.system.name": "postgresql"}
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

_READ_ONLY: Final = {"default_transaction_read_only": "on"}

_Start = Callable[[Transaction], Coroutine[Any, Any, T]]


class PostgresqlEngine:
    """The engine of a PostgreSQL database, opened by :meth:`open`.

    Reads have a pool of their own, so that they are possible while all writes wait for one lock.
    """

    def __init__(
        self, url: DatabaseUrl, limits: ConnectionLimits, loop: LoopThread, writers: Pool, readers: Pool
    ) -> None:
        self._url = url
        self._retry_seconds = limits.retry
        self._primary = primary_of(url)
        self._inline: InlineReads | None = None
        if limits.inline:
            retry = retries.RETRY_SECONDS if limits.retry is None else limits.retry
            make = partial(connected, url, limits, _READ_ONLY)
            self._inline = InlineReads(make, limits.inline, retry, self._primary)
        #: Maximum seconds until a connection is free.
        self._wait = limits.lock
        self._loop = loop
        self._writers = writers
        self._readers = readers
        #: Read operations of more than one statement.
        self._multi_statement: weakref.WeakSet[Operation[..., Any]] = weakref.WeakSet()
        self._closed = False
        self._measures = Measures()
        self._availability = Availability(url, quiet=limits.quiet)
        #: Commits that were sent and not answered yet.
        self._commits: set[_Commit] = set()

    @classmethod
    async def open(cls, url: DatabaseUrl, limits: ConnectionLimits = SERVER) -> PostgresqlEngine:
        """Connect, and check the server; raise :class:`StoreError`."""
        loop = LoopThread("store-postgresql")
        try:
            pools = await loop.run(retries.retried(url, lambda: _pools(url, limits), _RETRY_AT_START))
        except BaseException:
            await loop.close()
            raise
        engine = cls(url, limits, loop, *pools)
        loop.start(engine._watch())
        return engine

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_open()
        with inner_span("commit", _SPAN):
            caller = Caller()
            return await self._loop.run(self._write(lambda tx: operation(tx, *args, **kwargs), caller), caller)

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_open()
        return await self._loop.run(self._read(operation, lambda tx: operation(tx, *args, **kwargs)))

    async def read_inline(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_open()
        if self._inline is None or operation in self._multi_statement or self._availability.cause is not None:
            return await self.read(operation, *args, **kwargs)
        try:
            return await self._inline.read(lambda tx: operation(tx, *args, **kwargs))
        except SeveralStatements:
            self._multi_statement.add(operation)
        except LeftToThreadError:
            pass
        except DATABASE_ERRORS as error:
            self._availability.failed(error)
            raise translated(error, self._url) from error
        return await self.read(operation, *args, **kwargs)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Rows that are deleted meanwhile stay on disk until its end."""
        self._check_open()
        snapshot = PostgresqlSnapshot(self._url, self._loop)
        try:
            await snapshot.begin()
            yield snapshot
        finally:
            await snapshot.end()

    async def forget_deleted(self) -> None:
        """Dead rows stay until the next vacuum of the database, and in its log until that is reused."""

    async def return_space(self) -> int:
        """Autovacuum makes the space of dead rows usable again, and cuts free pages off the ends of its files."""
        return 0

    async def space(self) -> Space:
        return await self.read(database_space)

    async def end_sessions(self, host: str, process: int) -> None:
        """The timeouts of the server do not end a session that waits for the rest of a command."""
        await self.write(end_sessions_of, application_name(host, process))

    async def vacuum(self) -> None:
        """Nobody waits for it."""
        self._check_open()
        await self._loop.run(retries.retried(self._url, lambda: vacuum_database(self._url)))

    @property
    def measures(self) -> Measures:
        return self._measures

    @property
    def trouble(self) -> str | None:
        return self._availability.trouble

    async def size(self) -> int:
        return await self.read(database_size)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._inline is not None:
                await self._inline.close()
            await self._loop.run(_close(self._writers, self._readers))
            await self._loop.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed. The server is shutting down; try again when it is back.")

    # ── in the engine's thread ──

    async def _read(self, operation: Operation[..., T], start: _Start[T]) -> T:
        """Run a read, without a transaction if it is one statement: that needs a third of the round trips."""

        async def attempt() -> T:
            async with self._connection(self._readers) as connection:
                if operation not in self._multi_statement:
                    try:
                        return await start(OneStatement(connection))
                    except SeveralStatements:
                        self._multi_statement.add(operation)
                await connection.execute(BEGIN_READ)
                result = await start(PostgresqlTransaction(connection))
                await connection.execute("COMMIT")
                return result

        return await retries.retried(self._url, attempt, self._retry_seconds, self._availability)

    async def _watch(self) -> None:
        """Leave a server that is no longer the primary, and answer those whose commits wait for a standby."""
        while True:
            await asyncio.sleep(_WATCH)
            pools: list[Pool | InlineReads] = [self._writers, self._readers]
            if self._inline is not None:
                pools.append(self._inline)
            is_slow = any(pool.longest_use() > _SLOW for pool in pools)
            if is_slow or self._primary.has_standbys:
                await look_for_primary(self._url, _SEARCH_SLOW if is_slow else _SEARCH)
                for pool in pools:
                    pool.leave_old_primary()
            now = time.monotonic()
            longest = max((now - commit.sent for commit in self._commits), default=0.0)
            self._availability.commits_wait(longest if longest > _SLOW else 0.0)
            for commit in self._commits:
                if now - commit.sent > retries.RETRY_SECONDS:
                    commit.caller.refuse(self._unanswered(commit))

    async def _write(self, start: _Start[T], caller: Caller) -> T:
        began, changed = time.perf_counter(), 0

        async def attempt() -> T:
            nonlocal changed
            commit = _Commit(caller)
            result: T | _Refused
            try:
                async with self._connection(self._writers) as connection:
                    commit.mark = new_mark(connection)
                    transaction = PostgresqlTransaction(connection, commit.mark)
                    await connection.execute(_BEGIN_WRITE)
                    try:
                        result = await start(transaction)
                    except DATABASE_ERRORS:
                        raise
                    except Exception as error:
                        result = _Refused(error)
                        commit.is_refusal = True
                        await connection.execute(f"ROLLBACK; {_BEGIN_WRITE}")
                        transaction = PostgresqlTransaction(connection, commit.mark)
                    changed = transaction.changed
                    self._commits.add(commit)
                    await commit.run(connection, transaction)
            except DATABASE_ERRORS as error:
                self._availability.failed(error)
                if not (commit.is_sent and failure_of(error) is Failure.LOST):
                    raise
                if not await self._is_committed(commit):
                    raise
            finally:
                self._commits.discard(commit)
            if isinstance(result, _Refused):
                raise result.error
            return result

        self._measures.waiting += 1
        try:
            result = await retries.retried(self._url, attempt, self._retry_seconds, self._availability)
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
            connection = await pool.acquire(self._wait)
        except NoFreeConnectionError as error:
            raise StoreBusyError(
                f"{self._url}: none of {pool.size} connections was free for {self._wait:.0f} s. Try again."
            ) from error
        try:
            yield connection
        except BaseException as error:
            with contextlib.suppress(*DATABASE_ERRORS):
                if failure_of(error) is Failure.LOST:
                    self._primary.lost()
                    connection.terminate()  # the driver may regard it as usable
                elif connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
            raise
        finally:
            pool.release(connection)

    async def _is_committed(self, commit: _Commit) -> bool:
        """Return true when a transaction was committed whose COMMIT was sent and not answered."""
        mark = commit.mark
        assert mark is not None  # noqa: S101 - a transaction that was begun has one

        async def look() -> bool:
            async with self._connection(self._writers) as connection:
                return await is_set(connection, mark)

        try:
            return await retries.retried(self._url, look, self._retry_seconds, self._availability)
        except StoreError as error:
            raise self._unanswered(commit) from error

    def _unanswered(self, commit: _Commit) -> StoreError:
        if commit.is_refusal:
            return StoreAwayError(
                f"{self._url} could not be reached to confirm that it refuses a write: nothing was stored. Try again."
            )
        return StoreUncertainError(
            f"{self._url} could not be reached during a commit: what was sent may be stored or not. "
            "Read the data before you repeat the write, unless that does no harm."
        )


class _Refused(NamedTuple):
    """The outcome of an operation that raised an error of its own."""

    error: Exception


class _Commit:
    """The commit of a transaction: when it was sent, its mark, and who waits for it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.is_sent = False
        #: Whether it stores its mark alone, because the operation has raised an error of its own.
        self.is_refusal = False
        self.sent = math.inf
        self.mark: Mark | None = None

    async def run(self, connection: asyncpg.Connection, transaction: PostgresqlTransaction) -> None:
        if transaction.unset_mark is not None:
            await connection.execute(SET_MARK, *transaction.unset_mark)
        self.is_sent = True
        self.sent = time.monotonic()
        connection.warning = None
        # PostgreSQL rolls a failed transaction back without an error.
        if await connection.execute("COMMIT", timeout=MAINTENANCE_SECONDS) != "COMMIT":
            raise RuntimeError("a store operation continued after an error of the database")
        check_replicated(connection)


async def _pools(url: DatabaseUrl, limits: ConnectionLimits) -> tuple[Pool, Pool]:
    readers = await new_pool(url, limits.readers - limits.inline, limits, **_READ_ONLY)
    return await new_pool(url, limits.writers, limits), readers


async def _close(*pools: Pool) -> None:
    for pool in pools:
        await pool.close(retries.RETRY_SECONDS)

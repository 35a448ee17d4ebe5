"""The interface between stores and a database, implemented by ``sqlite`` and ``postgresql``, and the base of stores.

An operation of a store is written once, as ``async def operation(tx, ...)``, in SQL with ``$1`` placeholders that both
databases accept. Rules for every operation:

- It awaits nothing but ``tx``, and may run again from its start, so that it has no effect outside ``tx``.
- It runs in one transaction: all of it is stored, or nothing. Its result is returned after the commit.
- ``write`` returns when the data is durable (committed and synced to disk), never before.
- Several run concurrently, in this process and in others. An operation reads the rows that it decides on with
  ``SELECT … FOR UPDATE``, or leaves the decision to ``ON CONFLICT`` and ``RETURNING``; ``FOR SHARE`` locks a row that
  must not change. Rows are locked in the order of :ref:`the architecture <lock-order>`, rows of one table by key.
- No process caches contents of the database, unless a value read in the same transaction proves that they are current
  (``fingerprint_filter``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Concatenate, Final, Generic, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from scrapy_ext.server.store.engine.errors import StoreBusyError, StoreError

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]

#: Pause after a step of work in the background, by its duration: other writers keep nine tenths of the time.
_PAUSE: Final = 9
#: Bytes per second of such work: they are written twice, to the log and to the file, which other writers need, too.
_RATE: Final = 8 * 1024 * 1024
#: Upper bounds of the histogram of writes per commit.
GROUPS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


def pause_after(seconds: float, size: int = 0) -> float:
    """Return the seconds that a step of work in the background, of some duration and bytes, leaves to others."""
    return max(_PAUSE * seconds, size / _RATE)


class Measures:
    """Statistics of an engine, updated by the thread that commits. ``waiting`` is a gauge, the others are totals."""

    def __init__(self) -> None:
        #: Writes that are queued or running.
        self.waiting = 0
        #: The error of the last refused write; None since as much was written again.
        self.refusal: StoreError | None = None
        self.operations = 0
        self.rows = 0
        self.failures = 0
        self.seconds = 0.0
        self.groups = [0] * (len(GROUPS) + 1)

    def failed(self, error: Exception) -> None:
        """Record the error of a write, unless it says nothing about the next write: a busy or unavailable database."""
        if isinstance(error, StoreError) and not isinstance(error, StoreBusyError):
            self.refusal = error

    def committed(self, operations: int, rows: int, seconds: float) -> None:
        """Record a commit of some writes, and the number of changed rows."""
        self.operations += operations
        self.rows += rows
        self.seconds += seconds
        self.groups[bisect_left(GROUPS, operations)] += 1


class Space(NamedTuple):
    """Bytes of a database on disk; ``free``: bytes of these that hold nothing, None if that is not known.

    ``dead_rows``: estimated number of deleted rows whose space the database has not made free yet.
    """

    total: int
    free: int | None = None
    dead_rows: int = 0


class Transaction(Protocol):
    """The statements of an operation."""

    async def fetch_any(self, sql: str, *arguments: object, keys: Sequence[bytes]) -> list[Row]:
        """Return the rows of a query that ends in ``= ANY($n)``, where n is one more than the arguments."""

    async def fetch(self, sql: str, *arguments: object) -> list[Row]:
        """Return the rows of a query."""

    async def fetch_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Return the rows of a query that is run once for each row of arguments."""

    async def fetchrow(self, sql: str, *arguments: object) -> Row | None:
        """Return the first row of a query."""

    async def execute(self, sql: str, *arguments: object) -> int:
        """Run a statement; return the number of changed rows."""

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of arguments. The rows of an INSERT have different keys."""

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Run ``INSERT INTO … VALUES ($1, …) … RETURNING …`` for each row; return the returned rows, unordered.

        Rows with equal keys need ``ON CONFLICT DO NOTHING``.
        """

    async def time(self) -> int:
        """Return the time of the database now, in milliseconds: one clock for all servers on it."""

    async def script(self, sql: str) -> None:
        """Run the statements of a migration."""


class SeveralStatements(Exception):  # noqa: N818 - control flow, not an error
    """A read has a second statement, and needs a transaction to read one state of the data."""


async def only_row(tx: Transaction, sql: str, *arguments: object) -> Row:
    """Return the row of a statement that always has one, such as that of an aggregate."""
    row = await tx.fetchrow(sql, *arguments)
    assert row is not None, sql  # noqa: S101
    return row


Operation = Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]]


class Engine(Protocol):
    """A database. Its calls raise :class:`StoreError`."""

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that changes data; return after its commit."""

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read-only operation on one consistent state of the data."""

    async def read_inline(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read-only operation that usually reads a few rows by key, and two megabytes at most.

        It may block the event loop for that time.
        """

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Open one state of the data for many reads, while others write."""

    async def forget_deleted(self) -> None:
        """Remove deleted data from the files of the database soon, if the server can do that."""

    async def return_space(self) -> int:
        """Return free space to the file system if there is much of it, in steps that delay other writes little.

        Returns the bytes. A database that does this by itself returns 0.
        """

    async def space(self) -> Space:
        """Return the size of the database, and the part of it that is free."""

    async def end_sessions(self, host: str, process: int) -> None:
        """End the sessions of a process that is dead, or was stopped within a write, and release their locks."""

    async def vacuum(self) -> None:
        """Return the space of deleted rows to the system."""

    @property
    def measures(self) -> Measures:
        """Statistics since the start."""

    @property
    def trouble(self) -> str | None:
        """The reason why calls wait for the database; None if it is not known to be unavailable."""

    async def size(self) -> int:
        """Return the size of the database on disk, in bytes."""

    async def close(self) -> None:
        """Finish pending work and close the database."""


class Snapshot(Protocol):
    """One state of the data."""

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read-only operation; raise :class:`StoreError`."""


#: The methods of an engine that run an operation.
Call = Literal["read", "read_inline", "write"]


class EngineStore:
    """Base of the stores: an engine, and a clock in milliseconds."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock


class Method(Generic[P, T]):
    """Method of an :class:`EngineStore` that runs an operation on its engine: ``get = Method("read", get)``.

    An operation has the name of its method, unless other modules call it, too. The parameters of a method are those of
    its operation after the transaction.
    """

    def __init__(self, call: Call, operation: Operation[P, T]) -> None:
        self._call = call
        self._operation = operation

    def __get__(self, store: EngineStore, _: object) -> Callable[P, Coroutine[Any, Any, T]]:
        return partial(getattr(store._engine, self._call), self._operation)


class TimedMethod(Generic[P, T]):
    """Method of an :class:`EngineStore` that runs an operation with the time (ms) after its transaction."""

    def __init__(self, call: Call, operation: Operation[Concatenate[int, P], T]) -> None:
        self._call = call
        self._operation = operation

    def __get__(self, store: EngineStore, _: object) -> Callable[P, Coroutine[Any, Any, T]]:
        return partial(getattr(store._engine, self._call), self._operation, store._clock())

"""The seam between the stores and a database. ``sqlite`` and ``postgresql`` implement it; nothing else knows them.

A store's operation is written once, as ``async def operation(tx, ...)``, in SQL with ``$1`` placeholders that
SQLite and PostgreSQL both accept. Rules that hold for every operation:

- It awaits nothing but ``tx``, and it may be run again from its start, so that it touches nothing outside ``tx``.
- All of it is stored or none of it: it runs in one transaction, and its result is seen only after the commit.
- ``write`` returns when the data is durable (committed and synced to disk), never before.
- Several run at once, in this process and in others. What an operation decides on it reads with
  ``SELECT … FOR UPDATE``, or leaves to ``ON CONFLICT`` and ``RETURNING``; ``FOR SHARE`` holds a row that must stay
  as it is. It locks rows in the order that :ref:`the architecture <lock-order>` gives, many of one table by key.
- No process remembers what the database says, except where a value in the database, read in the transaction, proves
  that it is still so (``fingerprint_filter``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from scrapy_ext.server.store.engine.measures import Measures

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]


class Transaction(Protocol):
    """What an operation may use."""

    @property
    def sorted_runs(self) -> bool:
        """Whether large indexes of what comes in no order are worth keeping as sorted runs."""

    async def fetch_any(self, sql: str, *arguments: Any, keys: Sequence[bytes]) -> list[Row]:
        """All rows of a query that ends in ``= ANY($n)``, where n is one more than the arguments."""

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """All rows of a query."""

    async def fetchrow(self, sql: str, *arguments: Any) -> Row | None:
        """The first row of a query."""

    async def execute(self, sql: str, *arguments: Any) -> int:
        """Run a statement; returns how many rows it changed."""

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of arguments. Rows of one INSERT have different keys."""

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Run ``INSERT INTO … VALUES ($1, …) … RETURNING …`` for every row; returns what it gives, unordered.

        A row whose key is given twice needs ``ON CONFLICT DO NOTHING``.
        """

    async def script(self, sql: str) -> None:
        """Run the statements of a migration."""


Operation = Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]]


class Engine(Protocol):
    """A database."""

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that changes data; returns after its commit. Raises :class:`StoreError`."""

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that only reads, on one consistent state of the data. Raises :class:`StoreError`."""

    async def glance(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same as ``read``, for an operation that mostly finds a few rows by their keys, and never fetches more
        than two megabytes. It may hold up the event loop for as long as that takes. Raises :class:`StoreError`."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """One state of the data for many reads, whatever is written meanwhile. Raises :class:`StoreError`."""

    async def forget_deleted(self) -> None:
        """Have what was deleted leave the files of the database soon, as far as that is up to the server. Raises
        :class:`StoreError`."""

    async def end_sessions(self, host: str, process: int) -> None:
        """End the sessions of a process that is dead, or was stopped in the middle of a write, and free their locks."""

    async def vacuum(self) -> None:
        """Give the room of deleted rows back. Raises :class:`StoreError`."""

    @property
    def measures(self) -> Measures:
        """What it has done so far."""

    @property
    def trouble(self) -> str | None:
        """Why the database cannot be reached just now, while calls wait for it; None when nothing is known of that."""

    async def size(self) -> int:
        """Bytes that the database takes on disk."""

    async def close(self) -> None:
        """Finish what was begun and let go of the database."""


class Snapshot(Protocol):
    """A state of the data that lasts."""

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that only reads. Raises :class:`StoreError`."""

"""The database of the servers, whichever engine that has: what the soak asks of it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg


class Sizes(NamedTuple):
    """Bytes of a database. ``log``: those of its log beyond its limit. ``log_life``: by which log."""

    tables: int
    log: int
    log_life: str


class Database(ABC):
    """A database that is read beside its servers. Reads raise one of :data:`AWAY` while it cannot be read."""

    #: Number of times that another server took the place of the one before.
    failovers = 0

    @property
    def is_covered(self) -> bool:
        """True while what is acknowledged outlives the next harm."""
        return True

    @abstractmethod
    def start_again(self) -> None:
        """Start what is not running of it."""

    @abstractmethod
    async def query(self, sql: str) -> Sequence[Sequence[Any]]:
        """Rows of a query."""

    @abstractmethod
    async def tables(self) -> set[str]:
        """Names of its tables."""

    @abstractmethod
    async def sizes(self) -> Sizes: ...

    @abstractmethod
    def longest_file(self) -> int:
        """Bytes of the longest file."""

    @abstractmethod
    def limit_files(self, limit: int | None) -> None:
        """Bound how long (bytes) its files may grow, as a full disk would; None: no bound."""

    @abstractmethod
    def kept_logs(self) -> dict[str, str]:
        """Logs of its own processes that have ended, by file name."""

    @abstractmethod
    def remove(self) -> None: ...

    async def count(self, table: str) -> int:
        """The rows of a table."""
        return int((await self.query(f"SELECT count(*) FROM {table}"))[0][0])


def size_of(file: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return file.stat().st_size if file.exists() else 0


#: Errors of a query while the database is away. asyncpg raises its own error when a connection is lost as it is closed.
AWAY = (
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

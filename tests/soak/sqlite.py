"""The file of one server, which writes it in its own process: what kills that kills the database."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.soak.database import Database, Sizes, size_of

#: MiB of the log (``-wal``) from which SQLite writes it back, and more while it is read.
LOG_MIB = 48
_SECONDS = 20.0


class Sqlite(Database):
    """``pid``: of the server; None while there is none."""

    def __init__(self, folder: Path, pid: Callable[[], int | None]) -> None:
        self._file = folder / "platform.db"
        self._log = folder / "platform.db-wal"
        self._pid = pid

    async def query(self, sql: str) -> Sequence[Sequence[Any]]:
        return await asyncio.to_thread(self._query, sql)

    def _query(self, sql: str) -> Sequence[Sequence[Any]]:
        # Read only: the last one to close a file that it may write removes its log, under a server that starts.
        address = f"{self._file.as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, timeout=_SECONDS, uri=True)) as connection:
                return connection.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            raise ConnectionError(str(error)) from error

    async def tables(self) -> set[str]:
        return {name for (name,) in await self.query("SELECT name FROM sqlite_master WHERE type = 'table'")}

    async def sizes(self) -> Sizes:
        return Sizes(size_of(self._file), max(size_of(self._log) - LOG_MIB * 2**20, 0), "log")

    def longest_file(self) -> int:
        return max(size_of(self._file), size_of(self._log))

    def limit_files(self, limit: int | None) -> None:
        pid = self._pid()
        if pid is not None:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if limit is None else limit, hard))

    def kept_logs(self) -> dict[str, str]:
        return {}

    def start_again(self) -> None:
        """Nothing: it runs in its server."""

    def remove(self) -> None:
        """Nothing: it is in the folder of its server."""

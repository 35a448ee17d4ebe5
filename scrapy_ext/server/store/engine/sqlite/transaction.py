"""Transactions of SQLite, and the SQL of the stores in SQLite's dialect."""

from __future__ import annotations

import re
import sqlite3
import time
from bisect import bisect_left
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from scrapy_ext.server.store.engine.interface import Row, SeveralStatements, Transaction

T = TypeVar("T")

#: An operation with its arguments, without its transaction.
Start = Callable[[Transaction], Coroutine[Any, Any, T]]

#: Rows per INSERT with RETURNING.
_ROWS_PER_INSERT: Final = 128
#: Keys per query: few sizes, so that few statements are prepared.
_KEYS: Final = (2, 8, 32, 128)
#: Row locks, which other databases need, and a search that they call by another name.
_ROW_LOCK: Final = re.compile(r"\s+FOR (?:UPDATE|SHARE)(?: SKIP LOCKED)?\b")
_POSITION: Final = re.compile(r"\bposition\((\$\d+) IN (\w+)\)")


def run_reading(connection: sqlite3.Connection, start: Start[T]) -> T:
    """Run a read-only operation in its own transaction."""
    connection.execute("BEGIN")
    try:
        return drive(start(SqliteTransaction(connection)))
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run an operation, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a store operation awaited something other than its transaction")


class SqliteTransaction:
    """Implementation of :class:`Transaction`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _run(self, native: str, arguments: Sequence[object]) -> sqlite3.Cursor:
        return self._connection.execute(native, arguments)

    async def fetch(self, sql: str, *arguments: object) -> list[Row]:
        return self._run(_native(sql), arguments).fetchall()

    async def fetch_any(self, sql: str, *arguments: object, keys: Sequence[bytes]) -> list[Row]:
        found: list[Row] = []
        for first in range(0, len(keys), _KEYS[-1]):
            part = list(keys[first : first + _KEYS[-1]])
            size = _KEYS[bisect_left(_KEYS, len(part))]
            part += part[-1:] * (size - len(part))
            found += self._run(_with_any(sql, size), (*arguments, *part)).fetchall()
        return found

    async def fetch_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        native, run = _native(sql), self._run
        return [found for arguments in rows for found in run(native, arguments).fetchall()]

    async def fetchrow(self, sql: str, *arguments: object) -> Row | None:
        cursor = self._run(_native(sql), arguments)
        row: Row | None = cursor.fetchone()
        cursor.close()
        return row

    async def execute(self, sql: str, *arguments: object) -> int:
        return self._run(_native(sql), arguments).rowcount

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(_native(sql), rows)

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        returned: list[Row] = []
        for first in range(0, len(rows), _ROWS_PER_INSERT):
            part = rows[first : first + _ROWS_PER_INSERT]
            arguments = [value for row in part for value in row]
            returned += self._connection.execute(_multiplied(sql, len(part)), arguments).fetchall()
        return returned

    async def time(self) -> int:
        # All processes that share the file are on one machine.
        return time.time_ns() // 1_000_000

    async def script(self, sql: str) -> None:
        # ``executescript`` would commit the transaction first.
        for statement in statements_for_sqlite(sql):
            self._connection.execute(statement)


class OneStatement(SqliteTransaction):
    """Connection without a transaction, for an operation of one statement, which reads one state by itself."""

    _used = False

    def _run(self, native: str, arguments: Sequence[object]) -> sqlite3.Cursor:
        if self._used:
            raise SeveralStatements
        self._used = True
        return self._connection.execute(native, arguments)


@lru_cache(maxsize=1024)
def _native(sql: str) -> str:
    return re.sub(r"\$(\d+)", r"?\1", _POSITION.sub(r"instr(\2, \1)", _ROW_LOCK.sub("", sql)))


@lru_cache(maxsize=1024)
def _with_any(sql: str, keys: int) -> str:
    head, number = re.split(r"= ANY\(\$(\d+)\)", sql)[:2]
    return _native(head) + f"IN ({', '.join(f'?{int(number) + place}' for place in range(keys))})"


@lru_cache(maxsize=1024)
def _multiplied(sql: str, rows: int) -> str:
    head, group, tail = re.split(r"(\((?:\$\d+(?:,\s*)?)+\))", sql, maxsplit=1)
    marks = "(" + ", ".join("?" * group.count("$")) + ")"
    return head + ", ".join([marks] * rows) + tail


def statements_for_sqlite(sql: str) -> list[str]:
    """Split a migration into statements. ``/*sqlite … */`` is SQL for SQLite, and a comment for PostgreSQL."""
    shared = re.sub(r"--[^\n]*|/\*postgresql\s.*?\*/", "", sql, flags=re.DOTALL)
    own = re.sub(r"/\*sqlite\s(.*?)\*/", r"\1", shared, flags=re.DOTALL)
    return [statement for statement in own.split(";\n") if statement.strip()]

"""Transactions of PostgreSQL, and the SQL of the stores in PostgreSQL's dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy_ext.server.store.engine.interface import Row, SeveralStatements
from scrapy_ext.server.store.engine.postgresql.commit_marks import SET_MARK, Mark
from scrapy_ext.server.store.engine.postgresql.connection import encode_text

if TYPE_CHECKING:
    import asyncpg

#: Timeout of migrations and of VACUUM.
MAINTENANCE_SECONDS: Final = 7 * 86400.0
#: Minimum rows for which one statement for all is faster than one each.
_MANY: Final = 6


class PostgresqlTransaction:
    """Implementation of :class:`~scrapy_ext.server.store.engine.interface.Transaction`."""

    def __init__(self, connection: asyncpg.Connection, mark: Mark | None = None) -> None:
        self._connection = connection
        #: Number of changed rows.
        self.changed = 0
        #: The mark to set before the commit; None once it is set.
        self.unset_mark = mark

    def _reading(self) -> asyncpg.Connection:
        """Return the connection for a statement that returns rows."""
        return self._connection

    async def fetch(self, sql: str, *arguments: object) -> list[Row]:
        return list(map(tuple, await self._reading().fetch(sql, *arguments)))

    async def fetch_any(self, sql: str, *arguments: object, keys: Sequence[bytes]) -> list[Row]:
        return await self.fetch(sql, *arguments, list(keys))

    async def fetch_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        if not rows:
            return []
        statement, columns = await self._for_many(sql, rows, _joined)
        return await self.fetch(statement, *columns)

    async def fetchrow(self, sql: str, *arguments: object) -> Row | None:
        if self.unset_mark is not None and _LOCKS.search(sql):
            # Within another statement the mark needs no round trip of its own.
            row = await self._connection.fetchrow(_marking_lock(sql, len(arguments)), *arguments, *self.unset_mark)
            self.unset_mark = None
            return None if row is None else tuple(row)
        row = await self._reading().fetchrow(sql, *arguments)
        return None if row is None else tuple(row)

    async def execute(self, sql: str, *arguments: object) -> int:
        if self.unset_mark is not None and _CHANGES.match(sql):
            marking = _marking_change(sql, len(arguments))
            changed = await self._connection.fetchval(marking, *arguments, *self.unset_mark)
            self.unset_mark = None
        else:
            changed = _changed(await self._connection.execute(sql, *arguments))
        self.changed += changed
        return int(changed)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:
            await self.execute(sql, *rows[0])
        elif len(rows) >= _MANY and sql.lstrip().startswith("INSERT"):
            statement, columns = await self._for_many(sql, rows, _unnested)
            await self.execute(statement, *columns)
        elif rows:
            await self._connection.executemany(sql, rows)
            self.changed += len(rows)

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        if not rows:
            return []
        statement, columns = await self._for_many(sql, rows, _unnested)
        self.changed += len(rows)
        return await self.fetch(statement, *columns)

    async def _for_many(
        self, sql: str, rows: Sequence[Sequence[Any]], rewritten: Callable[[str, Sequence[str]], str]
    ) -> tuple[str, list[Sequence[Any]]]:
        """Return the statement and arguments for many rows of arguments."""
        many = _FOR_MANY.get(sql)
        if many is None:
            types = [given.name for given in (await self._connection.prepare(sql)).get_parameters()]
            many = _FOR_MANY[sql] = _ForMany(rewritten(sql, types), tuple(name == "text" for name in types))
        columns: list[Sequence[Any]] = [
            # The codec of text does not apply to the members of an array.
            [value if value is None else encode_text(value) for value in column] if is_text else column
            for is_text, column in zip(many.texts, zip(*rows, strict=True), strict=True)
        ]
        return many.statement, columns

    async def time(self) -> int:
        now: int = await self._connection.fetchval(
            "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
        )
        return now

    async def script(self, sql: str) -> None:
        await self._connection.execute("SET LOCAL statement_timeout = 0")
        await self._connection.execute(_for_postgresql(sql), timeout=MAINTENANCE_SECONDS)


class OneStatement(PostgresqlTransaction):
    """Connection without a transaction, for an operation of one statement."""

    _used = False

    def _reading(self) -> asyncpg.Connection:
        if self._used:
            raise SeveralStatements
        self._used = True
        return self._connection


def _changed(status: str) -> int:
    """Parse the number of changed rows from a status such as ``INSERT 0 5``."""
    number = status.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


#: A statement that changes rows without returning them, and one that locks rows.
_CHANGES: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b(?!.*\bRETURNING\b)", re.DOTALL)
_LOCKS: Final = re.compile(r"\bFOR (UPDATE|SHARE)\s*$")


@cache
def _marking_lock(sql: str, arguments: int) -> str:
    return f"WITH held AS ({sql}), marked AS ({_set_mark(arguments)}) SELECT * FROM held"


@cache
def _marking_change(sql: str, arguments: int) -> str:
    changed = f"WITH changed AS ({sql} RETURNING 1)"
    return f"{changed}, marked AS ({_set_mark(arguments)}) SELECT count(*) FROM changed"


def _set_mark(arguments: int) -> str:
    return re.sub(r"\$(\d)", lambda place: f"${arguments + int(place[1])}", SET_MARK)


class _ForMany(NamedTuple):
    """A statement for many rows of arguments, and which of its columns are texts."""

    statement: str
    texts: tuple[bool, ...]


#: By the statement of the store.
_FOR_MANY: Final[dict[str, _ForMany]] = {}


def _unnested(sql: str, types: Sequence[str]) -> str:
    """Rewrite ``INSERT … VALUES ($1, …)`` for any number of rows, with an array per column."""
    head, group, tail = re.split(r"VALUES\s*\(([^()]*)\)", sql, maxsplit=1)
    return f"{head}SELECT {_of_given(group)} FROM {_given(types)}{tail}"


def _joined(sql: str, types: Sequence[str]) -> str:
    """Rewrite a query for any number of rows of arguments, with an array per column."""
    return f"SELECT each_row.* FROM {_given(types)} CROSS JOIN LATERAL ({_of_given(sql)}) AS each_row"


def _given(types: Sequence[str]) -> str:
    arrays = ", ".join(f"${place}::{name}[]" for place, name in enumerate(types, 1))
    columns = ", ".join(f"c{place}" for place in range(1, len(types) + 1))
    return f"unnest({arrays}) AS given ({columns})"


def _of_given(sql: str) -> str:
    return re.sub(r"\$(\d+)", r"given.c\1", sql)


def _for_postgresql(sql: str) -> str:
    """Translate a migration. ``/*postgresql … */`` is SQL for PostgreSQL, and a comment for SQLite.

    Text is compared by its bytes, as in SQLite, whatever the locale of the server.
    """
    own = re.sub(r"/\*postgresql\s(.*?)\*/", r"\1", sql, flags=re.DOTALL)
    return re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', re.sub(r"--[^\n]*", "", own))

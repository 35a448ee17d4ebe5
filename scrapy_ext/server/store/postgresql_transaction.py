"""What an operation uses on PostgreSQL, and the little in its SQL that is said otherwise there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from scrapy_ext.server.store.engine import Row
from scrapy_ext.server.store.postgresql_connection import encode_text

#: Of what may take as long as it does.
UNHURRIED_SECONDS: Final = 7 * 86400.0
#: The ID of the transaction, once it has changed something.
CURRENT_ID: Final = "CAST(pg_current_xact_id_if_assigned() AS TEXT)"
#: Rows from which on one statement for all of them is faster than one for each.
_MANY: Final = 6


class PostgresqlTransaction:
    """A transaction on one connection."""

    #: Writes of pages are put off for minutes and gathered, and rows that move have to be vacuumed.
    sorted_runs = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        #: How many rows it has changed.
        self.changed = 0
        #: Its ID, when a change has told it.
        self.id: str | None = None

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        return list(map(tuple, await self._connection.fetch(sql, *arguments)))

    async def fetch_any(self, sql: str, *arguments: Any, keys: Sequence[bytes]) -> list[Row]:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        return await self.fetch(sql, *arguments, list(keys))

    async def fetchrow(self, sql: str, *arguments: Any) -> Row | None:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        if self.id is None and (telling := _lock_telling_id(sql)) is not None:
            row = await self._connection.fetchrow(telling, *arguments)
            if row is None:
                return None
            *found, self.id = row
            return tuple(found)
        row = await self._connection.fetchrow(sql, *arguments)
        return None if row is None else tuple(row)

    async def execute(self, sql: str, *arguments: Any) -> int:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        if self.id is None and _TELLS_NOTHING.match(sql):
            # Asked for on the way, it costs no way of its own.
            changed, self.id = await self._connection.fetchrow(_telling_id(sql), *arguments)
        else:
            changed = _changed(await self._connection.execute(sql, *arguments))
        self.changed += changed
        return int(changed)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        if len(rows) == 1:
            await self.execute(sql, *rows[0])
        elif len(rows) >= _MANY and sql.lstrip().startswith("INSERT"):
            statement, columns = await self._insert(sql, rows)
            await self.execute(statement, *columns)
        elif rows:
            await self._connection.executemany(sql, rows)
            self.changed += len(rows)

    async def insert_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        if not rows:
            return []
        statement, columns = await self._insert(sql, rows)
        self.changed += len(rows)
        return await self.fetch(statement, *columns)

    async def _insert(self, sql: str, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Sequence[Any]]]:
        """An INSERT of one row as it is sent for many, and its arguments."""
        insert = _INSERTS.get(sql)
        if insert is None:
            types = [given.name for given in (await self._connection.prepare(sql)).get_parameters()]
            insert = _INSERTS[sql] = _Insert(_unnested(sql, types), tuple(name == "text" for name in types))
        columns: list[Sequence[Any]] = [
            # The driver does not know that the texts of an array are texts, too.
            [value if value is None else encode_text(value) for value in column] if is_text else column
            for is_text, column in zip(insert.texts, zip(*rows, strict=True), strict=True)
        ]
        return insert.statement, columns

    async def script(self, sql: str) -> None:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        await self._connection.execute("SET LOCAL statement_timeout = 0")
        await self._connection.execute(_for_postgresql(sql), timeout=UNHURRIED_SECONDS)


class SeveralStatements(Exception):  # noqa: N818 - nothing has gone wrong
    """A second statement, where only one sees a single state of the data."""


class OneStatement(PostgresqlTransaction):
    """What an operation gets that has been one statement up to now."""

    _used = False

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        self._use()
        return await super().fetch(sql, *arguments)

    async def fetchrow(self, sql: str, *arguments: Any) -> Row | None:
        """See :class:`~scrapy_ext.server.store.engine.Transaction`."""
        self._use()
        return await super().fetchrow(sql, *arguments)

    def _use(self) -> None:
        if self._used:
            raise SeveralStatements
        self._used = True


def _changed(status: str) -> int:
    """The rows that a statement changed, from what the server says at its end: ``INSERT 0 5``."""
    number = status.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


#: A statement that changes rows and returns nothing of them.
_TELLS_NOTHING: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b(?!.*\bRETURNING\b)", re.DOTALL)


@cache
def _lock_telling_id(sql: str) -> str | None:
    """A statement that locks a row, as one that returns the transaction's ID with it."""
    if re.search(r"\bFOR (UPDATE|SHARE)\s*$", sql) is None:
        return None
    return f"WITH held AS ({sql}) SELECT *, {CURRENT_ID} FROM held"  # noqa: S608 - a store's own


@cache
def _telling_id(sql: str) -> str:
    """A statement that changes rows, as one that returns how many, and the transaction's ID if there were any."""
    return f"WITH changed AS ({sql} RETURNING 1) SELECT count(*), {CURRENT_ID} FROM changed"  # noqa: S608 - a store's own


class _Insert(NamedTuple):
    """A statement of ``insert_many`` as it is sent, and which of its columns are texts."""

    statement: str
    texts: tuple[bool, ...]


#: By the statement as the stores write it; there are as many as they have.
_INSERTS: Final[dict[str, _Insert]] = {}


def _unnested(sql: str, types: Sequence[str]) -> str:
    """``INSERT … VALUES ($1, …)`` for any number of rows, whose columns come as arrays."""
    head, group, tail = re.split(r"VALUES\s*\(([^()]*)\)", sql, maxsplit=1)
    arrays = ", ".join(f"${place}::{name}[]" for place, name in enumerate(types, 1))
    columns = ", ".join(f"c{place}" for place in range(1, len(types) + 1))
    chosen = re.sub(r"\$(\d+)", r"given.c\1", group)
    return f"{head}SELECT {chosen} FROM unnest({arrays}) AS given ({columns}){tail}"  # noqa: S608 - a store's own statement


def _for_postgresql(sql: str) -> str:
    """Migrations may say something to PostgreSQL alone, inside what other engines read as a comment.

    Text is compared by its bytes, as in SQLite, whatever the language of the server is.
    """
    told = re.sub(r"/\*postgresql\s(.*?)\*/", r"\1", sql, flags=re.DOTALL)
    return re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', re.sub(r"--[^\n]*", "", told))

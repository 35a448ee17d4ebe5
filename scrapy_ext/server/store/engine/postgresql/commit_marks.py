"""Marks by which a transaction leaves a trace of its commit, for the case that the answer to COMMIT is lost.

Each connection has a row, and each of its transactions writes a new number there. A look-up of the mark locks the row,
and so waits until the transaction has ended.

The ID of the transaction is not sufficient: after a crash PostgreSQL assigns IDs of transactions that never reached the
disk to new ones, and reports those as committed.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from scrapy_ext.server.store.engine.postgresql.errors import CommitWaitsError

if TYPE_CHECKING:
    import asyncpg

#: Not part of the schema, since it has no data of the platform.
_CREATE: Final = """
    CREATE TABLE IF NOT EXISTS last_commits (
        writer BIGINT NOT NULL PRIMARY KEY,
        mark BIGINT NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT now()
    ) WITH (fillfactor = 20)"""
_EXPIRE: Final = "DELETE FROM last_commits WHERE at < now() - interval '7 days'"
SET_MARK: Final = """INSERT INTO last_commits (writer, mark) VALUES ($1, $2)
    ON CONFLICT (writer) DO UPDATE SET mark = excluded.mark, at = excluded.at"""
#: It writes, so that it also waits for the first transaction of a connection.
_LOOK_UP: Final = """INSERT INTO last_commits (writer, mark) VALUES ($1, 0)
    ON CONFLICT (writer) DO UPDATE SET at = excluded.at RETURNING mark"""

_WRITERS: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()


class Mark(NamedTuple):
    """The mark of one transaction."""

    writer: int
    number: int


async def prepare(connection: asyncpg.Connection) -> None:
    """Create the table if it is missing, and remove the marks of old connections."""
    if await connection.fetchval("SELECT to_regclass('last_commits')") is None:
        await connection.execute(_CREATE)
    await connection.execute(_EXPIRE)


def new_mark(connection: asyncpg.Connection) -> Mark:
    """Return the mark of a connection's next transaction."""
    writer = _WRITERS.get(connection)
    if writer is None:
        writer = _WRITERS[connection] = secrets.randbits(62)
    return Mark(writer, secrets.randbits(62) + 1)


async def is_set(connection: asyncpg.Connection, mark: Mark) -> bool:
    """Wait for the end of a transaction; return true when it was committed.

    The look-up is a commit of its own, after the other one: once a synchronous standby has it, it has both.
    """
    connection.warning = None
    found = await connection.fetchval(_LOOK_UP, mark.writer)
    check_replicated(connection)
    return bool(found == mark.number)


def check_replicated(connection: asyncpg.Connection) -> None:
    """Raise an error if the last commit of a connection was answered before the synchronous standby had it.

    PostgreSQL warns of that when an administrator cancels the wait.
    """
    if connection.warning is not None:
        raise CommitWaitsError(connection.warning)

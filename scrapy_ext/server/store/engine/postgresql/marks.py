"""How it is known whether a transaction was committed whose COMMIT was not answered: by a mark that it leaves.

Each connection has a row of its own, and each transaction of it writes a new number there. Who looks for the mark
afterwards waits, by the row's lock, until the transaction has ended in whatever way.

The transaction's own ID does not tell as much: after a crash PostgreSQL gives the IDs of transactions of which nothing
had reached the disk to others, and says of those that they are committed.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

#: No part of the schema: nothing of the platform's data is in it.
_CREATE: Final = """
    CREATE TABLE IF NOT EXISTS last_commits (
        writer BIGINT NOT NULL PRIMARY KEY,
        mark BIGINT NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT now()
    ) WITH (fillfactor = 20)"""
_FORGET: Final = "DELETE FROM last_commits WHERE at < now() - interval '7 days'"
SET_MARK: Final = """INSERT INTO last_commits (writer, mark) VALUES ($1, $2)
    ON CONFLICT (writer) DO UPDATE SET mark = excluded.mark, at = excluded.at"""
#: It writes, too, so that it waits for a transaction that is the first of its connection.
_LOOK: Final = """INSERT INTO last_commits (writer, mark) VALUES ($1, 0)
    ON CONFLICT (writer) DO UPDATE SET at = excluded.at RETURNING mark"""

_WRITERS: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()


class Mark(NamedTuple):
    """What one transaction leaves."""

    writer: int
    number: int


async def prepare(connection: Any) -> None:
    """Make the table if it is missing, and forget connections that are gone."""
    if await connection.fetchval("SELECT to_regclass('last_commits')") is None:
        await connection.execute(_CREATE)
    await connection.execute(_FORGET)


def new_mark(connection: Any) -> Mark:
    """The mark of the next transaction of a connection."""
    writer = _WRITERS.get(connection)
    if writer is None:
        writer = _WRITERS[connection] = secrets.randbits(62)
    return Mark(writer, secrets.randbits(62) + 1)


async def is_set(connection: Any, mark: Mark) -> bool:
    """Whether the transaction that was to leave this mark was committed, as soon as it has ended."""
    return bool(await connection.fetchval(_LOOK, mark.writer) == mark.number)

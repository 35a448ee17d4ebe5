"""Removal of expired records of collections to which nothing is written any more."""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.expiry.steps import STEP_ROWS, Steps, fitting

_TYPES: Final = ", ".join(f"'{each.value}'" for each in CollectionType if each.expires)
_EXPIRED: Final = "expires IS NOT NULL AND expires <= $3"


class _Owner(NamedTuple):
    """Key of a collection in the table of records."""

    project: int
    collection: int


async def remove_expired_records(engine: Engine, now: int) -> Steps:
    """Remove records that have expired at ``now`` (ms), which no reader sees."""
    owner = _Owner(-1, 0)
    while (found := await engine.read(_next_owner, owner, now)) is not None:
        owner = found
        while removed := await engine.write(_remove, owner, now):
            yield removed


async def _next_owner(tx: Transaction, after: _Owner, now: int) -> _Owner | None:
    """Return the next collection with expired records."""
    row = await tx.fetchrow(
        f"""SELECT project, collection FROM collections c
            WHERE type IN ({_TYPES}) AND (project, collection) > ($1, $2) AND EXISTS (
                SELECT 1 FROM collection_records r
                WHERE r.project = c.project AND r.collection = c.collection AND {_EXPIRED}
            ) ORDER BY project, collection LIMIT 1""",  # noqa: S608 - fixed text
        *after,
        now,
    )
    return _Owner(*row) if row else None


async def _remove(tx: Transaction, owner: _Owner, now: int) -> int:
    rows = await tx.fetch(
        f"""SELECT length(value) + COALESCE(length(value_1), 0) + COALESCE(length(value_2), 0), key
            FROM collection_records WHERE project = $1 AND collection = $2 AND {_EXPIRED}
            ORDER BY expires LIMIT $4 FOR UPDATE SKIP LOCKED""",  # noqa: S608 - fixed text
        *owner,
        now,
        STEP_ROWS,
    )
    doomed = fitting(rows)
    await tx.execute_many(
        "DELETE FROM collection_records WHERE project = $1 AND collection = $2 AND key = $3",
        sorted((*owner, key) for _, key in doomed),
    )
    return len(doomed)

"""Removal of rows whose owner was deleted by name, a few at a time.

Readers no longer see such rows. Other writers never wait long, and a removal interrupted by a crash continues later.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.server.store.engine.interface import Engine, Transaction

COLLECTION: Final = "collection"
SLOT: Final = "slot"

#: Small rows per step: some tens of milliseconds.
_STEP: Final = 5000
#: Rows per step if one may have a megabyte.
_LARGE_STEP: Final = 500


class _Table(NamedTuple):
    name: str
    owner: str
    key: str
    step: int = _STEP


_TABLES: Final = {
    COLLECTION: (_Table("collection_records", "collection", "key", _LARGE_STEP),),
    SLOT: (
        _Table("frontier_batches", "slot", "priority, batch", _LARGE_STEP),
        _Table("frontier_fingerprints", "slot", "run, fp"),
        _Table("frontier_fingerprint_blocks", "slot", "run, first", _LARGE_STEP),
    ),
}


async def discard(tx: Transaction, project: int, kind: str, number: int) -> None:
    """Mark the rows of a collection or slot as ownerless."""
    await tx.execute("INSERT INTO discarded (project, kind, number) VALUES ($1, $2, $3)", project, kind, number)


async def purge(engine: Engine) -> None:
    """Remove all ownerless rows, and their space in the database files."""
    while await engine.read(_any_left):
        await engine.write(_purge_step)
    await engine.forget_deleted()


async def _any_left(tx: Transaction) -> bool:
    return await tx.fetchrow("SELECT 1 FROM discarded LIMIT 1") is not None


async def _purge_step(tx: Transaction) -> None:
    row = await tx.fetchrow(
        "SELECT project, kind, number FROM discarded ORDER BY project, kind, number LIMIT 1 FOR UPDATE"
    )
    # Another process may have removed them.
    if row is None:
        return
    project, kind, number = row
    for table in _TABLES[kind]:
        if not await _emptied(tx, table, project, number):
            return
    await tx.execute("DELETE FROM discarded WHERE project = $1 AND kind = $2 AND number = $3", project, kind, number)


async def _emptied(tx: Transaction, table: _Table, project: int, number: int) -> bool:
    """Remove the first rows of an owner; return true when none is left."""
    owned = f"FROM {table.name} WHERE project = $1 AND {table.owner} = $2"
    # A range condition makes every engine walk the index once, whatever its statistics.
    end = await tx.fetchrow(
        f"SELECT {table.key} {owned} ORDER BY {table.key} LIMIT 1 OFFSET $3", project, number, table.step
    )
    if end is None:
        await tx.execute(f"DELETE {owned}", project, number)
        return True
    marks = ", ".join(f"${place}" for place in range(3, 3 + len(end)))
    await tx.execute(f"DELETE {owned} AND ({table.key}) < ({marks})", project, number, *end)
    return False

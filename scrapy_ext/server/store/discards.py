"""What was deleted by name is gone for its readers at once; its rows are removed here, a few at a time.

No other writer waits long for a large deletion, and one that was cut off by a crash goes on later.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.store.engine import Engine, Transaction

COLLECTION: Final = "collection"
SLOT: Final = "slot"

#: Rows of one step: some tens of milliseconds.
_STEP: Final = 5000

_DELETE: Final = {
    COLLECTION: (
        """DELETE FROM collection_records WHERE project = $1 AND collection = $2 AND key IN (
             SELECT key FROM collection_records WHERE project = $1 AND collection = $2 LIMIT $3)""",
    ),
    SLOT: (
        """DELETE FROM frontier_batches WHERE project = $1 AND slot = $2 AND (priority, batch) IN (
             SELECT priority, batch FROM frontier_batches WHERE project = $1 AND slot = $2 LIMIT $3)""",
        """DELETE FROM frontier_fingerprints WHERE project = $1 AND slot = $2 AND fp IN (
             SELECT fp FROM frontier_fingerprints WHERE project = $1 AND slot = $2 LIMIT $3)""",
    ),
}


async def discard(tx: Transaction, project: int, kind: str, number: int) -> None:
    """Note that the rows of a collection or slot have no owner any more."""
    await tx.execute("INSERT INTO discarded (project, kind, number) VALUES ($1, $2, $3)", project, kind, number)


async def purge(engine: Engine) -> None:
    """Remove all rows without an owner."""
    while await engine.read(_any_left):
        await engine.write(_purge_step)


async def _any_left(tx: Transaction) -> bool:
    return await tx.fetchrow("SELECT 1 FROM discarded LIMIT 1") is not None


async def _purge_step(tx: Transaction) -> None:
    row = await tx.fetchrow("SELECT project, kind, number FROM discarded ORDER BY project, kind, number LIMIT 1")
    if row is None:
        return
    project, kind, number = row
    for statement in _DELETE[kind]:
        if await tx.execute(statement, project, number, _STEP) == _STEP:
            return
    await tx.execute("DELETE FROM discarded WHERE project = $1 AND kind = $2 AND number = $3", project, kind, number)

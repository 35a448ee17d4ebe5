"""Removal of old activity messages, and of old deliveries of webhooks that are no longer pending."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.expiry.steps import STEP_ROWS, Steps, fitting

#: Below the number of any project, and of the server's own messages.
_FIRST: Final = -2


async def remove_messages(engine: Engine, before: int, most: int) -> Steps:
    """Remove messages stored at ``before`` (ms) or earlier, and all but the newest ``most`` of each project.

    The newest message of a project always stays: readers recognise new messages by its number.
    """
    project = _FIRST
    while (found := await engine.read(_next_project, project)) is not None:
        project = found
        while removed := await engine.write(_remove_messages, project, before, most):
            yield removed
        yield 0


async def _next_project(tx: Transaction, after: int) -> int | None:
    row = await tx.fetchrow("SELECT min(project) FROM activity WHERE project > $1", after)
    return row[0] if row else None


async def _remove_messages(tx: Transaction, project: int, before: int, most: int) -> int:
    newest = await tx.fetchrow("SELECT max(number) FROM activity WHERE project = $1", project)
    if newest is None or newest[0] is None:
        return 0
    rows = await tx.fetch(
        """SELECT length(event), number, ts FROM activity WHERE project = $1 AND number < $2
           ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED""",
        project,
        newest[0],
        STEP_ROWS,
    )
    # Numbers have gaps, since deliveries of tests have numbers, too: more than ``most`` are never kept.
    old = [row for row in rows if row[2] <= before or row[1] <= newest[0] - most]
    doomed = fitting(old)
    await tx.execute_many(
        "DELETE FROM activity WHERE project = $1 AND number = $2", [(project, number) for _, number, _ in doomed]
    )
    return len(doomed)


async def remove_deliveries(engine: Engine, before: int) -> Steps:
    """Remove deliveries of events at ``before`` (ms) or earlier, except pending ones."""
    while removed := await engine.write(_remove_deliveries, before):
        yield removed


async def _remove_deliveries(tx: Transaction, before: int) -> int:
    rows = await tx.fetch(
        """SELECT length(body), project, webhook, number FROM webhook_deliveries
           WHERE due IS NULL AND created <= $1
           ORDER BY created, project, webhook, number LIMIT $2 FOR UPDATE SKIP LOCKED""",
        before,
        STEP_ROWS,
    )
    doomed = fitting(rows)
    await tx.execute_many(
        "DELETE FROM webhook_deliveries WHERE project = $1 AND webhook = $2 AND number = $3",
        sorted(row[1:] for row in doomed),
    )
    return len(doomed)

"""Removal of old results of monitors, and of old messages to targets of alerts that are no longer pending."""

from __future__ import annotations

from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.expiry.steps import STEP_ROWS, Steps, fitting


async def remove_results(engine: Engine, before: int) -> Steps:
    """Remove results that were stored at ``before`` (ms) or earlier, and past messages of that age."""
    project = -1
    while (found := await engine.read(_next_project, project)) is not None:
        project = found
        while removed := await engine.write(_remove_results, project, before):
            yield removed
    while removed := await engine.write(_remove_messages, before):
        yield removed


async def _next_project(tx: Transaction, after: int) -> int | None:
    row = await tx.fetchrow("SELECT min(project) FROM monitor_results WHERE project > $1", after)
    return row[0] if row else None


async def _remove_results(tx: Transaction, project: int, before: int) -> int:
    rows = await tx.fetch(
        """SELECT length(result), project, spider, job, of_server, rule FROM monitor_results
           WHERE project = $1 AND checked <= $2 ORDER BY checked, spider, job LIMIT $3 FOR UPDATE SKIP LOCKED""",
        project,
        before,
        STEP_ROWS,
    )
    doomed = fitting(rows)
    await tx.execute_many(
        """DELETE FROM monitor_results
           WHERE project = $1 AND spider = $2 AND job = $3 AND of_server = $4 AND rule = $5""",
        sorted(row[1:] for row in doomed),
    )
    return len(doomed)


async def _remove_messages(tx: Transaction, before: int) -> int:
    rows = await tx.fetch(
        """SELECT length(body), project, target, number FROM alert_messages WHERE due IS NULL AND created <= $1
           ORDER BY created, project, target, number LIMIT $2 FOR UPDATE SKIP LOCKED""",
        before,
        STEP_ROWS,
    )
    doomed = fitting(rows)
    await tx.execute_many(
        "DELETE FROM alert_messages WHERE project = $1 AND target = $2 AND number = $3",
        sorted(row[1:] for row in doomed),
    )
    return len(doomed)

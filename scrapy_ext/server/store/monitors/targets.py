"""Targets of alerts. The URL of one is a secret: nothing here returns it."""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.platform.alerts import MAX_TARGETS, AlertTarget, masked
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Row, Transaction

_TARGET: Final = "number, name, url, created, disabled, failing_since, outcome"


async def add_target(tx: Transaction, now: int, project: int, name: str, url: str) -> AlertTarget:
    """Store a target; raise :class:`ContractError` when the project has too many."""
    number = await advance(tx, project, "alert target")
    if len(await list_targets(tx, project)) >= MAX_TARGETS:
        raise ContractError(
            [Violation("project", f"has {MAX_TARGETS} targets of alerts, which is the limit", "Remove one of them.")]
        )
    await tx.execute(
        "INSERT INTO alert_targets (project, number, name, url, created) VALUES ($1, $2, $3, $4, $5)",
        project,
        number,
        name,
        url,
        now,
    )
    return _target(project, (number, name, url, now, 0, None, ""))


async def list_targets(tx: Transaction, project: int) -> list[AlertTarget]:
    """Return the targets of a project without their URLs, oldest first."""
    rows = await tx.fetch(f"SELECT {_TARGET} FROM alert_targets WHERE project = $1 ORDER BY number", project)  # noqa: S608
    return [_target(project, row) for row in rows]


async def get_target(tx: Transaction, project: int, number: int) -> AlertTarget | None:
    row = await tx.fetchrow(
        f"SELECT {_TARGET} FROM alert_targets WHERE project = $1 AND number = $2",  # noqa: S608 - fixed text
        project,
        number,
    )
    return _target(project, row) if row else None


async def disable_target(tx: Transaction, project: int, number: int, disabled: bool) -> AlertTarget | None:
    """Disable a target and drop its pending messages, or enable it again."""
    await tx.execute(
        "UPDATE alert_targets SET disabled = $3, failing_since = NULL WHERE project = $1 AND number = $2",
        project,
        number,
        int(disabled),
    )
    if disabled:
        await tx.execute(
            "DELETE FROM alert_messages WHERE project = $1 AND target = $2 AND due IS NOT NULL", project, number
        )
    return await get_target(tx, project, number)


async def remove_target(tx: Transaction, project: int, number: int) -> bool:
    """Delete a target and its messages; return whether there was one."""
    found = await tx.execute("DELETE FROM alert_targets WHERE project = $1 AND number = $2", project, number)
    await tx.execute("DELETE FROM alert_messages WHERE project = $1 AND target = $2", project, number)
    return found > 0


def _target(project: int, row: Row) -> AlertTarget:
    number, name, url, created, disabled, failing_since, outcome = row
    return AlertTarget(
        id=number,
        project=project,
        name=name,
        url=masked(url),
        created=created,
        disabled=bool(disabled),
        failing_since=failing_since,
        outcome=outcome,
    )

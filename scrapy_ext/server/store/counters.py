"""Counters of unique numbers: rows, not sequences, so that they have no gaps and move with their project."""

from __future__ import annotations

from scrapy_ext.server.store.engine.interface import Transaction


async def advance(tx: Transaction, project: int, name: str, by: int = 1) -> int:
    """Take the next ``by`` numbers of a counter; return the last of them. The first number is 1."""
    row = await tx.fetchrow(
        """INSERT INTO counters (project, name, value) VALUES ($1, $2, $3)
           ON CONFLICT (project, name) DO UPDATE SET value = counters.value + excluded.value RETURNING value""",
        project,
        name,
        by,
    )
    assert row is not None  # noqa: S101 - the statement always returns its row
    value: int = row[0]
    return value


async def hold(tx: Transaction, project: int, name: str) -> None:
    """Lock a counter until the transaction ends. Creators of named, numbered rows check the name again under this
    lock."""
    await advance(tx, project, name, 0)

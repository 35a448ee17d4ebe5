"""Activity messages of projects, newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.server.store.activity.outbox import enqueue
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.engine.methods import EngineStore, Method

_PAGE: Final = 500
#: The project of messages about the server itself.
SERVER: Final = -1


class Message(NamedTuple):
    """A message: project, number in the project, time stored (ms), and JSON."""

    project: int
    number: int
    ts: int
    event: bytes


async def add_events(tx: Transaction, project: int, events: Sequence[bytes], now: int) -> None:
    """Store messages within a larger transaction, and enqueue them for webhooks."""
    first = await _insert(tx, project, events, now)
    if more := await enqueue(tx, project, first, events, now):
        await _insert(tx, project, more, now)


async def _insert(tx: Transaction, project: int, events: Sequence[bytes], now: int) -> int:
    """Store messages; return the number of the first."""
    last = await advance(tx, project, "activity", len(events))
    first = last - len(events) + 1
    await tx.execute_many(
        "INSERT INTO activity (project, number, ts, event) VALUES ($1, $2, $3, $4)",
        [(project, first + place, now, event) for place, event in enumerate(events)],
    )
    return first


async def _page(tx: Transaction, project: int, below: int, limit: int) -> list[Message]:
    """Return the newest messages of a project with numbers below ``below``."""
    rows = await tx.fetch(
        """SELECT project, number, ts, event FROM activity
           WHERE project = $1 AND number < $2 ORDER BY number DESC LIMIT $3""",
        project,
        below,
        limit,
    )
    return [Message(*row) for row in rows]


class ActivityStore(EngineStore):
    """Messages posted by clients and written by the server."""

    async def add(self, project: int, events: Sequence[bytes]) -> None:
        """Store messages; the last one is the newest."""
        await self._engine.write(add_events, project, events, self._clock())

    async def scan(self, project: int, count: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield the messages of a project, newest first."""
        below, left = MAX_NUMBER, count
        while left is None or left > 0:
            limit = _PAGE if left is None else min(_PAGE, left)
            messages = await self._engine.read(_page, project, below, limit)
            if messages:
                yield messages
            if len(messages) < limit:
                return
            below = messages[-1].number
            left = None if left is None else left - len(messages)

    page = Method("read", _page)

    async def newest(self, project: int) -> int:
        """Return the number of a project's newest message; 0 without any."""
        messages = await self._engine.read_inline(_page, project, MAX_NUMBER, 1)
        return messages[0].number if messages else 0

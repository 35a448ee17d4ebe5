"""Activity messages of projects, newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Transaction
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.webhook_queue import enqueue

_PAGE: Final = 500
#: The project of messages about the server itself.
SERVER: Final = -1


class Message(NamedTuple):
    """A message: project, number in the project, time stored (ms), and JSON."""

    project: int
    number: int
    ts: int
    event: bytes


async def add_events(
    tx: Transaction, project: int, events: Sequence[bytes], now: int, attempt: Attempt | None = None
) -> None:
    """Store messages, also within a larger transaction, and enqueue them for webhooks."""
    await check_attempt(tx, attempt)
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


async def page(tx: Transaction, project: int, below: int, limit: int) -> list[Message]:
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

    async def add(self, project: int, events: Sequence[bytes], attempt: Attempt | None = None) -> None:
        """Store messages; the last one is the newest.

        ``attempt``: that of the process that adds them; the write fails (403) once the attempt is over.
        """
        await self._engine.write(add_events, project, events, self._clock(), attempt)

    async def scan(self, project: int, count: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield the messages of a project, newest first."""
        below, left = MAX_NUMBER, count
        while left is None or left > 0:
            limit = _PAGE if left is None else min(_PAGE, left)
            messages = await self._engine.read(page, project, below, limit)
            if messages:
                yield messages
            if len(messages) < limit:
                return
            below = messages[-1].number
            left = None if left is None else left - len(messages)

    page = Method("read", page)

    async def newest(self, project: int) -> int:
        """Return the number of a project's newest message; 0 without any."""
        messages = await self._engine.read_inline(page, project, MAX_NUMBER, 1)
        return messages[0].number if messages else 0

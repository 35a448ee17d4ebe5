"""Commits finished batches: children, then items, then the acknowledgement.

The order is the whole point. A batch may be acknowledged only when everything that its requests led to is
durable, for an acknowledged batch is never read again:

1. the children that it led to are in the frontier;
2. the items that it led to are in storage;
3. then, and only then, its ID is posted to ``q/deleted``.

A crash before 3 replays the batch. The children it sends again have known fingerprints and are not queued
twice (platform-api.md, Frontier).

No bookkeeping per item or child: whatever a batch led to was given to the writers before it finished, so it is
durable once the writers have been flushed after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from scrapy_ext.crawl.tracking import OpenBatch

logger = logging.getLogger(__name__)


class Durable(Protocol):
    """A writer that can make what it was given durable."""

    async def flush(self) -> None:
        """Send what is waiting; returns when all that was added before the call is stored."""


Acknowledge = Callable[[int, list[str]], Awaitable[None]]


class Committer:
    """Commits batches, in a task of its own, as many together as have finished.

    The writers of ``stages()`` are flushed stage by stage; ``acknowledge(slot, ids)`` deletes batches;
    ``on_committed`` hears of each batch after that. All of them retry for themselves: an error from one is
    final, ends the task, and stands in :attr:`failure`.
    """

    def __init__(
        self,
        stages: Callable[[], Sequence[Sequence[Durable]]],
        acknowledge: Acknowledge,
        on_committed: Callable[[OpenBatch], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._stages = stages
        self._acknowledge = acknowledge
        self._on_committed = on_committed
        self._on_failure = on_failure
        self._finished: list[OpenBatch] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self.failure: Exception | None = None

    @property
    def is_idle(self) -> bool:
        """Whether every finished batch has been acknowledged."""
        return self._idle.is_set()

    def start(self) -> None:
        """Start the task, in the running loop."""
        self._task = asyncio.ensure_future(self._run())

    def add(self, batch: OpenBatch) -> None:
        """A batch has finished."""
        self._finished.append(batch)
        self._idle.clear()
        self._wake.set()

    async def close(self) -> None:
        """Commit what has finished, and end the task."""
        if self._task is None:
            return
        waiter = asyncio.ensure_future(self._idle.wait())
        try:
            await asyncio.wait({waiter, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                batches, self._finished = self._finished, []
                await self._commit(batches)
                if not self._finished:
                    self._idle.set()
        except Exception as error:
            self.failure = error
            self._on_failure(error)

    async def _commit(self, batches: list[OpenBatch]) -> None:
        for stage in self._stages():
            await asyncio.gather(*(writer.flush() for writer in stage))
        by_slot: dict[int, list[str]] = {}
        for batch in batches:
            by_slot.setdefault(batch.slot, []).append(batch.id)
        await asyncio.gather(*(self._acknowledge(slot, ids) for slot, ids in by_slot.items()))
        for batch in batches:
            self._on_committed(batch)

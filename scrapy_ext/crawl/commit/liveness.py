"""Liveness of the workers of a frontier by their commit journals, for workers that each have a job of their own.

The workers of a group report to the platform instead (:mod:`scrapy_ext.crawl.session.group_liveness`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Final

from scrapy_ext.crawl.commit.assignment import Sightings
from scrapy_ext.crawl.commit.events import Checkpoint
from scrapy_ext.crawl.commit.leases import Ownership

#: Heartbeats in a lease time.
_HEARTBEATS: Final = 3


class JournalLiveness:
    """Heartbeats of a worker, as records of its journal, and observation of the others' journals.

    ``lease_time``: seconds without a record after which a worker counts as dead.
    """

    def __init__(self, ownership: Ownership, lease_time: float) -> None:
        self._ownership = ownership
        self._lease_time = lease_time
        self._sightings = Sightings(lease_time)

    def has_lapsed(self) -> bool:
        return self._ownership.log.has_lapsed(self._lease_time)

    def soon(self, workers: int) -> float:
        """Return the time of a heartbeat: each look reads the journals of all others."""
        return self._lease_time / _HEARTBEATS

    async def pause(self) -> None:
        """Wait until the next heartbeat."""
        await asyncio.sleep(self._lease_time / _HEARTBEATS)

    async def renew(self) -> None:
        """Write to the journal, unless a commit has just done so."""
        if time.monotonic() - self._ownership.log.written > self._lease_time / _HEARTBEATS / 2:
            await self._ownership.log.write()

    def begin(self) -> None:
        """Begin a round of observations, before the assignment is read."""
        self._sightings.begin(time.monotonic())

    async def live(self, names: Collection[str]) -> list[str]:
        """Return the journals among these whose writers are alive."""
        live = [name for name in names if await self._lives(name)]
        self._sightings.end(time.monotonic())
        return live

    async def _lives(self, name: str) -> bool:
        head = await self._ownership.journal(name).head()
        if head is None:
            return False
        is_closed = head.read(Checkpoint).closed
        return self._sightings.lives(name, head.number, is_closed=is_closed, now=time.monotonic())

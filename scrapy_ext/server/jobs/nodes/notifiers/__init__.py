"""Carriers: how a node hears at once that there is something for it to do.

What they bring are hints. A node finds its jobs in the ``attempts`` of the database, where it looks every second
anyway: a carrier that is late, brings something twice or not at all changes nothing but the time until a job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from scrapy_ext.server.store.jobs.placing import Carry


class Carrier(Protocol):
    """Brings jobs to one node, and tells other nodes of theirs."""

    @property
    def carry(self) -> Carry | None:
        """What tells a node of a job, in the transaction that gives it to that node."""

    async def serve(self, node: str, hear: Callable[[], None]) -> None:
        """From now on call ``hear`` when this node should look; whichever it served before is gone."""

    async def sweep(self, nodes: Collection[str]) -> None:
        """Forget what is on its way to others than these nodes. Raises :class:`StoreError`."""

    async def stop(self) -> None:
        """End within a second."""

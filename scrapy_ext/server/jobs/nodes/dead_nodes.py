"""Nodes that are dead: they are told by a beat that stands still.

How long it stands still is measured by this process, and only while it sees: while it reads the nodes without a gap,
and its own beats are stored. Else an outage of the database, which stops all beats, would look like the death of all.
"""

from __future__ import annotations

import logging
from typing import Final

from scrapy_ext.server.jobs.clock import elapsing
from scrapy_ext.server.jobs.nodes.notifiers import Carrier
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError, StoreBusyError

#: Seconds that a beat stands still before its node is taken for dead.
DEAD_AFTER: Final = 8.0
#: Seconds between two looks, beyond which this process did not see.
_GAP: Final = 3.0
#: Seconds between two looks for what is on its way to nodes that are gone.
_SWEEP: Final = 60.0

logger = logging.getLogger(__name__)


class Reaper:
    """Looks for dead nodes, and takes their jobs back."""

    def __init__(self, store: Store, carrier: Carrier, most_losses: int) -> None:
        self._store = store
        self._carrier = carrier
        self._most = most_losses
        self._beats: dict[str, tuple[int, float]] = {}
        self._looked = -_GAP
        self._swept = -_SWEEP

    def blind(self) -> None:
        """What was seen so far says nothing."""
        self._beats.clear()

    async def look(self) -> None:
        """Look once; raises :class:`StoreError`."""
        nodes = await self._store.nodes.listed()
        now = elapsing()
        if now - self._looked > _GAP:
            self.blind()
        self._looked = now
        known = self._beats
        self._beats = {}
        for node in nodes:
            beat, since = known.get(node.name, (None, now))
            self._beats[node.name] = (node.beat, since if beat == node.beat else now)
        for name, (beat, since) in list(self._beats.items()):
            if now - since >= DEAD_AFTER:
                await self._reap(name, beat)
        for name in await self._store.attempts.orphaned():
            await self._reap(name, 0)
        if now - self._swept >= _SWEEP:
            self._swept = now
            await self._carrier.sweep([node.name for node in await self._store.nodes.listed()])

    async def _reap(self, name: str, beat: int) -> None:
        """Take a node's jobs back. What a stopped process has locked is taken at a later look, and the rest now."""
        try:
            reaped = await self._store.attempts.reap(name, beat, self._most)
        except StoreAwayError:
            raise
        except StoreBusyError as error:
            logger.warning("Jobs of the lost node %s cannot be taken back yet: %s", name, error)
            return
        self._swept = -_SWEEP  # its queue is nobody's any more
        for attempt in reaped:
            logger.warning("Node %s is lost; its job goes on elsewhere: %s", name, attempt)

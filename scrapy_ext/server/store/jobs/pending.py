"""Jobs that wait for a node, by what they need of it: for pages."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.jobs.nodes import Node

#: Groups that are found, and jobs of each that are counted.
_GROUPS: Final = 50
_COUNTED: Final = 10_000

_decode: Final = msgspec.json.Decoder(list[str]).decode


class Waiting(NamedTuple):
    """Jobs that need the same tags and units of a node; at least so many when there are ``more``."""

    tags: frozenset[str]
    units: int
    jobs: int
    more: bool

    def fits(self, node: Node) -> bool:
        """Whether the node could run them, once it has nothing else to do."""
        return not node.draining and self.units <= node.units and self.tags <= node.tags


class WaitingStore:
    """The pending jobs of all projects."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def groups(self) -> list[Waiting]:
        """What pending jobs need, and how many need it."""
        return await self._engine.read(_groups)


async def _groups(tx: Transaction) -> list[Waiting]:
    """Each step goes to the next of the index, over all jobs that need the same."""
    found: list[Waiting] = []
    tags, units = "", 0
    while len(found) < _GROUPS:
        row = await tx.fetchrow(
            """SELECT node_tags, units FROM jobs WHERE state = 'pending' AND (node_tags, units) > ($1, $2)
               ORDER BY node_tags, units LIMIT 1""",
            tags,
            units,
        )
        if row is None:
            break
        tags, units = row
        count = await tx.fetchrow(
            """SELECT count(*) FROM (
                 SELECT 1 FROM jobs WHERE state = 'pending' AND node_tags = $1 AND units = $2 LIMIT $3) AS part""",
            tags,
            units,
            _COUNTED,
        )
        jobs = count[0] if count else 0
        found.append(Waiting(frozenset(_decode(tags)), units, jobs, jobs == _COUNTED))
    return found

"""Read-only overview of frontiers for the pages; reading a batch here does not fix it."""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.api.platform.frontier import DEAD_LETTERS
from scrapy_ext.api.platform.job_data import ASSIGNMENT, JOURNAL_PREFIX
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Row, Transaction, only_row
from scrapy_ext.server.store.frontier.fingerprints import page, seen
from scrapy_ext.server.store.frontier.frontier import Slot, StoredBatch, first_batches

#: Maximum batches counted of one slot: 200,000 requests if they are full.
COUNTED: Final = 2000
#: Maximum batches counted per frontier in a list of frontiers.
COUNTED_IN_LIST: Final = 200
#: A slot, and all other slots with requests: the journals of crawls have none.
_SAME: Final = "slot = $3"
_OTHERS: Final = f"slot <> $3 AND slot <> '{ASSIGNMENT}' AND slot NOT LIKE '{JOURNAL_PREFIX}%'"
#: Fingerprints per page.
FINGERPRINTS: Final = 200


class Queued(NamedTuple):
    """Queued requests; lower bounds if there are ``more`` than counted. ``fixed`` batches are full or were read."""

    requests: int = 0
    batches: int = 0
    fixed: int = 0
    more: bool = False


class FrontierSummary(NamedTuple):
    """A frontier with its slots and requests; its slot of dead letters is separate."""

    name: str
    slots: int
    queued: Queued
    dead: Queued


class SlotSummary(NamedTuple):
    """A slot; ``seen`` counts its fingerprints, approximately if ``seen_about``."""

    name: str
    queued: Queued
    seen: int
    seen_about: bool


async def frontiers(tx: Transaction, project: int, after: str, limit: int) -> list[FrontierSummary]:
    """Return the frontiers of a project with names after ``after``."""
    rows = await tx.fetch(
        f"""SELECT frontier, sum(CASE WHEN {_OTHERS.replace("$3", "$4")} THEN 1 ELSE 0 END) FROM frontier_slots
           WHERE project = $1 AND frontier > $2 GROUP BY frontier ORDER BY frontier LIMIT $3""",
        project,
        after,
        limit,
        DEAD_LETTERS,
    )
    return [
        FrontierSummary(
            name,
            int(slots),
            await _queued(tx, Slot(project, name, DEAD_LETTERS), _OTHERS, COUNTED_IN_LIST),
            await _queued(tx, Slot(project, name, DEAD_LETTERS), _SAME, COUNTED_IN_LIST),
        )
        for name, slots in rows
    ]


async def _journals(tx: Transaction, project: int, frontier: str, limit: int) -> list[str]:
    """Return the slots of a frontier that are journals of jobs."""
    rows = await tx.fetch(
        """SELECT slot FROM frontier_slots WHERE project = $1 AND frontier = $2 AND slot > $3 AND slot < $4
           ORDER BY slot LIMIT $5""",
        project,
        frontier,
        JOURNAL_PREFIX,
        JOURNAL_PREFIX + "\x7f",
        limit,
    )
    return [slot for (slot,) in rows]


async def _slots(tx: Transaction, project: int, frontier: str, after: str, limit: int) -> list[SlotSummary]:
    """Return the slots of a frontier with names after ``after``."""
    rows = await tx.fetch(
        """SELECT slot, runs FROM frontier_slots WHERE project = $1 AND frontier = $2 AND slot > $3
           ORDER BY slot LIMIT $4""",
        project,
        frontier,
        after,
        limit,
    )
    return [await _summary(tx, Slot(project, frontier, row[0]), row) for row in rows]


async def _slot(tx: Transaction, slot: Slot) -> SlotSummary | None:
    row = await tx.fetchrow(
        "SELECT slot, runs FROM frontier_slots WHERE project = $1 AND frontier = $2 AND slot = $3", *slot
    )
    return await _summary(tx, slot, row) if row else None


async def _summary(tx: Transaction, slot: Slot, row: Row) -> SlotSummary:
    return SlotSummary(slot.name, await _queued(tx, slot, _SAME, COUNTED), *seen(row[1]))


async def _queued(tx: Transaction, slot: Slot, which: str, most: int) -> Queued:
    """Count the requests queued in a slot (:data:`_SAME`) or in all others of its frontier (:data:`_OTHERS`)."""
    row = await only_row(
        tx,
        f"""SELECT CAST(coalesce(sum(size), 0) AS BIGINT), count(*), CAST(coalesce(sum(fixed), 0) AS BIGINT) FROM (
              SELECT size, fixed FROM frontier_batches WHERE project = $1 AND slot IN (
                SELECT number FROM frontier_slots WHERE project = $1 AND frontier = $2 AND {which})
              LIMIT $4) AS part""",
        *slot,
        most + 1,
    )
    return Queued(row[0], row[1], row[2], row[1] > most)


async def fingerprints(tx: Transaction, slot: Slot, after: bytes) -> list[bytes]:
    """Return the fingerprints of a slot after one, :data:`FINGERPRINTS` at most."""
    row = await tx.fetchrow(
        "SELECT number, runs FROM frontier_slots WHERE project = $1 AND frontier = $2 AND slot = $3", *slot
    )
    return [] if row is None else await page(tx, (slot.project, row[0]), row[1], after, FINGERPRINTS)


class FrontierOverview(EngineStore):
    """Paginated reads of frontiers and slots."""

    frontiers = Method("read", frontiers)
    journals = Method("read", _journals)
    slots = Method("read", _slots)
    slot = Method("read", _slot)

    async def head(self, slot: Slot, requests: int, batches: int) -> list[StoredBatch]:
        """Return the next batches with at least ``requests`` requests, ``batches`` at most."""
        found, _ = await self._engine.read(first_batches, slot, requests, most=batches)
        return found

    fingerprints = Method("read", fingerprints)

"""Frontiers: queues of batches and sets of fingerprints, by slot.

Reads and additions cost the same whatever the length of the queue:

- A slot has a number that is never reused, so that deleting a slot hides its rows at once, and a batch ID of a deleted
  slot never names a batch of its successor.
- Requests are grouped in batches when they are added: a row holds up to ``MAX_BATCH`` requests of one priority, in the
  order of arrival, as the JSON of responses. An addition fills the last batch of its priority until that is full or
  read, which fixes it. So an ID always names the same requests, and reading full batches writes nothing.
- A batch is deleted by its key, and a read starts at the lowest remaining key.
- An addition queues the requests whose fingerprints it inserted first, so the count of new requests is exact with
  concurrent writers. :mod:`.fingerprints` describes their storage.
- The frontier of a job (``job_data``) is deleted with the job, and a slot of it is not created again: a late process
  would find a queue and a journal without what was there before.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.frontier import MAX_BATCH, MAX_REQUEST_BYTES, QueueCount
from scrapy_ext.api.platform.job_data import job_of_frontier
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Method, Transaction, only_row
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.frontier.fingerprint_filter import SlotFilters
from scrapy_ext.server.store.frontier.fingerprints import SlotFingerprints, page
from scrapy_ext.server.store.projects import advance, hold
from scrapy_ext.server.store.records.removal import check_not_deleted
from scrapy_ext.server.store.removals import SLOT, RemovedOwner, add_removal

#: Maximum bytes of a batch's requests, unless a single one is larger.
_MAX_BATCH_BYTES: Final = MAX_REQUEST_BYTES
#: Maximum bytes of a read, which is held in memory, even if ``mincount`` is not reached.
_MAX_READ_BYTES: Final = 64 * 1024 * 1024
#: Batches per counting step.
COUNT_STEP: Final = 10_000
_FINGERPRINT_PAGE: Final = 1000
_BATCH_PAGE: Final = 64
#: A batch ID: priority (shifted to be positive), slot number and batch number, in hexadecimal digits.
_ID: Final = re.compile(r"([0-9a-f]{8})([0-9a-f]{8})([0-9a-f]{8})", re.ASCII)
_PRIORITY_SHIFT: Final = 2**31
_SLOT: Final = "project = $1 AND frontier = $2 AND slot = $3"


class Slot(NamedTuple):
    project: int
    frontier: str
    name: str


class _Owner(NamedTuple):
    """Key of a slot in the tables of requests and fingerprints."""

    project: int
    slot: int


class _Held(NamedTuple):
    """A locked row of a slot."""

    owner: _Owner
    last_batch: int
    runs: bytes | None
    stamp: int


class QueuedRequest(NamedTuple):
    """A request to add: fingerprint, ``[fp, qdata]`` pair as JSON, fdata as JSON, priority."""

    fp: bytes
    pair: bytes
    fdata: bytes | None
    priority: int


class StoredBatch(NamedTuple):
    """A batch: ID, and pairs as JSON joined by commas."""

    id: str
    size: int
    requests: bytes


async def _locked(tx: Transaction, slot: Slot) -> _Held | None:
    """Lock a slot's row against other changes of its queue."""
    row = await tx.fetchrow(
        """SELECT number, last_batch, runs, stamp FROM frontier_slots
           WHERE project = $1 AND frontier = $2 AND slot = $3 FOR UPDATE""",
        *slot,
    )
    return _Held(_Owner(slot.project, row[0]), *row[1:]) if row else None


async def _created(tx: Transaction, slot: Slot) -> _Held:
    await hold(tx, slot.project, "frontier slot")
    # Another writer may have created it meanwhile.
    if (known := await _locked(tx, slot)) is not None:
        return known
    if (job := job_of_frontier(slot.project, slot.frontier)) is not None:
        await check_not_deleted(tx, job)
    number = await advance(tx, slot.project, "frontier slot")
    await tx.execute(
        "INSERT INTO frontier_slots (project, frontier, slot, number, last_batch) VALUES ($1, $2, $3, $4, 0)",
        *slot,
        number,
    )
    return _Held(_Owner(slot.project, number), 0, None, 0)


async def _add_to_slots(
    tx: Transaction,
    requests: Mapping[Slot, Sequence[QueuedRequest]],
    filters: SlotFilters,
    attempt: Attempt | None = None,
) -> dict[Slot, int]:
    await check_attempt(tx, attempt)
    # In one order, so that two writers do not wait for each other.
    return {slot: await add_requests(tx, slot, requests[slot], filters) for slot in sorted(requests)}


async def add_requests(tx: Transaction, slot: Slot, requests: Sequence[QueuedRequest], filters: SlotFilters) -> int:
    """Queue the requests of one slot with unseen fingerprints; return their number."""
    owner, last_batch, runs, stamp = await _locked(tx, slot) or await _created(tx, slot)
    first_of = {request.fp: request for request in reversed(requests)}
    fingerprints = SlotFingerprints(tx, owner, runs, stamp)
    new = await fingerprints.add({fp: request.fdata for fp, request in first_of.items()}, filters)
    by_priority: dict[int, list[bytes]] = {}
    for request in requests:
        if request.fp in new and first_of[request.fp] is request:
            by_priority.setdefault(request.priority, []).append(request.pair)
    batch = last_batch
    for priority, pairs in by_priority.items():
        batch = await _enqueue(tx, owner, priority, pairs, batch)
    await tx.execute(
        f"UPDATE frontier_slots SET last_batch = $4, runs = $5, stamp = $6 WHERE {_SLOT}",
        *(*slot, batch, fingerprints.runs, fingerprints.stamp),
    )
    return len(new)


async def _enqueue(tx: Transaction, owner: _Owner, priority: int, pairs: Sequence[bytes], last_batch: int) -> int:
    """Add requests of one priority to batches; return the number of the last batch."""
    row = await tx.fetchrow(
        """SELECT batch, size, requests, fixed FROM frontier_batches
           WHERE project = $1 AND slot = $2 AND priority = $3 ORDER BY batch DESC LIMIT 1""",
        *owner,
        priority,
    )
    open_batch = _OpenBatch(last_batch + 1)
    if row is not None and not row[3]:
        open_batch = _OpenBatch(row[0], row[1], [row[2]], len(row[2]))
    batches = [open_batch]
    place = 0
    while (place := batches[-1].fill(pairs, place)) < len(pairs):
        batches[-1].is_full = True
        batches.append(_OpenBatch(max(batches[-1].number, last_batch) + 1))
    await tx.execute_many(
        """INSERT INTO frontier_batches (project, slot, priority, batch, size, fixed, requests)
           VALUES ($1, $2, $3, $4, $5, $6, $7)
           ON CONFLICT (project, slot, priority, batch) DO UPDATE
           SET size = excluded.size, fixed = excluded.fixed, requests = excluded.requests""",
        [
            (*owner, priority, batch.number, batch.size, int(batch.is_full), b",".join(batch.members))
            for batch in batches
        ],
    )
    return max(batches[-1].number, last_batch)


class _OpenBatch:
    def __init__(self, number: int, size: int = 0, members: list[bytes] | None = None, length: int = 0) -> None:
        self.number = number
        self.size = size
        self.is_full = False
        self.members = members or []
        self._length = length

    def fill(self, pairs: Sequence[bytes], place: int) -> int:
        """Add as many pairs from ``place`` on as fit; return the next place."""
        taken = pairs[place : place + MAX_BATCH - self.size]
        length = sum(map(len, taken))
        while taken and self._length + length > _MAX_BATCH_BYTES and self.size + len(taken) > 1:
            length -= len(taken[-1])
            taken = taken[:-1]
        self.members += taken
        self.size += len(taken)
        self.is_full = self.size == MAX_BATCH
        self._length += length
        return place + len(taken)


async def first_batches(
    tx: Transaction, slot: Slot, mincount: int, behind: str | None = None, *, most: int | None = None
) -> tuple[list[StoredBatch], bool]:
    """Return at most ``most`` batches, the first or those after one, and whether all of them are fixed."""
    found: list[StoredBatch] = []
    fixed, requests, length = True, 0, 0
    after = (-_PRIORITY_SHIFT, 0) if behind is None else _key(behind)[1:]
    while requests < mincount and length < _MAX_READ_BYTES and len(found) != most:
        limit = min(1 + (mincount - requests - 1) // MAX_BATCH, _BATCH_PAGE, most or _BATCH_PAGE)
        rows = await tx.fetch(
            f"""SELECT slot, priority, batch, size, fixed, requests FROM frontier_batches
               WHERE project = $1 AND slot = (SELECT number FROM frontier_slots WHERE {_SLOT})
               AND (priority, batch) > ($4, $5) ORDER BY priority, batch LIMIT $6""",
            *slot,
            *after,
            limit,
        )
        for number, priority, batch, size, is_fixed, pairs in rows:
            found.append(StoredBatch(_id(priority, number, batch), size, pairs))
            fixed = fixed and bool(is_fixed)
            requests, length = requests + size, length + len(pairs)
            after = (priority, batch)
        if len(rows) < limit:
            break
    return found, fixed


async def _first_of_slots(tx: Transaction, mincounts: Mapping[Slot, int]) -> dict[Slot, tuple[list[StoredBatch], bool]]:
    return {slot: await first_batches(tx, slot, mincount) for slot, mincount in mincounts.items()}


async def _fix_of_slots(tx: Transaction, mincounts: Mapping[Slot, int]) -> dict[Slot, list[StoredBatch]]:
    return {slot: await _fix_batches(tx, slot, mincounts[slot], None) for slot in sorted(mincounts)}


async def _fix_batches(tx: Transaction, slot: Slot, mincount: int, after: str | None) -> list[StoredBatch]:
    # The lock keeps additions from filling a batch that is being read.
    await _locked(tx, slot)
    batches, _ = await first_batches(tx, slot, mincount, after)
    await tx.execute_many(
        """UPDATE frontier_batches SET fixed = 1
           WHERE project = $1 AND slot = $2 AND priority = $3 AND batch = $4 AND fixed = 0""",
        [(slot.project, *_key(batch.id)) for batch in batches],
    )
    return batches


async def count(tx: Transaction, slot: Slot, start: str | None = None) -> QueueCount:
    """Count the queued requests from a batch on, up to ``COUNT_STEP`` batches."""
    _, priority, batch = (0, -_PRIORITY_SHIFT, 0) if start is None else _key(start)
    condition = f"""project = $1 AND slot = (SELECT number FROM frontier_slots WHERE {_SLOT})
        AND (priority, batch) >= ($4, $5) ORDER BY priority, batch"""
    row = await only_row(
        tx,
        f"""SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM (
              SELECT size FROM frontier_batches WHERE {condition} LIMIT $6) AS part""",
        *slot,
        priority,
        batch,
        COUNT_STEP,
    )
    if row[0] == COUNT_STEP:
        following = await tx.fetchrow(
            f"SELECT priority, slot, batch FROM frontier_batches WHERE {condition} LIMIT 1 OFFSET $6",
            *slot,
            priority,
            batch,
            COUNT_STEP,
        )
        if following is not None:
            return QueueCount(row[1], _id(*following))
    return QueueCount(row[1])


def _id(priority: int, slot: int, batch: int) -> str:
    return f"{priority + _PRIORITY_SHIFT:08x}{slot:08x}{batch:08x}"


def is_batch_id(text: str) -> bool:
    """Return true for a text in the form of a batch ID."""
    return _ID.fullmatch(text) is not None


def priority_of(batch_id: str) -> int:
    """Return the priority of a batch's requests."""
    return _key(batch_id)[1]


def _key(batch_id: str) -> tuple[int, int, int]:
    """Return slot number, priority and batch number of an ID; the slot is negative for an invalid ID."""
    match = _ID.fullmatch(batch_id)
    if match is None:
        return (-1, 0, 0)
    priority, slot, batch = (int(part, 16) for part in match.groups())
    return slot, priority - _PRIORITY_SHIFT, batch


async def _delete_of_slots(tx: Transaction, ids: Mapping[Slot, Sequence[str]], attempt: Attempt | None) -> None:
    await check_attempt(tx, attempt)
    for slot in sorted(ids):
        await _delete_batches(tx, slot, ids[slot])


async def _delete_batches(tx: Transaction, slot: Slot, ids: Sequence[str]) -> None:
    known = await _locked(tx, slot)
    if known is None:
        return
    owner = known.owner
    await tx.execute_many(
        "DELETE FROM frontier_batches WHERE project = $1 AND slot = $2 AND priority = $3 AND batch = $4",
        [(owner.project, *key) for key in sorted(set(map(_key, ids))) if key[0] == owner.slot],
    )


async def _fingerprints(tx: Transaction, slot: Slot, after: bytes) -> list[bytes]:
    row = await tx.fetchrow(f"SELECT number, runs FROM frontier_slots WHERE {_SLOT}", *slot)
    if row is None:
        return []
    return await page(tx, (slot.project, row[0]), row[1], after, _FINGERPRINT_PAGE)


async def delete_slot(tx: Transaction, slot: Slot, attempt: Attempt | None = None) -> None:
    """Delete a slot with its queue and fingerprints."""
    await check_attempt(tx, attempt)
    await lock_feed(tx, slot.project, slot.frontier)
    known = await _locked(tx, slot)
    if known is None:
        return
    await tx.execute("DELETE FROM frontier_slots WHERE project = $1 AND frontier = $2 AND slot = $3", *slot)
    await add_removal(tx, RemovedOwner(slot.project, SLOT, known.owner.slot))
    await forget_feed(tx, slot.project, slot.frontier)


async def lock_feed(tx: Transaction, project: int, frontier: str) -> None:
    """Lock the row of a frontier against pushes (:mod:`.feeds`), which lock it before slots."""
    await tx.fetchrow("SELECT 1 FROM frontier_feeds WHERE project = $1 AND frontier = $2 FOR UPDATE", project, frontier)


async def forget_feed(tx: Transaction, project: int, frontier: str) -> None:
    """Remove the row of a frontier that has no slots any more."""
    await tx.execute(
        """DELETE FROM frontier_feeds WHERE project = $1 AND frontier = $2 AND NOT EXISTS (
             SELECT 1 FROM frontier_slots s WHERE s.project = $1 AND s.frontier = $2)""",
        project,
        frontier,
    )


async def frontiers(tx: Transaction, project: int) -> list[str]:
    """Return the names of a project's frontiers."""
    rows = await tx.fetch("SELECT DISTINCT frontier FROM frontier_slots WHERE project = $1 ORDER BY frontier", project)
    return [row[0] for row in rows]


async def slots(tx: Transaction, project: int, frontier: str) -> list[str]:
    """Return the names of a frontier's slots."""
    rows = await tx.fetch(
        "SELECT slot FROM frontier_slots WHERE project = $1 AND frontier = $2 ORDER BY slot", project, frontier
    )
    return [row[0] for row in rows]


class FrontierStore(EngineStore):
    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        self.filters = SlotFilters()

    async def add(self, slot: Slot, requests: Sequence[QueuedRequest], attempt: Attempt | None = None) -> int:
        """Queue the requests with unseen fingerprints; return their number.

        ``attempt``, here and below: that of the process that writes; the write fails (403) once the attempt is over.
        """
        return (await self.add_to_slots({slot: requests}, attempt))[slot]

    async def add_to_slots(
        self, requests: Mapping[Slot, Sequence[QueuedRequest]], attempt: Attempt | None = None
    ) -> dict[Slot, int]:
        """Do the same for several slots, all or none of the requests."""
        return await self._engine.write(_add_to_slots, requests, self.filters, attempt)

    async def read(self, slot: Slot, mincount: int, after: str | None = None) -> list[StoredBatch]:
        """Return the first batches, or those after one, with at least ``mincount`` requests if there are so many."""
        batches, fixed = await self._first(slot, mincount, after)
        if not fixed:
            batches = await self._engine.write(_fix_batches, slot, mincount, after)
        return batches

    async def read_slots(self, mincounts: Mapping[Slot, int]) -> dict[Slot, list[StoredBatch]]:
        """Return the first batches of each slot with at least so many requests, if there are so many."""
        found = await self._engine.read(_first_of_slots, mincounts)
        unfixed = {slot: mincounts[slot] for slot, (_, is_fixed) in found.items() if not is_fixed}
        fixed = await self._engine.write(_fix_of_slots, unfixed) if unfixed else {}
        return {slot: batches for slot, (batches, _) in found.items()} | fixed

    async def _first(self, slot: Slot, mincount: int, after: str | None) -> tuple[list[StoredBatch], bool]:
        # One batch is usually enough.
        if mincount <= MAX_BATCH:
            batches, fixed = await self._engine.read_inline(first_batches, slot, mincount, after, most=1)
            if not (batches and fixed and batches[0].size < mincount):
                return batches, fixed
        return await self._engine.read(first_batches, slot, mincount, after)

    count = Method("read_inline", count)

    async def delete_batches(self, slot: Slot, ids: Sequence[str], attempt: Attempt | None = None) -> None:
        """Delete batches; unknown IDs are ignored."""
        await self.delete_of_slots({slot: ids}, attempt)

    async def delete_of_slots(self, ids: Mapping[Slot, Sequence[str]], attempt: Attempt | None = None) -> None:
        """Delete batches of several slots."""
        await self._engine.write(_delete_of_slots, ids, attempt)

    async def fingerprints(self, slot: Slot, after: bytes = b"") -> AsyncIterator[list[bytes]]:
        """Yield the fingerprints of a slot after one, ordered by bytes. None is empty, so ``b""`` is before all."""
        while True:
            page = await self._engine.read(_fingerprints, slot, after)
            if page:
                yield page
            if len(page) < _FINGERPRINT_PAGE:
                return
            after = page[-1]

    delete_slot = Method("write", delete_slot)
    frontiers = Method("read", frontiers)
    slots = Method("read", slots)

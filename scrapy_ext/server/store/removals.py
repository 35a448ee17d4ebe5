"""Removal of rows whose owner was deleted, a few at a time.

The owner's deletion adds a row to ``removals`` in its transaction, and readers no longer see the rows. :func:`purge`
removes them in steps, one step at a time of all processes, and one project after the other. Other writers never wait
long, no project waits for all rows of another, and a removal interrupted by a crash continues later.
"""

from __future__ import annotations

import asyncio
import time
from itertools import accumulate
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.job_data import (
    COMMITS_COLLECTION,
    OWNED_COLLECTIONS,
    SNAPSHOTS_COLLECTION,
    frontier_of,
    journal_of,
    payload_prefixes,
    snapshots_prefix,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Engine, Transaction, pause_after

COLLECTION: Final = "collection"
SLOT: Final = "slot"
JOB: Final = "job"
#: The records of collections that belong to a job: items that it has staged, and snapshots.
STAGED: Final = "staged"
VERSION: Final = "version"
#: The kinds of records, in the order in which their totals are locked.
RECORD_KINDS: Final = ("items", "logs", "requests", "samples")

#: Maximum rows per step, and bytes of their values, which SQLite overwrites with zeros: some tens of milliseconds.
_STEP_ROWS: Final = 5000
_STEP_BYTES: Final = 2 * 1024 * 1024
#: Rows of chunks per step: those of the largest size reach the bytes earlier, and more need not be measured.
_STEP_CHUNKS: Final = 256
#: A step that takes longer (seconds) is followed by one of half the size, a shorter one by one of twice the size.
_STEP_SECONDS: Final = (0.02, 0.05)
_SMALLEST: Final = 1 / 64
#: Longest time (ms) for which a process leaves the next step to itself.
_LONGEST_TURN: Final = 10_000
#: Seconds until the next attempt while another process is in a step.
_POLL: Final = 0.05
#: Seconds between two removals of deleted data from the files of the database, during a long purge.
_FORGET_INTERVAL: Final = 10.0


class RemovedOwner(NamedTuple):
    """Owner of rows to remove. ``number``: of a collection, slot or version, or the spider of the job ``part``."""

    project: int
    kind: str
    number: int
    part: int = 0


class _Table(NamedTuple):
    """Table with rows of an owner: columns with its numbers, the rest of the key, and the bytes of a row's values."""

    name: str
    owner: tuple[str, ...]
    key: str
    size: str = "0"
    condition: str = ""
    step: int = _STEP_ROWS


_JOB: Final = ("spider", "job")
_VALUES: Final = "length(value) + COALESCE(length(value_1), 0) + COALESCE(length(value_2), 0)"
_OWNED: Final = _Table("collection_records", (), "key", _VALUES)
_TABLES: Final = {
    COLLECTION: (_Table("collection_records", ("collection",), "key", _VALUES),),
    SLOT: (
        _Table("frontier_batches", ("slot",), "priority, batch", "length(requests)"),
        _Table("frontier_fingerprints", ("slot",), "run, fp"),
        _Table("frontier_fingerprint_blocks", ("slot",), "run, first", "length(fps)"),
        _Table("frontier_packed_fingerprints", ("slot",), "run, first", "length(fps)"),
        _Table("frontier_long_fingerprints", ("slot",), "beginning, hash", "length(fp)"),
        _Table("frontier_fingerprint_data", ("slot",), "addition, place", "length(fp) + length(fdata)"),
    ),
    VERSION: (
        _Table("version_pieces", ("deploy",), "piece", "length(body)"),
        _Table("version_spiders", ("deploy",), "name", "length(info)"),
    ),
    JOB: (
        _Table("comments", _JOB, "item, field, number"),
        _Table("record_streams", _JOB, "kind, writer, start"),
        _Table("group_domains", _JOB, "domain"),
        _Table("group_shares", _JOB, "name, attempt"),
        *(
            _Table("record_counts", _JOB, "field", condition=f" AND record_counts.kind = '{kind}'")
            for kind in RECORD_KINDS
        ),
    ),
    **{
        kind: (
            _Table("record_chunks", _JOB, "start", "length(body)", f" AND record_chunks.kind = '{kind}'", _STEP_CHUNKS),
        )
        for kind in RECORD_KINDS
    },
}


class Freed(NamedTuple):
    """Rows, and bytes of their values, that were deleted, and owners whose rows are all deleted."""

    owners: int = 0
    rows: int = 0
    bytes: int = 0

    def plus(self, other: Freed) -> Freed:
        return Freed(*(mine + its for mine, its in zip(self, other, strict=True)))


class _Step(NamedTuple):
    """Result of a step: the project of its owner, and what was deleted; without a project, another process is in one.

    ``wait``: seconds until that process has its next step at the latest.
    """

    project: int | None = None
    freed: Freed = Freed()
    wait: float = _POLL


async def add_removal(tx: Transaction, owner: RemovedOwner, size: int = 0) -> None:
    """Mark the rows of an owner for removal; ``size``: bytes of their chunks."""
    await tx.execute(
        """INSERT INTO removals (project, kind, number, part, bytes, since) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT DO NOTHING""",
        *owner,
        size,
        _now(),
    )


def is_kept(table: str) -> str:
    """Return the SQL condition on the rows of a table whose owner was not deleted; empty for other tables."""
    conditions = []
    for kind, tables in _TABLES.items():
        for each in tables:
            if each.name == table:
                owned = f"r.project = {table}.project AND r.kind = '{kind}'"
                for number, column in zip(("number", "part"), each.owner, strict=False):
                    owned += f" AND r.{number} = {table}.{column}"
                conditions.append(f"NOT EXISTS (SELECT 1 FROM removals r WHERE {owned}{each.condition})")
    return " AND ".join(conditions)


class Purge:
    """Removal of the rows of deleted owners. ``freed``: what it has deleted so far."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._share = 1.0
        self._project = -1
        #: Whether the files may have contents of deleted rows. A process that was killed may have left some.
        self._is_to_forget = True
        self.freed = Freed()

    async def run(self, *, pause: bool = True) -> Freed:
        """Remove all rows, and their contents from the database files; return what was removed.

        Without ``pause``, other writers and processes are not spared.
        """
        total, forget_at, wait = Freed(), time.monotonic() + _FORGET_INTERVAL, 0.0
        while await self._engine.read(_any_left):
            await asyncio.sleep(wait)
            began = time.monotonic()
            step = await self._engine.write(_purge_step, self._project, self._share, alone=pause)
            if step.project is None:
                wait = step.wait
                continue
            self._project = step.project
            total, self.freed = total.plus(step.freed), self.freed.plus(step.freed)
            seconds = time.monotonic() - began
            wait = pause_after(seconds, step.freed.bytes) if pause else 0.0
            self._resize(seconds)
            self._is_to_forget |= step.freed.owners > 0
            if time.monotonic() > forget_at:
                await self._forget()
                forget_at = time.monotonic() + _FORGET_INTERVAL
        await self._forget()
        return total

    async def _forget(self) -> None:
        if self._is_to_forget:
            await self._engine.forget_deleted()
            self._is_to_forget = False

    def _resize(self, seconds: float) -> None:
        short, long = _STEP_SECONDS
        if seconds > long:
            self._share = max(self._share / 2, _SMALLEST)
        elif seconds < short:
            self._share = min(self._share * 2, 1.0)


async def purge(engine: Engine, *, pause: bool = True) -> Freed:
    """Remove all rows of deleted owners, and their contents from the database files."""
    return await Purge(engine).run(pause=pause)


def _now() -> int:
    # The order of removals is all that depends on it.
    return time.time_ns() // 1_000_000


async def _any_left(tx: Transaction) -> bool:
    return await tx.fetchrow("SELECT 1 FROM removals LIMIT 1") is not None


async def _purge_step(tx: Transaction, after: int, share: float, *, alone: bool) -> _Step:
    """Remove some rows of the oldest owner of the first project after ``after``, at most a share of a whole step.

    After an owner with few rows, the next ones follow in the same step for some milliseconds.
    ``alone``: only if no other process is in a step or in the pause that follows it.
    """
    began = time.monotonic()
    if alone and (wait := await _others_turn(tx)):
        return _Step(wait=wait)
    step = _Step()
    while step.project is None or time.monotonic() - began < _STEP_SECONDS[0] / 2:
        row = await _next_owner(tx, after)
        if row is None:
            break
        owner = RemovedOwner(*row)
        freed = await _remove_some(tx, owner, share)
        await _count(tx, owner, freed)
        after = owner.project
        step = _Step(after, step.freed.plus(freed))
        if not freed.owners:
            break
    if step.project is None:
        return step
    if alone:
        await tx.execute(
            "UPDATE locks SET created = $1 WHERE name = 'purge'",
            _now() + min(round(1000 * pause_after(time.monotonic() - began, step.freed.bytes)), _LONGEST_TURN),
        )
    return step


async def _remove_some(tx: Transaction, owner: RemovedOwner, share: float) -> Freed:
    freed = Freed()
    for rows in await _rows_of(tx, owner):
        deleted, left = await _delete_some(tx, rows, share)
        freed = freed.plus(deleted)
        if left:
            return freed
    return freed._replace(owners=1)


async def _others_turn(tx: Transaction) -> float:
    """Take the turn of all processes; return the seconds until it may be free, 0 when it was taken."""
    await tx.execute("INSERT INTO locks (name, created) VALUES ('purge', 0) ON CONFLICT DO NOTHING")
    turn = await tx.fetchrow("SELECT created FROM locks WHERE name = 'purge' FOR UPDATE SKIP LOCKED")
    if turn is None:
        return _POLL
    wait: int = turn[0] - _now()
    # A longer wait is that of a wrong clock.
    return wait / 1000 if 0 < wait <= _LONGEST_TURN else 0


async def _next_owner(tx: Transaction, after: int) -> tuple[int, str, int, int] | None:
    for before in (after, -1):
        row = await tx.fetchrow(
            """SELECT project, kind, number, part FROM removals WHERE project > $1
               ORDER BY project, since, kind, number, part LIMIT 1 FOR UPDATE SKIP LOCKED""",
            before,
        )
        if row is not None:
            return row[0], row[1], row[2], row[3]
    return None


async def _count(tx: Transaction, owner: RemovedOwner, freed: Freed) -> None:
    """Count what was deleted of an owner, whose removal ends when nothing is left."""
    owned = "project = $1 AND kind = $2 AND number = $3 AND part = $4"
    if freed.owners:
        await tx.execute(f"DELETE FROM removals WHERE {owned}", *owner)
    else:
        await tx.execute(
            f"UPDATE removals SET bytes = CASE WHEN bytes > $5 THEN bytes - $5 ELSE 0 END WHERE {owned}",
            *owner,
            freed.bytes,
        )
    await tx.execute(
        """INSERT INTO freed (project, rows_deleted, bytes) VALUES ($1, $2, $3)
           ON CONFLICT (project) DO UPDATE
           SET rows_deleted = freed.rows_deleted + excluded.rows_deleted, bytes = freed.bytes + excluded.bytes""",
        owner.project,
        freed.rows,
        freed.bytes,
    )


class _Rows(NamedTuple):
    """Rows of a table: a condition on them besides the project, and its arguments, which begin with the project."""

    table: _Table
    condition: str
    arguments: tuple[Any, ...]


async def _rows_of(tx: Transaction, owner: RemovedOwner) -> list[_Rows]:
    if owner.kind == STAGED:
        return await _owned(tx, owner)
    found = []
    for table in _TABLES[owner.kind]:
        columns = " AND ".join(f"{column} = ${place}" for place, column in enumerate(table.owner, 2))
        arguments = (owner.project, owner.number, owner.part)[: 1 + len(table.owner)]
        found.append(_Rows(table, columns + table.condition, arguments))
    return found


async def _owned(tx: Transaction, owner: RemovedOwner) -> list[_Rows]:
    """Return the records of collections that belong to a job."""
    key = JobKey(owner.project, owner.number, owner.part)
    found = []
    for name, prefixes in (
        (COMMITS_COLLECTION, await _staged_prefixes(tx, key)),
        (SNAPSHOTS_COLLECTION, [snapshots_prefix(key)]),
    ):
        row = await tx.fetchrow(
            "SELECT collection FROM collections WHERE project = $1 AND type = $2 AND name = $3",
            *(key.project, OWNED_COLLECTIONS[name].type.value, name),
        )
        if row is None:
            continue
        for first in map(str.encode, prefixes):
            arguments = (key.project, row[0], first, first[:-1] + bytes([first[-1] + 1]))
            found.append(_Rows(_OWNED, "collection = $2 AND key >= $3 AND key < $4", arguments))
    return found


async def _staged_prefixes(tx: Transaction, key: JobKey) -> list[str]:
    """Return the starts of the keys of the items that a job has staged, in its own frontier and in those that it
    shared."""
    journal = journal_of(key)
    # Those of attempts continue with a hyphen, after which the dot comes next.
    shared = await tx.fetch(
        "SELECT frontier FROM frontier_slots WHERE project = $1 AND slot >= $2 AND slot < $3",
        *(key.project, journal, f"{journal}."),
    )
    frontiers = sorted({frontier_of(key), *(each[0] for each in shared)})
    return [prefix for frontier in frontiers for prefix in payload_prefixes(frontier, key)]


async def _delete_some(tx: Transaction, some: _Rows, share: float) -> tuple[Freed, bool]:
    """Delete the first of some rows; return what was deleted, and whether more are left."""
    table, condition, numbers = some
    limit = max(round(table.step * share), 1)
    owned = f"FROM {table.name} WHERE project = $1 AND {condition}"
    rows = await tx.fetch(
        f"SELECT {table.size}, {table.key} {owned} ORDER BY {table.key} LIMIT ${len(numbers) + 1}", *numbers, limit
    )
    if not rows:
        return Freed(), False
    sizes = list(accumulate(row[0] for row in rows))
    # At least one row, however large.
    number = max(sum(size <= _STEP_BYTES * share for size in sizes), 1)
    # A range condition makes every engine walk the index once, whatever its statistics.
    last = rows[number - 1][1:]
    marks = ", ".join(f"${place}" for place in range(len(numbers) + 1, len(numbers) + 1 + len(last)))
    await tx.execute(f"DELETE {owned} AND ({table.key}) <= ({marks})", *numbers, *last)
    return Freed(rows=number, bytes=sizes[number - 1]), number < len(rows) or len(rows) == limit

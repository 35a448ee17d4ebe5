"""Removal of all records of one kind of a job, or of a whole job.

A row of ``record_totals`` with a time in ``removed`` stands for records that are no longer readable, from the commit of
its transaction on. Writers lock that row first, so that nothing is added afterwards. The chunks are removed later
(``removals``).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Final, NamedTuple

from scrapy_ext.api.platform.job_data import frontier_of
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.removals import JOB, RECORD_KINDS, SLOT, STAGED, RemovedOwner, add_removal

#: Condition on a row of ``record_chunks``: its records were not removed. PostgreSQL would join NOT EXISTS, take nearly
#: all rows for removed, and then sort all chunks of a job to return one; it looks up the result of an aggregate by row.
READABLE: Final = """(
    SELECT count(t.removed) FROM record_totals t WHERE t.project = record_chunks.project AND t.kind = record_chunks.kind
    AND t.spider = record_chunks.spider AND t.job = record_chunks.job) < 1"""

_OWNED: Final = "project = $1 AND kind = $2 AND spider = $3 AND job = $4"


class RecordOwner(NamedTuple):
    """Owner of records: a kind and a job, as in the keys of the tables."""

    project: int
    kind: str
    spider: int
    job: int

    @property
    def key(self) -> JobKey:
        return JobKey(self.project, self.spider, self.job)


class Removal(NamedTuple):
    """Removal of records at a time (ms), with their job if ``deleted``; ``archive``: URL of their delivery.

    ``at``: 0 for an unknown time, None for a job of which nothing is left.
    """

    at: int | None
    archive: str | None
    deleted: bool


async def remove_job(tx: Transaction, key: JobKey, now: int) -> None:
    """Make all data of a locked job unreadable, and have it removed.

    These are its records, stats and comments, its own frontier, the items that it has staged, and its snapshots.
    """
    for kind in RECORD_KINDS:
        owner = RecordOwner(key.project, kind, key.spider, key.job)
        await _remove(tx, owner, now, None)
        await tx.execute(f"UPDATE record_totals SET records = 0, bytes = 0, skipped = 0 WHERE {_OWNED}", *owner)
    await add_removal(tx, RemovedOwner(key.project, JOB, key.spider, key.job))
    await add_removal(tx, RemovedOwner(key.project, STAGED, key.spider, key.job))
    await tx.execute("DELETE FROM frontier_feeds WHERE project = $1 AND frontier = $2", key.project, frontier_of(key))
    slots = await tx.fetch(
        "DELETE FROM frontier_slots WHERE project = $1 AND frontier = $2 RETURNING number",
        key.project,
        frontier_of(key),
    )
    for (number,) in slots:
        await add_removal(tx, RemovedOwner(key.project, SLOT, number))


async def remove_records(
    tx: Transaction, key: JobKey, kinds: Iterable[str], now: int, archive: str | None = None
) -> int:
    """Make records of a locked job unreadable, and have them removed; return the bytes of their chunks, if counted.

    Their number and stats stay readable.
    """
    return sum(
        [
            await _remove(tx, RecordOwner(key.project, kind, key.spider, key.job), now, archive)
            for kind in RECORD_KINDS
            if kind in kinds
        ]
    )


async def _remove(tx: Transaction, owner: RecordOwner, now: int, archive: str | None) -> int:
    await tx.execute(
        """INSERT INTO record_totals (project, kind, spider, job, records, bytes) VALUES ($1, $2, $3, $4, 0, 0)
           ON CONFLICT (project, kind, spider, job) DO NOTHING""",
        *owner,
    )
    row = await tx.fetchrow(f"SELECT stored, removed FROM record_totals WHERE {_OWNED} FOR UPDATE", *owner)
    if row is None or row[1] is not None:
        return 0
    await tx.execute(
        f"UPDATE record_totals SET removed = $5, archive = $6, stored = 0 WHERE {_OWNED}",
        *owner,
        now,
        archive,
    )
    size = int(row[0] or 0)
    await add_removal(tx, RemovedOwner(owner.project, owner.kind, owner.spider, owner.job), size)
    return size


async def find_removal(tx: Transaction, owner: RecordOwner) -> Removal | None:
    """Return the removal of an owner's records; None if they are readable."""
    row = await tx.fetchrow(
        f"SELECT removed, archive FROM record_totals WHERE {_OWNED} AND removed IS NOT NULL",
        *owner,
    )
    if row is None:
        return Removal(None, None, deleted=True) if await _is_forgotten(tx, owner) else None
    job = await tx.fetchrow(
        "SELECT state, changed FROM jobs WHERE project = $1 AND spider = $2 AND job = $3", *owner.key
    )
    if job is not None and job[0] == "deleted":
        # Its records may have been removed long before.
        return Removal(job[1], row[1], deleted=True)
    return Removal(row[0], row[1], deleted=job is None)


async def find_deletion(tx: Transaction, key: JobKey) -> Removal | None:
    """Return the deletion of a job; None if it was not deleted."""
    removal = await find_removal(tx, RecordOwner(key.project, RECORD_KINDS[0], key.spider, key.job))
    return removal if removal is not None and removal.deleted else None


async def check_not_deleted(tx: Transaction, key: JobKey) -> None:
    """Raise :class:`ContractError` (410) when a job was deleted. A later deletion waits for the transaction."""
    await tx.fetchrow("SELECT 1 FROM jobs WHERE project = $1 AND spider = $2 AND job = $3 FOR SHARE", *key)
    if (deletion := await find_deletion(tx, key)) is not None:
        raise deletion_error(key, deletion)


async def has_records(tx: Transaction, key: JobKey) -> bool:
    """Return true when records of any kind were stored under a key, and not removed."""
    row = await tx.fetchrow(
        """SELECT 1 FROM record_totals
           WHERE project = $1 AND spider = $2 AND job = $3 AND kind IN ('items', 'logs', 'requests', 'samples')
           AND removed IS NULL LIMIT 1""",
        *key,
    )
    return row is not None


async def find_removed_kinds(tx: Transaction, key: JobKey) -> list[str]:
    """Return the kinds of a job's records that were removed."""
    rows = await tx.fetch(
        """SELECT kind FROM record_totals
           WHERE project = $1 AND spider = $2 AND job = $3 AND kind IN ('items', 'logs', 'requests', 'samples')
           AND removed IS NOT NULL ORDER BY kind""",
        *key,
    )
    return [row[0] for row in rows]


async def is_removed_for_good(tx: Transaction, key: JobKey) -> bool:
    """Return true when records of a job were removed and no archive has them: it can never be resumed."""
    row = await tx.fetchrow(
        """SELECT 1 FROM record_totals
           WHERE project = $1 AND spider = $2 AND job = $3 AND kind IN ('items', 'logs', 'requests', 'samples')
           AND removed IS NOT NULL AND archive IS NULL LIMIT 1""",
        *key,
    )
    return row is not None


async def check_not_forgotten(tx: Transaction, owner: RecordOwner) -> None:
    """Raise :class:`ContractError` (410) when the job was deleted so long ago that nothing of it is left."""
    if await _is_forgotten(tx, owner):
        raise removal_error(owner, Removal(None, None, deleted=True))


async def _is_forgotten(tx: Transaction, owner: RecordOwner) -> bool:
    """Return true when the job's number was given to a job that no longer exists. No job has the number 0."""
    if not owner.job:
        return False
    row = await tx.fetchrow(
        """SELECT 1 FROM counters c WHERE c.project = $1 AND c.name = $2 AND c.value >= $3
           AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.project = $1 AND j.spider = $4 AND j.job = $3)""",
        owner.project,
        f"job {owner.spider}",
        owner.job,
        owner.spider,
    )
    return row is not None


async def removed_error(tx: Transaction, owner: RecordOwner) -> ContractError:
    """Return the error for a use of removed records."""
    return removal_error(owner, await find_removal(tx, owner) or Removal(None, None, deleted=True))


def deletion_error(key: JobKey, deletion: Removal | None = None) -> ContractError:
    """Return the error (410) for a use of a deleted job."""
    owner = RecordOwner(key.project, RECORD_KINDS[0], key.spider, key.job)
    return removal_error(owner, deletion or Removal(0, None, deleted=True))


def removal_error(owner: RecordOwner, removal: Removal) -> ContractError:
    """Return the error (410) for a use of removed records: when they were removed, and where they are."""
    when = f" on {datetime.fromtimestamp(removal.at / 1000, timezone.utc):%Y-%m-%d %H:%M} UTC" if removal.at else ""
    if removal.deleted:
        # An import passes numbers over.
        never = ", or its number was never used" if removal.at is None else ""
        rule = f"{owner.key} was deleted{when}, with all its records{never}"
        violation = Violation("job", rule, "Start a new job.", 410)
    elif removal.archive is None:
        violation = Violation(owner.kind, f"of job {owner.key} were removed{when}", "They cannot be read again.", 410)
    else:
        violation = Violation(
            owner.kind,
            f"of job {owner.key} were moved{when} to {removal.archive}",
            f"Read them there, or bring them back with: scrapy platform restore-job {owner.key}",
            410,
        )
    return ContractError([violation])

"""Restores: writes of archived records back into their job.

Invariants:

- While records are written back, their tombstone stays: no reader sees them, and no other writer can add any. They
  become readable in one transaction, once all of them are there.
- Only the holder of the token in ``restores`` writes them. Each of its transactions compares the token.
- A restore begins without chunks of these records: those that an interrupted restore or the removal has left are
  removed first (``removals``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.deliveries import JobRestore
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Transaction
from scrapy_ext.server.store.jobs.rows import get_job, save
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.records.removal import RecordOwner, find_removed_kinds, removed_error
from scrapy_ext.server.store.records.segments import StoredChunk
from scrapy_ext.server.store.removals import RECORD_KINDS, RemovedOwner, add_removal

#: Milliseconds until a restore that stores nothing counts as dead.
DURATION: Final = 60_000
_LONGEST_FAILURE: Final = 500
_OWNED: Final = "project = $1 AND kind = $2 AND spider = $3 AND job = $4"


class RestoreLostError(Exception):
    """The restore has ended: another process has taken it over, or the job was deleted."""


class Archived(NamedTuple):
    """Archived records of a kind: URL of their delivery, and their number."""

    archive: str
    records: int


class Restore(NamedTuple):
    """A restore under way: the archives by kind."""

    key: JobKey
    token: int
    archives: dict[str, Archived]


def _owner(key: JobKey, kind: str) -> RecordOwner:
    return RecordOwner(key.project, kind, key.spider, key.job)


async def _claim(tx: Transaction, key: JobKey, now: int, duration: int) -> Restore:
    """Begin a restore; raise :class:`ContractError` when there is nothing to restore, or another one is under way."""
    token = await advance(tx, key.project, "restore")
    job = await get_job(tx, key, lock=True)
    if job is None or job.state is JobState.DELETED:
        raise await removed_error(tx, _owner(key, "items"))
    archives = await _archives(tx, key)
    if not archives:
        if removed := await find_removed_kinds(tx, key):
            raise refused("job", f"{key} has no copy of its {', '.join(removed)}", "They cannot be brought back.")
        raise refused("job", f"{key} has no archived records", "Read its records.")
    row = await tx.fetchrow(
        "SELECT expires, failure FROM restores WHERE project = $1 AND spider = $2 AND job = $3 FOR UPDATE", *key
    )
    if row is not None and row[0] > now and row[1] is None:
        raise ContractError([Violation("job", f"{key} is being restored", "Wait until that has ended.", 409)])
    await tx.execute(
        """INSERT INTO restores (project, spider, job, token, expires) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (project, spider, job) DO UPDATE
           SET token = excluded.token, expires = excluded.expires, records = 0, failure = NULL""",
        *key,
        token,
        now + duration,
    )
    return Restore(key, token, archives)


async def _archives(tx: Transaction, key: JobKey) -> dict[str, Archived]:
    rows = await tx.fetch(
        """SELECT kind, archive, records FROM record_totals WHERE project = $1 AND spider = $2 AND job = $3
           AND kind IN ('items', 'logs', 'requests', 'samples') AND removed IS NOT NULL AND archive IS NOT NULL
           ORDER BY kind""",
        *key,
    )
    return {kind: Archived(archive, records) for kind, archive, records in rows}


async def _hold(tx: Transaction, restore: Restore, expires: int, records: int = 0) -> None:
    """Renew a restore and add to its number of records; raise :class:`RestoreLostError`."""
    changed = await tx.execute(
        """UPDATE restores SET expires = $5, records = records + $6
           WHERE project = $1 AND spider = $2 AND job = $3 AND token = $4 AND failure IS NULL""",
        *restore.key,
        restore.token,
        expires,
        records,
    )
    if not changed:
        raise RestoreLostError


async def _prepare(tx: Transaction, restore: Restore, expires: int) -> bool:
    """Return true when no chunks of the records are left; else have them removed."""
    await _hold(tx, restore, expires)
    is_empty = True
    for kind in restore.archives:
        owner = _owner(restore.key, kind)
        if await tx.fetchrow(f"SELECT 1 FROM record_chunks WHERE {_OWNED} LIMIT 1", *owner):
            await add_removal(tx, RemovedOwner(owner.project, kind, owner.spider, owner.job))
            is_empty = False
        elif await tx.fetchrow(
            "SELECT 1 FROM removals WHERE project = $1 AND kind = $2 AND number = $3 AND part = $4", *owner
        ):
            is_empty = False
    return is_empty


async def _write(
    tx: Transaction, restore: Restore, kind: str, chunks: Sequence[tuple[int, StoredChunk]], expires: int
) -> None:
    """Store chunks, each with the index of its first record; raise :class:`RestoreLostError`."""
    await _hold(tx, restore, expires, sum(chunk.records for _, chunk in chunks))
    await tx.execute_many(
        """INSERT INTO record_chunks (project, kind, spider, job, start, records, ts, times, body)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
        [(*_owner(restore.key, kind), start, *chunk) for start, chunk in chunks],
    )


async def _finish(tx: Transaction, restore: Restore, now: int) -> None:
    """Make the records readable; raise :class:`RestoreLostError`.

    The caller has compared them with the manifest. Their number is compared with the totals, which a removal keeps.
    """
    job = await get_job(tx, restore.key, lock=True)
    if job is None or job.state is JobState.DELETED:
        raise RestoreLostError
    await _hold(tx, restore, 0)
    for kind in RECORD_KINDS:
        if kind not in restore.archives:
            continue
        owner = _owner(restore.key, kind)
        sums = await tx.fetchrow(
            f"""SELECT CAST(COALESCE(sum(records), 0) AS BIGINT), CAST(COALESCE(sum(length(body)), 0) AS BIGINT)
                FROM record_chunks WHERE {_OWNED}""",
            *owner,
        )
        changed = await tx.execute(
            f"""UPDATE record_totals SET removed = NULL, archive = NULL, stored = $6, restored = $8
                WHERE {_OWNED} AND removed IS NOT NULL AND archive = $7 AND records = $5""",
            *owner,
            *(sums or (0, 0)),
            restore.archives[kind].archive,
            now,
        )
        if not changed:
            raise RestoreLostError
    await tx.execute("DELETE FROM restores WHERE project = $1 AND spider = $2 AND job = $3", *restore.key)
    await save(tx, restore.key, {**job.metadata, "restored_time": now}, now, from_client=False)


async def fail(tx: Transaction, restore: Restore, failure: str) -> None:
    """End a restore, and have removed what it has written."""
    changed = await tx.execute(
        """UPDATE restores SET failure = $5, expires = 0
           WHERE project = $1 AND spider = $2 AND job = $3 AND token = $4""",
        *restore.key,
        restore.token,
        failure[:_LONGEST_FAILURE],
    )
    if changed:
        await _discard(tx, restore.key)


async def _discard(tx: Transaction, key: JobKey) -> None:
    rows = await tx.fetch(
        """SELECT kind FROM record_totals WHERE project = $1 AND spider = $2 AND job = $3
           AND kind IN ('items', 'logs', 'requests', 'samples') AND removed IS NOT NULL ORDER BY kind""",
        *key,
    )
    for (kind,) in rows:
        await add_removal(tx, RemovedOwner(key.project, kind, key.spider, key.job))


async def _clean(tx: Transaction, now: int) -> int:
    """End restores whose process died, and have removed what they have written; return their number."""
    rows = await tx.fetch(
        """SELECT project, spider, job FROM restores WHERE failure IS NULL AND expires < $1
           ORDER BY project, spider, job LIMIT 100 FOR UPDATE SKIP LOCKED""",
        now,
    )
    for row in rows:
        await tx.execute(
            """UPDATE restores SET expires = 0, failure = 'The server was stopped. Restore the job again.'
               WHERE project = $1 AND spider = $2 AND job = $3""",
            *row,
        )
        await _discard(tx, JobKey(*row))
    return len(rows)


async def _state(tx: Transaction, key: JobKey) -> JobRestore | None:
    """Return whether the records of a job can be read; None for an unknown job."""
    job = await get_job(tx, key)
    if job is None:
        return None
    removed = await tx.fetchrow(
        """SELECT count(*), min(archive) FROM record_totals WHERE project = $1 AND spider = $2 AND job = $3
           AND kind IN ('items', 'logs', 'requests', 'samples') AND removed IS NOT NULL""",
        *key,
    )
    if removed is None or not removed[0]:
        return JobRestore(job=str(key), state="available")
    row = await tx.fetchrow(
        "SELECT records, failure FROM restores WHERE project = $1 AND spider = $2 AND job = $3", *key
    )
    if job.state is JobState.DELETED or removed[1] is None:
        return JobRestore(job=str(key), state="removed")
    if row is None:
        return JobRestore(job=str(key), state="archived", archive=removed[1])
    state = "restoring" if row[1] is None else "failed"
    return JobRestore(job=str(key), state=state, archive=removed[1], records=row[0], failure=row[1])


class RestoreStore(EngineStore):
    async def claim(self, key: JobKey, duration: int = DURATION) -> Restore:
        return await self._engine.write(_claim, key, self._clock(), duration)

    async def prepare(self, restore: Restore, duration: int = DURATION) -> bool:
        return await self._engine.write(_prepare, restore, self._clock() + duration)

    async def write(
        self, restore: Restore, kind: str, chunks: Sequence[tuple[int, StoredChunk]], duration: int = DURATION
    ) -> None:
        await self._engine.write(_write, restore, kind, chunks, self._clock() + duration)

    async def finish(self, restore: Restore) -> None:
        await self._engine.write(_finish, restore, self._clock())

    fail = Method("write", fail)
    state = Method("read", _state)

    async def clean(self) -> int:
        """End restores whose process died; return their number."""
        return await self._engine.write(_clean, self._clock())

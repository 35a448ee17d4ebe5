"""Removal of the frontiers and staged items of jobs that are over.

Only a job's own frontier is removed (``job-<spider>-<job>``), and only for a job that exists or existed. A frontier of
any other name belongs to its user. Other jobs may work on a job's frontier, too, to run its dead letters again. So it
stays while one of the jobs with a journal in it may continue. The jobs are locked, so that none of them is resumed
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.frontier import DEAD_LETTERS
from scrapy_ext.api.platform.job_data import COMMITS_COLLECTION, job_of_frontier, job_of_journal, job_of_payload
from scrapy_ext.api.platform.jobs import FINISHED, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.expiry.steps import STEP_ROWS, Steps, fitting
from scrapy_ext.server.store.frontier.frontier import forget_feed, lock_feed
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.records.removal import is_removed_for_good
from scrapy_ext.server.store.removals import SLOT, RemovedOwner, add_removal

#: Time (ms) after the end of a job, in which its process may still delete its frontier itself.
GRACE: Final = 3600 * 1000
_JOB: Final = "project = $1 AND spider = $2 AND job = $3"
#: Names of frontiers per page.
_PAGE: Final = 200
#: The names of own frontiers are between these, in the order of bytes.
_OWN: Final = ("job-", "job.")


class FrontierAges(NamedTuple):
    """Times (ms): frontiers of jobs that ended at ``ended`` or earlier go, those with requests at ``requests``."""

    ended: int
    requests: int


class _Slot(NamedTuple):
    name: str
    number: int


async def remove_frontiers(engine: Engine, ages: FrontierAges) -> Steps:
    """Remove own frontiers of jobs that cannot continue."""
    for project in await engine.read(_projects, "frontier slot"):
        after = _OWN[0]
        while names := await engine.read(_names, project, after):
            for name in await engine.read(_over, project, names, ages):
                yield await engine.write(_remove_frontier, project, name, ages)
            yield 0
            after = names[-1]


async def remove_staged_items(engine: Engine, ended: int) -> Steps:
    """Remove the staged items of jobs that ended at ``ended`` (ms) or earlier, and cannot continue."""
    for project in await engine.read(_projects, "collection"):
        number = await engine.read(_commits_collection, project)
        after = _OWN[0].encode()
        while number is not None and (prefix := await engine.read(_next_prefix, project, number, after)) is not None:
            while removed := await engine.write(_remove_staged, project, number, prefix, ended):
                yield removed
            yield 0
            after = _end_of(prefix)


async def _projects(tx: Transaction, counter: str) -> list[int]:
    rows = await tx.fetch("SELECT project FROM counters WHERE name = $1 ORDER BY project", counter)
    return [row[0] for row in rows]


# ── frontiers ──


async def _names(tx: Transaction, project: int, after: str) -> list[str]:
    """Return the names of the next frontiers that may be a job's own."""
    rows = await tx.fetch(
        """SELECT DISTINCT frontier FROM frontier_slots WHERE project = $1 AND frontier > $2 AND frontier < $3
           ORDER BY frontier LIMIT $4""",
        project,
        after,
        _OWN[1],
        _PAGE,
    )
    return [row[0] for row in rows]


async def _over(tx: Transaction, project: int, names: Sequence[str], ages: FrontierAges) -> list[str]:
    """Return the names of frontiers of jobs that are over."""
    over = []
    for name in names:
        own = job_of_frontier(project, name)
        ended = None if own is None else await _end_of_job(tx, own)
        if ended is not None and ended <= ages.ended:
            over.append(name)
    return over


async def _remove_frontier(tx: Transaction, project: int, name: str, ages: FrontierAges) -> int:
    own = job_of_frontier(project, name)
    if own is None:
        return 0
    workers = _workers(project, await _slots(tx, project, name))
    ended = await _ended(tx, [own, *workers])
    if ended is None or ended > ages.ended:
        return 0
    await lock_feed(tx, project, name)
    slots = await _slots(tx, project, name, lock=True)
    if _workers(project, slots) != workers:  # another job has begun to work on it
        return 0
    job = await get_job(tx, own)
    is_kept_for_requests = job is not None and job.state is not JobState.DELETED
    if is_kept_for_requests and ended > ages.requests and await _has_requests(tx, project, slots):
        return 0
    for slot in slots:
        await tx.execute(
            "DELETE FROM frontier_slots WHERE project = $1 AND frontier = $2 AND slot = $3 AND number = $4",
            *(project, name, *slot),
        )
        await add_removal(tx, RemovedOwner(project, SLOT, slot.number))
    await forget_feed(tx, project, name)
    return len(slots)


async def _slots(tx: Transaction, project: int, name: str, *, lock: bool = False) -> list[_Slot]:
    """Return the slots of a frontier, locked with ``lock``."""
    query = "SELECT slot, number FROM frontier_slots WHERE project = $1 AND frontier = $2 ORDER BY slot"
    rows = await tx.fetch(f"{query} FOR UPDATE" if lock else query, project, name)
    return [_Slot(*row) for row in rows]


def _workers(project: int, slots: Sequence[_Slot]) -> list[JobKey]:
    """Return the jobs that have a journal in a frontier."""
    return [key for slot in slots if (key := job_of_journal(project, slot.name)) is not None]


async def _has_requests(tx: Transaction, project: int, slots: Sequence[_Slot]) -> bool:
    """Return true for dead letters, and for requests that were put back and that no crawl has read yet."""
    for slot in slots:
        if not slot.name.isdigit() and slot.name != DEAD_LETTERS:
            continue  # a journal
        row = await tx.fetchrow(
            "SELECT 1 FROM frontier_batches WHERE project = $1 AND slot = $2 LIMIT 1", project, slot.number
        )
        if row is not None:
            return True
    return False


# ── staged items ──


async def _commits_collection(tx: Transaction, project: int) -> int | None:
    row = await tx.fetchrow(
        "SELECT collection FROM collections WHERE project = $1 AND name = $2 AND type = 's'",
        project,
        COMMITS_COLLECTION,
    )
    return row[0] if row else None


async def _next_prefix(tx: Transaction, project: int, number: int, after: bytes) -> bytes | None:
    """Return the next prefix ``<frontier>/<journal>/`` of keys."""
    row = await tx.fetchrow(
        """SELECT key FROM collection_records WHERE project = $1 AND collection = $2 AND key >= $3 AND key < $4
           ORDER BY key LIMIT 1""",
        *(project, number, after, _OWN[1].encode()),
    )
    return b"".join(part + b"/" for part in bytes(row[0]).split(b"/")[:2]) if row else None


def _end_of(prefix: bytes) -> bytes:
    """Return the lowest key above all keys with a prefix, which ends in a slash."""
    return prefix[:-1] + b"0"


async def _remove_staged(tx: Transaction, project: int, number: int, prefix: bytes, ended: int) -> int:
    own, writer = job_of_frontier(project, prefix.decode().split("/")[0]), job_of_payload(project, prefix.decode())
    if own is None or writer is None:
        return 0
    since = await _ended(tx, [own, writer])
    if since is None or since > ended:
        return 0
    rows = await tx.fetch(
        """SELECT length(value), key FROM collection_records
           WHERE project = $1 AND collection = $2 AND key >= $3 AND key < $4
           ORDER BY key LIMIT $5 FOR UPDATE SKIP LOCKED""",
        *(project, number, prefix, _end_of(prefix), STEP_ROWS),
    )
    doomed = fitting(rows)
    await tx.execute_many(
        "DELETE FROM collection_records WHERE project = $1 AND collection = $2 AND key = $3",
        [(project, number, key) for _, key in doomed],
    )
    return len(doomed)


# ── the end of jobs ──


async def _ended(tx: Transaction, keys: Iterable[JobKey]) -> int | None:
    """Lock jobs; return the time (ms) since which none of them can continue, or None when one may."""
    ended = 0
    for key in sorted(set(keys)):
        await tx.fetchrow(f"SELECT 1 FROM jobs WHERE {_JOB} FOR UPDATE", *key)
        each = await _end_of_job(tx, key)
        if each is None:
            return None
        ended = max(ended, each)
    return ended


async def _end_of_job(tx: Transaction, key: JobKey) -> int | None:
    row = await tx.fetchrow(f"SELECT state, changed FROM jobs WHERE {_JOB}", *key)
    if row is None:
        # A number above the counter is part of a name that a user has chosen.
        row = await tx.fetchrow(
            "SELECT 1 FROM counters WHERE project = $1 AND name = $2 AND value >= $3",
            *(key.project, f"job {key.spider}", key.job),
        )
        return 0 if row else None
    state, changed = row
    if await tx.fetchrow(f"SELECT 1 FROM attempts WHERE {_JOB} AND node <> ''", *key) is not None:
        return None
    is_over = state == JobState.DELETED.value or (state == JobState.FINISHED.value and await _is_final(tx, key))
    return changed if is_over else None


async def _is_final(tx: Transaction, key: JobKey) -> bool:
    """Return true when a finished job is not resumed: it was complete, or its records were removed."""
    job = await get_job(tx, key)
    is_complete = job is not None and job.metadata.get("close_reason") == FINISHED
    return is_complete or await is_removed_for_good(tx, key)

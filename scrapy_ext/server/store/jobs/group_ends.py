"""Ends of workers of a group, and the end of the job with its last worker.

A worker of a node ends when its process has (:mod:`.attempts`), any other one with its last report (:mod:`.groups`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scrapy_ext.api.platform.jobs import FINISHED, SHUTDOWN, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.workers import Closing
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs.attempt_rows import AttemptRow, RemovedRow, rows_of, stats_of
from scrapy_ext.server.store.jobs.group_places import set_vacant, wanted
from scrapy_ext.server.store.jobs.group_rows import Group, lock_group, save_group
from scrapy_ext.server.store.jobs.group_stats import job_fields
from scrapy_ext.server.store.jobs.rows import StoredJob, get_job, save
from scrapy_ext.server.store.jobs.states import Stamp


class EndedWorker(NamedTuple):
    """A worker whose row was removed. ``outcome``: close reason of its crawl, or of its node for it.

    ``lost``: it was killed, or its node has died. ``fields``: metadata of the job that its node sets.
    """

    removed: RemovedRow
    outcome: str | None
    lost: bool = False
    fields: Mapping[str, Any] = {}


async def worker_ended(tx: Transaction, key: JobKey, worker: EndedWorker, stamp: Stamp) -> bool:
    """Store the end of a worker, and the end of the job if it was the last one; return false without a group."""
    group = await lock_group(tx, key)
    if group is None:
        return False
    group = _without(group, worker, stamp.now)
    job = await get_job(tx, key, lock=True)
    if job is not None:
        group = group.closed_with(job)
        job = job._replace(metadata={**job.metadata, **worker.fields})
        rows = await rows_of(tx, key)
        if rows:
            await write_stats(tx, job, group, rows, stamp.now)
            if worker.removed.row.node:
                await set_vacant(tx, key, wanted(group, rows))
        else:
            await _end_job(tx, job, group, worker, stamp)
            group = group._replace(ended=group.ended.next_run())
    await save_group(tx, key, group)
    return True


def _without(group: Group, worker: EndedWorker, now: int) -> Group:
    group = group._replace(ended=group.ended.plus(worker.removed, None if worker.lost else worker.outcome))
    attempt = worker.removed.row.attempt
    if worker.lost:
        return group.lost(attempt, now)
    if worker.outcome in (None, FINISHED, SHUTDOWN):
        return group
    return group.closed(Closing(worker.outcome or "", attempt=attempt))


async def _end_job(tx: Transaction, job: StoredJob, group: Group, worker: EndedWorker, stamp: Stamp) -> None:
    """End a job whose last worker has ended, or make it wait again."""
    reason = _reason(group, worker)
    job = await _with_stats(tx, job, group, (), group.ended.run((), stamp.now, reason))
    await set_vacant(tx, job.key, 0)
    if reason is None:
        await job_states.wait_again(tx, job, stamp)
    else:
        await job_states.end_job(tx, job, reason, {}, stamp)


def _reason(group: Group, last: EndedWorker) -> str | None:
    """Return the close reason of a job; None: it waits again, which a job without a node cannot."""
    if group.closing is not None:
        return group.closing.reason
    if group.ended.found_end:
        return FINISHED
    return None if last.removed.row.node else SHUTDOWN


async def write_stats(tx: Transaction, job: StoredJob, group: Group, rows: Sequence[AttemptRow], now: int) -> None:
    """Store the stats of a group in the metadata of its locked job."""
    job = await _with_stats(tx, job, group, rows, group.ended.run(rows, now))
    await save(tx, job.key, job.metadata, now, from_client=False)


async def _with_stats(
    tx: Transaction, job: StoredJob, group: Group, rows: Sequence[AttemptRow], run: Mapping[str, Any]
) -> StoredJob:
    """Return a job with the stats of its group and the row of this run; a deleted one keeps none."""
    if job.state is JobState.DELETED:
        return job
    stats = group.ended.with_live(rows, await stats_of(tx, job.key))
    fields = job_fields(job.metadata, stats, run)
    return job._replace(metadata={**job.metadata, **fields})

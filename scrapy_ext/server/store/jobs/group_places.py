"""Places of a group on nodes: how many have no worker, and which nodes fill them.

``jobs.vacant`` counts them, and follows from the group and its workers (:func:`wanted`). It is changed under the lock
of the group's row, before that of the job.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ext.api.platform.job_data import frontier_of
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.scaling import has_room, proposal
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS, Bounds
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.attempt_rows import AttemptRow, add_row, lowest_free, new_row, rows_of
from scrapy_ext.server.store.jobs.group_rows import Group, lock_group, open_group, save_group
from scrapy_ext.server.store.jobs.group_shares import allowed
from scrapy_ext.server.store.jobs.rows import StoredJob, get_job, save, workers_of
from scrapy_ext.server.store.jobs.states import ACTIVE


def wanted(group: Group, rows: Sequence[AttemptRow]) -> int:
    """Return the number of places without a worker: none once the crawl closes, or its workers have found its end."""
    is_over = group.closing is not None or group.ended.found_end or (rows and not any(row.crawls for row in rows))
    return 0 if is_over else max(group.target - len(rows), 0)


async def set_vacant(tx: Transaction, key: JobKey, places: int) -> None:
    """Store the number of places without a worker."""
    await tx.execute(
        "UPDATE jobs SET vacant = $4 WHERE project = $1 AND spider = $2 AND job = $3 AND vacant <> $4", *key, places
    )


async def scaled(tx: Transaction, key: JobKey, group: Group, rows: Sequence[AttemptRow], now: int) -> Group:
    """Return the group with the number of workers that their load needs, if nodes run them."""
    live = [row for row in rows if row.crawls]
    if group.closing is not None or group.ended.found_end or not live or not all(row.node for row in live):
        return group
    loads = [row.state.load for row in live]
    bounds, unchanged = Bounds(group.least, group.most), (now - group.changed) / 1000
    target = proposal(group.target, bounds, loads, unchanged)
    if target > max(group.target, bounds.least) and not has_room(await allowed(tx, key), loads):
        target = proposal(group.target, bounds, loads, unchanged, has_room=False)
    return group if target == group.target else group._replace(target=target, changed=now)


def beyond_target(group: Group, rows: Sequence[AttemptRow]) -> frozenset[int]:
    """Return the attempts of the workers of nodes that are to leave: those with the highest numbers."""
    live = [row.attempt for row in rows if row.node and row.crawls]
    return frozenset(live[group.target :])


async def lock_pending_group(tx: Transaction, key: JobKey, now: int) -> tuple[StoredJob, Group | None] | None:
    """Lock a pending job, with its group if it has one or is to have one; None if it is not pending, or was changed
    meanwhile."""
    before = await get_job(tx, key)
    bounds = None if before is None else workers_of(before.metadata)
    if bounds is not None:
        await open_group(tx, key, bounds, now)
    group = await lock_group(tx, key)
    job = await get_job(tx, key, lock=True)
    if job is None or job.state is not JobState.PENDING or workers_of(job.metadata) != bounds:
        return None
    return job, group


async def begin_group(tx: Transaction, job: StoredJob, group: Group, now: int) -> int:
    """Begin a run of a locked job and group with its first worker; return the number of its attempt."""
    group = group.bounded(workers_of(job.metadata) or Bounds(1, 1), now)
    group = group._replace(last_attempt=group.last_attempt + 1, start_attempt=None)
    await save_group(tx, job.key, group)
    await set_vacant(tx, job.key, group.target - 1)
    return group.last_attempt


async def fill_place(tx: Transaction, key: JobKey, node: str, units: int, now: int) -> int | None:
    """Add a worker of a running job on a node; return the number of its attempt, None if no place is vacant."""
    group, job = await lock_group(tx, key), await get_job(tx, key, lock=True)
    if group is None or job is None or job.state is not JobState.RUNNING:
        return None
    rows = await rows_of(tx, key)
    places = wanted(group.closed_with(job), rows)
    await set_vacant(tx, key, max(places - 1, 0))
    if not places:
        return None
    number = group.last_attempt + 1
    await save_group(tx, key, group._replace(last_attempt=number))
    await add_row(tx, key, new_row(number, lowest_free(rows), node, now), units)
    return number


async def set_bounds(tx: Transaction, key: JobKey, bounds: Bounds, now: int) -> None:
    """Change the bounds of the number of workers of a job, and its present number as far as they need it."""
    group, job = await lock_group(tx, key), await get_job(tx, key, lock=True)
    if job is None or job.state is JobState.DELETED:
        raise _refused(f"{key} does not exist", "Name a job that runs.", 404)
    if job.state not in ACTIVE:
        raise _refused(f"{key} is {job.state.value}", "Start a new job.")
    rows = await rows_of(tx, key)
    if job.state is JobState.RUNNING and (group is None or not any(row.node for row in rows)):
        raise _refused(f"{key} runs, and no node can add workers to it", f"Start it again, with {JOB_WORKERS}.")
    slots = await _slots_of(tx, key)
    if slots is not None and bounds.most > max(slots, 0 if group is None else group.most):
        rule = f"{key} has a frontier of {slots} slots, each of which is in one worker: {bounds.most} are too many"
        raise _refused(rule, f"Choose {slots} at most, or start a new job with a higher FRONTIER_SLOTS.")
    await save(tx, key, {**job.metadata, JOB_WORKERS: bounds.text}, now)
    if group is None:
        return
    group = group.bounded(bounds, now)
    await save_group(tx, key, group)
    if job.state is JobState.RUNNING:
        await set_vacant(tx, key, wanted(group.closed_with(job), rows))


async def _slots_of(tx: Transaction, key: JobKey) -> int | None:
    """Return the number of slots that a job has declared for its own frontier."""
    row = await tx.fetchrow(
        "SELECT slots FROM frontier_feeds WHERE project = $1 AND frontier = $2", key.project, frontier_of(key)
    )
    return None if row is None else int(row[0])


def _refused(rule: str, remedy: str, status: int = 409) -> ContractError:
    return ContractError([Violation("job", rule, remedy, status)])

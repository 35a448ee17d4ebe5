"""Groups: the workers of one job, and their reports.

Rules:

- Each decision about a group is made in the transaction of whichever report comes first, under the lock of the group's
  row: who runs ``start()``, whether the crawl closes, and whether this worker was the last one.
- Locks are taken in this order: attempts by number, group, job, shares by name, activity. A report locks its own
  attempt, and those that it names as silent.
- ``closing`` is written once in a run. A job ends when its last worker has: with ``closing``, or else as finished if
  a worker has found the end of the crawl and none was lost since. Without either, a job of nodes waits again.
- The attempts of a job are numbered from ``worker_groups.last_attempt``, and no number is used again.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import FINISHED, SHUTDOWN, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS, MOST_WORKERS, Bounds, bounds_of
from scrapy_ext.api.platform.workers import (
    Closing,
    Report,
    ReportAnswer,
    Silent,
    reason_text,
)
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Method, Transaction
from scrapy_ext.server.store.fencing import Attempt, over
from scrapy_ext.server.store.jobs.attempt_rows import (
    AttemptRow,
    add_row,
    lock_local,
    lock_row,
    lowest_free,
    new_row,
    remove_row,
    rows_of,
    store_report,
)
from scrapy_ext.server.store.jobs.group_ends import EndedWorker, worker_ended, write_stats
from scrapy_ext.server.store.jobs.group_places import beyond_target, scaled, set_bounds, set_vacant, wanted
from scrapy_ext.server.store.jobs.group_rows import Group, has_group, lock_group, open_group, save_group
from scrapy_ext.server.store.jobs.group_shares import Given, take_shares
from scrapy_ext.server.store.jobs.group_state import count_workers, group_counts, group_state, listed
from scrapy_ext.server.store.jobs.rows import get_job, save
from scrapy_ext.server.store.jobs.states import Stamp

#: User name in changes of jobs that their workers make.
WORKERS: Final = "workers"
#: Upper bounds of the buckets of :class:`ReportTimes`, in seconds.
REPORT_BOUNDS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class _Reporting(NamedTuple):
    """A report in its transaction. ``own``: the locked row of its worker."""

    tx: Transaction
    key: JobKey
    report: Report
    stamp: Stamp
    own: AttemptRow

    @property
    def is_new(self) -> bool:
        """False for a repeated report, which changes nothing."""
        return self.report.number > self.own.number


async def _report(tx: Transaction, key: JobKey, report: Report, stamp: Stamp) -> ReportAnswer:
    own = await (_joined(tx, key, report, stamp.now) if report.is_join else _locked(tx, key, report))
    this = _Reporting(tx, key, report, stamp, own)
    before, job = await lock_group(tx, key), await get_job(tx, key)
    if before is None or job is None:
        raise _no_group(key)
    group = await _applied(this, before) if this.is_new else before
    group = group.closed_with(job)
    rows = await rows_of(tx, key)
    if this.is_new:
        group = _with_starter(group, own, rows)
        group = await scaled(tx, key, group, rows, stamp.now)
    if group != before:
        await save_group(tx, key, group)
        if own.node:
            await set_vacant(tx, key, wanted(group, rows))
    given = Given({}, {})
    if this.is_new:
        live = {row.attempt for row in rows if not row.has_ended}
        given = await take_shares(tx, key, own.attempt, report, live)
        rows = await _with_end(this, group, rows)
    return _answer(this, group, rows, given)


def _answer(this: _Reporting, group: Group, rows: Sequence[AttemptRow], given: Given) -> ReportAnswer:
    is_join, own = this.report.nonce is not None, this.own
    return ReportAnswer(
        attempt=own.attempt if is_join else None,
        worker=own.worker if is_join else None,
        workers=tuple(row.live for row in rows),
        closing=group.closing,
        leave=own.attempt in beyond_target(group, rows),
        run_start=group.start_attempt == own.attempt and not group.started,
        started=group.started,
        unfinished=group.ended.unfinished,
        permits={**given.permits},
        grants={**given.grants},
        totals=group.ended.totals(rows, this.stamp.now),
    )


async def _locked(tx: Transaction, key: JobKey, report: Report) -> AttemptRow:
    """Lock the attempt of a report and those that it names, by number; return its own."""
    number = report.attempt or 0
    named = sorted({number, *(each.attempt for each in report.silent)})
    rows = {attempt: await lock_row(tx, key, attempt) for attempt in named}
    own = rows[number]
    if own is None:
        raise ContractError([over(Attempt(key, number))]) if await has_group(tx, key) else _no_group(key)
    return own


async def _applied(this: _Reporting, group: Group) -> Group:
    """Store a new report; return the group after it."""
    report, own, now = this.report, this.own, this.stamp.now
    await store_report(this.tx, this.key, own, report, now)
    if group.ended.began is None:
        group = group._replace(ended=msgspec.structs.replace(group.ended, began=now))
    if report.start is not None and group.start_attempt != own.attempt:
        raise _refused("start", f"is sent by attempt {own.attempt}, and another runs start()", "Leave it out.")
    if report.start == "done":
        group = group._replace(started=True)
    if report.last and report.outcome == FINISHED and report.unfinished in (None, group.ended.unfinished):
        group = group._replace(ended=msgspec.structs.replace(group.ended, found_end=True))
    for silent in report.silent:
        group = await _without_silent(this, group, silent)
    # A node stops the process of a worker by a signal: then this worker leaves, and the others go on.
    if (reason := reason_text(report.closing)) and not (own.node and reason == SHUTDOWN):
        group = group.closed(Closing(reason, attempt=own.attempt))
    return group


async def _without_silent(this: _Reporting, group: Group, silent: Silent) -> Group:
    """Remove a worker that has sent no other report and has not ended. Its token writes nothing from then on."""
    tx, key = this.tx, this.key
    row = await lock_row(tx, key, silent.attempt)
    if row is None or row.attempt == this.own.attempt or row.number != silent.number or row.has_ended:
        return group
    removed = await remove_row(tx, key, row.attempt)
    if removed is None:
        return group
    return group._replace(ended=group.ended.plus(removed)).lost(row.attempt, this.stamp.now)


def _with_starter(group: Group, own: AttemptRow, rows: Sequence[AttemptRow]) -> Group:
    """Return the group, whose ``start()`` this worker runs if no other one does."""
    if group.started or group.closing is not None:
        return group
    able = {row.attempt for row in rows if row.crawls}
    if group.start_attempt in able or own.attempt not in able:
        return group
    return group._replace(start_attempt=own.attempt)


async def _with_end(this: _Reporting, group: Group, rows: Sequence[AttemptRow]) -> list[AttemptRow]:
    """Store stats, and the end of a worker that no node runs; return the workers that are left.

    The worker with the lowest number writes the stats of the job.
    """
    tx, key, report, stamp, own = this
    left = [row for row in rows if row.attempt != own.attempt or row.node]
    if report.last and len(left) < len(rows):
        removed = await remove_row(tx, key, own.attempt)
        if removed is not None:
            await worker_ended(tx, key, EndedWorker(removed, removed.row.outcome), stamp)
        return left
    writer = next((row.attempt for row in rows if not row.has_ended), None)
    if report.stats is not None and own.attempt == writer:
        job = await get_job(tx, key, lock=True)
        if job is not None and job.state is JobState.RUNNING:
            await write_stats(tx, job, group, rows, stamp.now)
    return list(rows)


# ── joins of workers that no node runs ──


async def _joined(tx: Transaction, key: JobKey, report: Report, now: int) -> AttemptRow:
    """Return the attempt of a worker that joins: a new one, or that of the same join before."""
    if report.resume:
        await lock_local(tx, key)
    bounds = None if report.workers is None else bounds_of(report.workers)
    group = await _group_of_running(tx, key, bounds, now)
    rows = await rows_of(tx, key)
    known = next((row for row in rows if row.state.nonce == report.nonce), None)
    if known is not None:
        return known
    if any(row.node for row in rows):
        raise _refused("job", f"{key} runs on nodes, which start its workers", "Start a new job.")
    if report.resume:
        group = await _without_former(tx, key, group, rows)
        group, rows = group.resumed(bounds, now), []
    if len(rows) >= MOST_WORKERS:
        raise _refused("job", f"{key} has {len(rows)} workers", "Start fewer.")
    group = group._replace(last_attempt=group.last_attempt + 1)
    await save_group(tx, key, group)
    row = new_row(group.last_attempt, lowest_free(rows), "", now, report.nonce or "")
    await add_row(tx, key, row)
    return row


async def _group_of_running(tx: Transaction, key: JobKey, bounds: Bounds | None, now: int) -> Group:
    """Lock the group of a running job. With ``bounds``, make that of a job that has none."""
    if bounds is not None:
        await open_group(tx, key, bounds, now)
    group = await lock_group(tx, key)
    job = await get_job(tx, key)  # after the lock: another worker may just have ended the job
    if group is None or job is None:
        raise _no_group(key)
    if job.state is not JobState.RUNNING:
        raise _refused("job", f"{key} is {job.state.value}, and takes no workers", "Resume it, or start a new one.")
    if bounds is not None and job.metadata.get(JOB_WORKERS) != bounds.text:
        await _note_bounds(tx, key, bounds, now)
    return group


async def _note_bounds(tx: Transaction, key: JobKey, bounds: Bounds, now: int) -> None:
    """Store the bounds in the metadata of the job, where lists and pages find them."""
    job = await get_job(tx, key, lock=True)
    if job is not None:
        await save(tx, key, {**job.metadata, JOB_WORKERS: bounds.text}, now, from_client=False)


async def _without_former(tx: Transaction, key: JobKey, group: Group, former: Sequence[AttemptRow]) -> Group:
    """Remove the workers of a former start, of which none is alive; return the group without them."""
    for row in former:
        removed = await remove_row(tx, key, row.attempt)
        if removed is not None:
            group = group._replace(ended=group.ended.plus(removed))
    return group


def _no_group(key: JobKey) -> ContractError:
    rule = f"{key} does not exist, or has no group of workers"
    return ContractError([Violation("job", rule, "Join with the number of workers, which makes the group.", 404)])


def _refused(field: str, rule: str, remedy: str) -> ContractError:
    return ContractError([Violation(field, rule, remedy, 409)])


class ReportTimes:
    """Number and durations of the reports that this process has stored, for the metrics."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(REPORT_BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(REPORT_BOUNDS, seconds)] += 1
        self.seconds += seconds


async def _worker(tx: Transaction, attempt: Attempt) -> int | None:
    """Return the worker number of an attempt; None if its job has no group, or it is over."""
    if not await has_group(tx, attempt.key):
        return None
    return next((row.worker for row in await rows_of(tx, attempt.key) if row.attempt == attempt.number), None)


class GroupStore(EngineStore):
    """The groups of jobs."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        self.times = ReportTimes()

    listed = Method("read", listed)
    state = Method("read", group_state)
    count = Method("read", count_workers)
    counts = Method("read", group_counts)
    worker = Method("read_inline", _worker)

    async def open(self, key: JobKey, least: int, most: int) -> None:
        """Make the group of a job, unless it has one."""
        await self._engine.write(open_group, key, Bounds(least, most), self._clock())

    async def set_bounds(self, key: JobKey, bounds: Bounds) -> None:
        """Change the bounds of the number of workers of a job that is pending, or runs on nodes with a group.

        Raises :class:`ContractError` (404, 409).
        """
        await self._engine.write(set_bounds, key, bounds, self._clock())

    async def report(self, key: JobKey, report: Report) -> ReportAnswer:
        """Store a report of a worker, or the join of one. The answer to a join has no token.

        Raises :class:`ContractError`: 403 when the attempt is over, 404 without a group, 409 for a report that the
        state of the group does not allow.
        """
        began = time.monotonic()
        answer = await self._engine.write(_report, key, report, Stamp(WORKERS, self._clock()))
        self.times.add(time.monotonic() - began)
        return answer

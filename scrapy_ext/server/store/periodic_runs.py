"""Runs of periodic jobs: planning of their times, and adding the jobs of each run once.

Rules:

- A run is claimed under a lock of its schedule's row, while ``next_run`` is still the due time. The same transaction
  adds the jobs and advances ``next_run``, so that one of several servers does it, completely or not at all.
- Several missed minutes are one run, if the newest of them is less than :data:`CATCH_UP` ago; otherwise an activity
  message reports them as missed.
- A minute does not run again when the clock is set back, unless by more than :data:`SET_BACK`: then the clock was wrong
  before, and everything is planned anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.api.platform.webhooks import PERIODIC_ACTIVE, PERIODIC_MISSED, PERIODIC_REFUSED, PeriodicEvent
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob, add_jobs, run_key
from scrapy_ext.server.store.jobs.states import Stamp
from scrapy_ext.server.store.monitor_queue import PlannedRun, RunTask, enqueue_run

_MINUTE: Final = 60_000
#: Maximum age (ms) of the newest missed minute that still runs.
CATCH_UP: Final = 60 * _MINUTE
#: Maximum change (ms) of a clock set back after which past minutes stay known.
SET_BACK: Final = 24 * 60 * _MINUTE
#: Schedules planned or run at once.
_AT_ONCE: Final = 500
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_decode: Final = msgspec.json.Decoder(PeriodicJob).decode


class TaskRun(NamedTuple):
    """The result of a task: the job that was ``added``, or the one that is still active."""

    job: str
    added: bool


class ScheduleState(NamedTuple):
    """A schedule, its next run, and the minute (ms) of its last run with the results of its tasks."""

    schedule: PeriodicJob
    next_run: int | None
    last_run: int | None
    last_jobs: list[TaskRun]


class DueRun(NamedTuple):
    """A schedule whose next run is due, and the due time (ms)."""

    project: int
    number: int
    next_run: int


class ScheduleRun(NamedTuple):
    """The result of a due schedule: minute (ms) and jobs of the run, or the reason why it did not run."""

    due: DueRun
    minute: int
    jobs: list[TaskRun]
    refused: str | None = None


_decode_jobs: Final = msgspec.json.Decoder(list[TaskRun]).decode
STATE_COLUMNS: Final = "definition, next_run, last_run, last_jobs"


def state_of(row: Row) -> ScheduleState:
    """Parse a row of :data:`STATE_COLUMNS`."""
    definition, next_run, last_run, last_jobs = row
    return ScheduleState(_decode(definition), next_run, last_run, _decode_jobs(last_jobs))


def minute_after(cron: str, after: int) -> int | None:
    """Return the first minute (ms) after a time (ms) that an expression matches; raise :class:`ContractError`."""
    found = Cron.parse(cron).next_after(_EPOCH + timedelta(milliseconds=after))
    return None if found is None else (found - _EPOCH) // timedelta(milliseconds=1)


async def plan(tx: Transaction, schedule: PeriodicJob, now: int) -> None:
    """Write the next run of a stored schedule, which replaces an earlier plan."""
    where = (schedule.project, schedule.id)
    row = await tx.fetchrow("SELECT last_run FROM periodic_jobs WHERE project = $1 AND number = $2", *where)
    last = row[0] if row and row[0] is not None else 0
    after = max(now, last) if last - now <= SET_BACK else now
    try:
        next_run = None if schedule.disabled else minute_after(schedule.cron, after)
    # Another writer may have stored an invalid expression.
    except ContractError:
        next_run = None
    await tx.execute(
        "UPDATE periodic_jobs SET next_run = $3, planned = $4 WHERE project = $1 AND number = $2", *where, next_run, now
    )


async def plan_some(tx: Transaction, now: int) -> int:
    """Plan schedules that were planned before the clock was set back by days; return their number."""
    rows = await tx.fetch(
        """SELECT definition FROM periodic_jobs WHERE planned > $1
           ORDER BY project, number LIMIT $2 FOR UPDATE""",
        now + SET_BACK,
        _AT_ONCE,
    )
    for row in rows:
        await plan(tx, _decode(row[0]), now)
    return len(rows)


async def find_due(tx: Transaction, now: int) -> list[DueRun]:
    """Return the due schedules, longest waiting first."""
    rows = await tx.fetch(
        """SELECT project, number, next_run FROM periodic_jobs WHERE next_run <= $1
           ORDER BY next_run, project, number LIMIT $2""",
        now,
        _AT_ONCE,
    )
    return [DueRun(*row) for row in rows]


async def next_due(tx: Transaction) -> int | None:
    """Return the time (ms) of the next due schedule."""
    row = await tx.fetchrow("SELECT next_run FROM periodic_jobs WHERE next_run IS NOT NULL ORDER BY next_run LIMIT 1")
    return row[0] if row else None


async def run_due(tx: Transaction, due: DueRun, now: int, refused: str | None = None) -> ScheduleRun | None:
    """Add the jobs of a due schedule, and plan its next run; None when another server did, or the schedule changed.

    With a reason in ``refused``, no job is added.
    """
    row = await tx.fetchrow(
        f"""SELECT {STATE_COLUMNS} FROM periodic_jobs
            WHERE project = $1 AND number = $2 AND next_run = $3 FOR UPDATE""",
        *due,
    )
    if row is None:
        return None
    state = state_of(row)
    schedule = state.schedule
    minute, following = None, None
    try:
        minute, following = _newest(schedule.cron, due.next_run, now), minute_after(schedule.cron, now)
    except ContractError as error:
        refused = str(error)
    stamp = Stamp(f"periodic job {schedule.id}", now)
    if refused is not None:
        run, events = ScheduleRun(due, due.next_run, [], refused), [_refused(schedule, refused, stamp)]
    elif minute is None:
        run, events = ScheduleRun(due, due.next_run, [], "missed"), [_missed(schedule, due, stamp)]
    else:
        added = await add_jobs(tx, due.project, list(jobs_of(schedule, minute)), stamp)
        run = ScheduleRun(due, minute, [_task_run(each) for each in added])
        events = list(_still_active(schedule, run.jobs, state.last_jobs, stamp))
    await tx.execute(
        """UPDATE periodic_jobs SET next_run = $3, planned = $4, last_run = $5, last_jobs = $6
           WHERE project = $1 AND number = $2""",
        due.project,
        due.number,
        following,
        now,
        state.last_run if run.refused else run.minute,
        msgspec.json.encode(state.last_jobs if run.refused else run.jobs).decode(),
    )
    await enqueue_run(tx, due.project, _planned(schedule, run), now)
    if events:
        await add_events(tx, due.project, [msgspec.json.encode(event) for event in events], now)
    return run


def _planned(schedule: PeriodicJob, run: ScheduleRun) -> PlannedRun:
    """Return the run as monitors of periodic jobs check it."""
    if run.refused is not None:
        return PlannedRun(schedule.id, run.minute, [RunTask(task.name) for task in schedule.tasks], run.refused)
    pairs = zip(schedule.tasks, run.jobs, strict=True)
    return PlannedRun(schedule.id, run.minute, [RunTask(task.name, each.job, each.added) for task, each in pairs])


def _newest(cron: str, due: int, now: int) -> int | None:
    """Return the newest due minute; None when it is too long ago."""
    minute = due if now - due < CATCH_UP else minute_after(cron, now - CATCH_UP)
    if minute is None or minute > now:
        return None
    while (later := minute_after(cron, minute)) is not None and later <= now:
        minute = later
    return minute


def jobs_of(schedule: PeriodicJob, minute: int) -> Iterator[NewJob]:
    """Yield the jobs of the run for a minute (ms)."""
    for task in schedule.tasks:
        metadata: dict[str, Any] = {
            "spider_type": "periodic",
            "periodic_job_id": schedule.id,
            "periodic_time": minute,
            "priority": task.priority,
            "units": 1,
            "tags": list(dict.fromkeys(schedule.addtags)),
        }
        if task.spider_args:
            metadata["spider_args"] = task.spider_args
        if task.script_args:
            metadata["cmd_args"] = task.script_args
        if task.job_workers is not msgspec.UNSET:
            metadata[JOB_WORKERS] = task.job_workers
        yield NewJob(task.name, JobState.PENDING, metadata, run_key(task.name, metadata))


def _task_run(added: JobKey | DuplicateJobError) -> TaskRun:
    return TaskRun(str(added.key), False) if isinstance(added, DuplicateJobError) else TaskRun(str(added), True)


def _still_active(
    schedule: PeriodicJob, jobs: Sequence[TaskRun], before: Sequence[TaskRun], stamp: Stamp
) -> Iterator[PeriodicEvent]:
    """Yield one event per job that is still active, however many runs it outlasts."""
    for task, run in zip(schedule.tasks, jobs, strict=True):
        if not run.added and run not in before:
            message = f"{task.name} was not started again: job {run.job} has not ended."
            yield PeriodicEvent(PERIODIC_ACTIVE, stamp.by, schedule.id, message, run.job)


def _missed(schedule: PeriodicJob, due: DueRun, stamp: Stamp) -> PeriodicEvent:
    message = f"Nothing ran from {_minute_text(due.next_run)} on: no server was running, or its clock was changed."
    return PeriodicEvent(PERIODIC_MISSED, stamp.by, schedule.id, message)


def _refused(schedule: PeriodicJob, why: str, stamp: Stamp) -> PeriodicEvent:
    return PeriodicEvent(PERIODIC_REFUSED, stamp.by, schedule.id, why[:1000])


def _minute_text(time: int) -> str:
    return f"{_EPOCH + timedelta(milliseconds=time):%Y-%m-%d %H:%M} UTC"

"""States of jobs: their changes, the fields that these set, and the activity messages about them.

Rules:

- Every change of state is made by :func:`_enter`, so that row, metadata and message agree, and counted
  (:func:`count_moves`).
- A job is locked before its state is read. Several jobs are locked in the order of their keys, and messages are written
  last, so that no two operations deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import CRAWL_STATS, HOSTED_STATS, SHUTDOWN, TRANSITIONS, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.webhooks import JOB_CANCELLED, JOB_INTERRUPTED, STATE_EVENTS, JobEvent
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store import verdicts
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.places import keep_place
from scrapy_ext.server.store.jobs.rows import PROTECTED, StoredJob, get_job, importing_from, merged, save
from scrapy_ext.server.store.monitor_queue import enqueue_job, forget_job
from scrapy_ext.server.store.projects import hold
from scrapy_ext.server.store.records.removal import deletion_error, find_removed_kinds, has_records, remove_job


class Move(NamedTuple):
    """A job of a spider that passed from one state to another; None: it did not exist before, or does not any more."""

    spider: int
    before: JobState | None
    after: JobState | None


async def count_moves(tx: Transaction, project: int, moves: Iterable[Move]) -> None:
    """Change the numbers of jobs by spider and state: a count of a million jobs reads some rows instead.

    Every operation that adds a job, changes its state or removes its row calls it, after its last lock on a job and
    before it writes activity messages (:ref:`lock-order`).
    """
    changes = Counter[tuple[int, str]]()
    for spider, before, after in moves:
        if before is not None:
            changes[spider, before.value] -= 1
        if after is not None:
            changes[spider, after.value] += 1
    await tx.execute_many(
        """INSERT INTO job_counts (project, spider, state, jobs) VALUES ($1, $2, $3, $4)
           ON CONFLICT (project, spider, state) DO UPDATE SET jobs = job_counts.jobs + excluded.jobs""",
        [(project, *key, change) for key, change in sorted(changes.items()) if change],
    )


#: Fields with the time and the user of a change of state.
ENTERED: Final[Mapping[JobState, tuple[str, str]]] = {
    JobState.PENDING: ("pending_time", "scheduled_by"),
    JobState.RUNNING: ("running_time", "started_by"),
    JobState.FINISHED: ("finished_time", "completed_by"),
    JobState.DELETED: ("deleted_time", "deleted_by"),
}
ACTIVE: Final = (JobState.PENDING, JobState.RUNNING)
#: Close reason of a cancelled job.
CANCELLED: Final = "cancelled"
#: Maximum characters of a reason in an activity message.
_LONGEST_REASON: Final = 200
#: Fields that a deletion removes: input and results of the job. Those that clients add for their own use stay.
_REMOVED_FIELDS: Final = ("spider_args", "job_settings", "environment", "cmd_args", CRAWL_STATS, HOSTED_STATS)
_END_FIELDS: Final = ("finished_time", "completed_by", "close_reason", "cancelled_by")


class Stamp(NamedTuple):
    """User and time (ms) of a change."""

    by: str
    now: int


class Change(NamedTuple):
    """A requested change of a job: its next state (None: unchanged), and metadata to set."""

    key: JobKey
    state: JobState | None
    fields: Mapping[str, Any]


class Happened(NamedTuple):
    """An event for the activity of the project."""

    key: JobKey
    event: str
    reason: str | None = None


async def report(
    tx: Transaction, project: int, happened: Sequence[Happened], stamp: Stamp, moves: Sequence[Move] = ()
) -> None:
    """Count changes of states and write activity messages; last in an operation, since this locks the counts and the
    activity of the project."""
    if moves:
        await count_moves(tx, project, moves)
        await verdicts.refresh(tx, project, [each.spider for each in moves if each.before is JobState.FINISHED])
    if happened:
        messages = [JobEvent(event, str(key), stamp.by, reason) for key, event, reason in happened]
        await add_events(tx, project, [msgspec.json.encode(message) for message in messages], stamp.now)


async def change_jobs(tx: Transaction, project: int, changes: Sequence[Change], stamp: Stamp) -> list[JobState | None]:
    """Make all changes or none; return the previous states of the jobs, None for unknown ones."""
    previous: list[JobState | None] = [None] * len(changes)
    events: dict[int, Happened] = {}
    moves: list[Move] = []
    for place in sorted(range(len(changes)), key=lambda place: changes[place].key):
        key, state, fields = changes[place]
        job = await get_job(tx, key, lock=True)
        if job is None:
            continue
        previous[place] = job.state
        if job.state is JobState.DELETED and state in (None, JobState.DELETED):
            if state is None:
                raise deletion_error(key)
            continue
        metadata = merged(job.metadata, fields)
        if state is not None and state is not job.state:
            _check(key, job.state, state)
            if state is JobState.RUNNING:
                await _check_ended(tx, key)
                await _check_records(tx, key)
            moves.append(await _enter(tx, job, state, metadata, stamp))
            events[place] = Happened(key, STATE_EVENTS[state], _reason(state, metadata))
        # Full metadata keep no job from ending.
        await save(tx, key, metadata, stamp.now, from_client=state is None and not PROTECTED.issuperset(fields))
    await report(tx, project, [events[place] for place in sorted(events)], stamp, moves)
    return previous


def _reason(state: JobState, metadata: Mapping[str, Any]) -> str | None:
    """Return the close reason of a finished job; clients may have stored any JSON there."""
    reason = metadata.get("close_reason")
    return reason[:_LONGEST_REASON] if state is JobState.FINISHED and isinstance(reason, str) else None


async def check_changes(tx: Transaction, changes: Sequence[Change]) -> None:
    """Raise :class:`ContractError` if a change is invalid now; change nothing."""
    states: dict[JobKey, JobState | None] = {}
    for key, state, _ in changes:
        if key not in states:
            job = await get_job(tx, key)
            states[key] = job and job.state
        present = states[key]
        if present is not None and state is not None and state is not present:
            _check(key, present, state)
            states[key] = state


def _check(key: JobKey, present: JobState, wanted: JobState) -> None:
    if wanted in TRANSITIONS[present]:
        return
    allowed = ", ".join(sorted(state.value for state in TRANSITIONS[present])) or "none"
    raise ContractError(
        [
            Violation(
                "state",
                f"of job {key} is {present.value} and cannot become {wanted.value}",
                f"States that can follow: {allowed}. Start a new job instead.",
            )
        ]
    )


async def _check_ended(tx: Transaction, key: JobKey) -> None:
    """Refuse to run a finished job again while a node is still ending its process."""
    row = await tx.fetchrow(
        "SELECT 1 FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 AND node <> ''", *key
    )
    if row is not None:
        rule = f"of job {key} cannot become running: its process has not ended yet"
        raise ContractError([Violation("state", rule, "Try again in a minute, or start a new job.", 409)])


async def _check_records(tx: Transaction, key: JobKey) -> None:
    """Refuse to resume a job whose records were removed: they would begin anew."""
    if kinds := await find_removed_kinds(tx, key):
        rule = f"of job {key} cannot become running: its {', '.join(kinds)} were removed"
        raise ContractError([Violation("state", rule, "Start a new job.", 409)])


async def remove_unlisted(tx: Transaction, key: JobKey, stamp: Stamp) -> bool:
    """Remove records that were stored under a key without a job; return false when there are none."""
    # A new job of the spider waits, and gets another number.
    await hold(tx, key.project, f"job {key.spider}")
    if await get_job(tx, key) is not None or not await has_records(tx, key):
        return False
    await remove_job(tx, key, stamp.now)
    await report(tx, key.project, [Happened(key, STATE_EVENTS[JobState.DELETED])], stamp)
    return True


async def _enter(tx: Transaction, job: StoredJob, state: JobState, metadata: dict[str, Any], stamp: Stamp) -> Move:
    """Change the state in the row, and in ``metadata``, which the caller stores; it also counts the move."""
    key, (entered, entered_by) = job.key, ENTERED[state]
    if state is JobState.RUNNING:  # a finished job may be resumed
        for name in _END_FIELDS:
            metadata.pop(name, None)
    if state is JobState.FINISHED and "cancelled_by" in metadata and metadata.get("close_reason") in (None, SHUTDOWN):
        metadata["close_reason"] = CANCELLED  # the crawl reports a shutdown only
    metadata.update({"state": state.value, entered: stamp.now})
    metadata.setdefault(entered_by, stamp.by)
    if state is JobState.DELETED:
        await keep_place(tx, key, stamp.now)
    await tx.execute(
        "UPDATE jobs SET state = $4, changed = $5 WHERE project = $1 AND spider = $2 AND job = $3",
        *key,
        state.value,
        stamp.now,
    )
    if state not in ACTIVE:
        await tx.execute("UPDATE jobs SET unique_key = NULL WHERE project = $1 AND spider = $2 AND job = $3", *key)
    if state is JobState.DELETED:
        for name in _REMOVED_FIELDS:
            metadata.pop(name, None)
        await remove_job(tx, key, stamp.now)
        await forget_job(tx, key)
    if job.state is JobState.FINISHED:
        await verdicts.forget(tx, key)
    if state is JobState.FINISHED:
        await enqueue_job(tx, key, metadata, stamp.now)
    return Move(key.spider, job.state, state)


async def delete_finished(tx: Transaction, job: StoredJob, stamp: Stamp) -> Move:
    """Delete a locked finished job. The caller counts it, and reports several in one message."""
    metadata = dict(job.metadata)
    move = await _enter(tx, job, JobState.DELETED, metadata, stamp)
    await save(tx, job.key, metadata, stamp.now, from_client=False)
    return move


def next_attempt(job: StoredJob) -> int:
    """Return the number of the next attempt at a job of one worker."""
    return int(job.metadata.get("attempt", 0)) + 1


async def start_on(tx: Transaction, job: StoredJob, node: str, number: int, stamp: Stamp) -> None:
    """Start a locked pending job on a node by the attempt of a number. Then :func:`report_started`."""
    metadata = {**job.metadata, "attempt": number, "node": node}
    await _enter(tx, job, JobState.RUNNING, metadata, stamp)
    await save(tx, job.key, metadata, stamp.now, from_client=False)


async def report_started(tx: Transaction, key: JobKey, stamp: Stamp) -> None:
    move = Move(key.spider, JobState.PENDING, JobState.RUNNING)
    await report(tx, key.project, [Happened(key, STATE_EVENTS[JobState.RUNNING])], stamp, [move])


async def end_job(tx: Transaction, job: StoredJob, reason: str, fields: Mapping[str, Any], stamp: Stamp) -> None:
    """Finish a locked job for a reason, unless it is finished already."""
    metadata, moves = {**job.metadata, **fields}, []
    if job.state in ACTIVE:
        metadata["close_reason"] = reason
        moves.append(await _enter(tx, job, JobState.FINISHED, metadata, stamp))
    await save(tx, job.key, metadata, stamp.now, from_client=False)
    if moves:
        event = Happened(job.key, STATE_EVENTS[JobState.FINISHED], _reason(JobState.FINISHED, metadata))
        await report(tx, job.key.project, [event], stamp, moves)


async def wait_again(tx: Transaction, job: StoredJob, stamp: Stamp) -> None:
    """Make a locked running job pending again, before the jobs that were scheduled after it."""
    metadata = dict(job.metadata)
    if job.state is JobState.RUNNING:
        metadata["state"] = JobState.PENDING.value
        await tx.execute(
            "UPDATE jobs SET state = 'pending', changed = $4 WHERE project = $1 AND spider = $2 AND job = $3",
            *job.key,
            stamp.now,
        )
    await save(tx, job.key, metadata, stamp.now, from_client=False)
    if job.state is JobState.RUNNING:
        move = Move(job.key.spider, JobState.RUNNING, JobState.PENDING)
        await report(tx, job.key.project, [Happened(job.key, JOB_INTERRUPTED)], stamp, [move])


async def start_next(tx: Transaction, project: int, fields: Mapping[str, Any], stamp: Stamp) -> StoredJob | None:
    """Start the next pending job by priority and age; None when none is pending."""
    while True:
        row = await tx.fetchrow(
            """SELECT spider, job FROM jobs WHERE project = $1 AND state = 'pending'
               ORDER BY priority DESC, queued LIMIT 1""",
            project,
        )
        if row is None:
            return None
        key = JobKey(project, *row)
        job = await get_job(tx, key, lock=True)
        if job is None or job.state is not JobState.PENDING:
            continue  # another client has started it meanwhile
        metadata = merged(job.metadata, fields)
        move = await _enter(tx, job, JobState.RUNNING, metadata, stamp)
        await save(tx, key, metadata, stamp.now, from_client=bool(fields))
        await report(tx, project, [Happened(key, STATE_EVENTS[JobState.RUNNING])], stamp, [move])
        return job._replace(state=JobState.RUNNING, changed=stamp.now, updated=stamp.now, metadata=metadata)


async def cancel_jobs(
    tx: Transaction, project: int, keys: Sequence[JobKey], stamp: Stamp, *, named: bool = True
) -> list[JobState | None]:
    """End pending jobs, and request the end of running ones; return their states before, None for unknown jobs.

    No process runs a job that is being imported: raise :class:`ContractError` if it is ``named``, else leave it out.
    """
    states: dict[JobKey, JobState | None] = {}
    happened: list[Happened] = []
    moves: list[Move] = []
    for key in sorted(set(keys)):
        job = await get_job(tx, key, lock=True)
        states[key] = job and job.state
        if job is None or job.state not in ACTIVE:
            continue
        if (source := importing_from(job)) is not None:
            if named:
                raise _importing_error(key, source)
            states[key] = None
            continue
        metadata = {**job.metadata, "cancelled_by": stamp.by}
        if job.state is JobState.PENDING:
            metadata.setdefault("close_reason", CANCELLED)
            moves.append(await _enter(tx, job, JobState.FINISHED, metadata, stamp))
        if "cancelled_by" not in job.metadata:
            happened.append(Happened(key, JOB_CANCELLED))
        await save(tx, key, metadata, stamp.now, from_client=False)
    await report(tx, project, happened, stamp, moves)
    return [states[key] for key in keys]


def _importing_error(key: JobKey, source: str) -> ContractError:
    rule = f"{key} cannot be stopped: it is being imported from {source}, and no process runs it"
    remedy = f"Repeat the import, which completes it, or delete it: scrapy platform delete {key}"
    return ContractError([Violation("job", rule, remedy, 409)])


async def active_jobs(tx: Transaction, project: int, count: int) -> list[JobKey]:
    """Return jobs to cancel: pending ones first, in the reverse of their order of starts."""
    rows = await tx.fetch(
        """SELECT spider, job FROM jobs WHERE project = $1 AND state = 'pending'
           ORDER BY priority, queued DESC LIMIT $2""",
        project,
        count,
    )
    rows += await tx.fetch(
        """SELECT spider, job FROM jobs WHERE project = $1 AND state = 'running'
           ORDER BY changed DESC, spider, job LIMIT $2""",
        project,
        count - len(rows),
    )
    return [JobKey(project, *row) for row in rows]

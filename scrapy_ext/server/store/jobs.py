"""Jobs: their states, metadata, tags and the lists of them.

A job's metadata is one JSON object, read and rewritten within a transaction. What lists are filtered and ordered
by stands in columns beside it (state, when it was entered, spider) and in ``job_tags``; whoever changes one of
them here changes the other in the same operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.activity import JOB_CANCELLED, JOB_COMPLETED, JobEvent
from scrapy_ext.api.platform.jobs import TRANSITIONS, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.counters import advance, hold
from scrapy_ext.server.store.engine import Engine, Transaction
from scrapy_ext.server.store.job_queries import (
    JobFilter,
    Page,
    StoredJob,
    count_jobs,
    get_job,
    list_jobs,
    lock_job,
    lock_jobs,
    projects,
    spider_id,
    spider_keys,
    spider_name,
    tags_of,
)

#: Of a job's metadata, as JSON.
MAX_METADATA_BYTES: Final = 1024 * 1024
#: Metadata that only a change of state sets.
PROTECTED: Final = frozenset({"state", "project", "spider", "key", "_key", "auth"})

#: What entering a state writes: when, and by whom.
_ENTERED: Final[Mapping[JobState, tuple[str, str]]] = {
    JobState.PENDING: ("pending_time", "scheduled_by"),
    JobState.RUNNING: ("running_time", "started_by"),
    JobState.FINISHED: ("finished_time", "completed_by"),
    JobState.DELETED: ("deleted_time", "deleted_by"),
}
_OF_ITS_END: Final = ("finished_time", "completed_by", "close_reason", "cancelled_by")
_ACTIVE: Final = (JobState.PENDING, JobState.RUNNING)
#: The events of the document; others are seen from the hosted service.
_EVENTS: Final = {JobState.FINISHED: JOB_COMPLETED, JobState.DELETED: "job:deleted"}


class DuplicateJobError(Exception):
    """A job with the same unique key is pending or running."""

    def __init__(self, key: JobKey) -> None:
        super().__init__(f"Active job exists with key {key}")
        self.key = key


class Stamp(NamedTuple):
    """Who changes a job, and when (ms)."""

    by: str
    now: int


class Change(NamedTuple):
    """What is to become of a job: its next state, if that changes, and metadata to set."""

    key: JobKey
    state: JobState | None
    fields: Mapping[str, Any]


class JobStore:
    """The jobs of all projects."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    async def add(
        self,
        project: int,
        spider: str,
        state: JobState,
        metadata: Mapping[str, Any],
        *,
        by: str,
        unique_key: str | None = None,
    ) -> JobKey:
        """Create a job; raises :class:`DuplicateJobError`."""
        stamp = Stamp(by, self._clock())
        return await self._engine.write(
            _add, project, spider, state, dict(metadata), unique_key=unique_key, stamp=stamp
        )

    async def get(self, key: JobKey) -> StoredJob | None:
        """One job."""
        return await self._engine.read(get_job, key)

    async def merge(self, key: JobKey, fields: Mapping[str, Any]) -> bool:
        """Set fields of the metadata; the rest stays. Returns whether the job exists."""
        return await self._engine.write(_merge, key, fields, (), self._clock())

    async def remove_field(self, key: JobKey, field: str) -> bool:
        """Remove a field of the metadata; returns whether the job exists."""
        return await self._engine.write(_merge, key, {}, (field,), self._clock())

    async def change(self, changes: Sequence[Change], by: str) -> list[JobState | None]:
        """Bring jobs to states and set fields, all or none; returns the states they were in, None for no such job.

        Raises :class:`ContractError` for a change that jobs do not make.
        """
        return await self._engine.write(_change_all, changes, Stamp(by, self._clock()))

    async def cancel(self, key: JobKey, by: str) -> JobState | None:
        """End a pending job; ask a running one to end. Returns the state it was in, None for no such job."""
        return await self._engine.write(_cancel, key, Stamp(by, self._clock()))

    async def delete(self, keys: Sequence[JobKey], by: str) -> int:
        """Mark jobs as deleted; returns how many were not before."""
        return await self._engine.write(_delete, keys, Stamp(by, self._clock()))

    async def tag(self, keys: Sequence[JobKey], add: Sequence[str], remove: Sequence[str]) -> int:
        """Change the tags of jobs; returns how many jobs there are of these."""
        return await self._engine.write(_tag, keys, add, remove, self._clock())

    async def count(self, project: int, which: JobFilter) -> int:
        """How many jobs match."""
        return await self._engine.read(count_jobs, project, which)

    async def listed(
        self,
        project: int,
        which: JobFilter,
        page: Page,
        *,
        counts: bool = False,
    ) -> list[StoredJob]:
        """Matching jobs, those that changed state last first; with ``counts``, also what they have stored."""
        return await self._engine.read(list_jobs, project, which, page, counts=counts)

    async def spider_id(self, project: int, name: str) -> int | None:
        """The number of a spider."""
        return await self._engine.read(spider_id, project, name)

    async def spider_name(self, project: int, spider: int) -> str | None:
        """The name of a spider."""
        return await self._engine.read(spider_name, project, spider)

    async def spider_keys(self, project: int, spider: str) -> list[JobKey]:
        """The jobs of a spider that are not deleted."""
        return await self._engine.read(spider_keys, project, spider)

    async def projects(self) -> list[int]:
        """The projects that have anything."""
        return await self._engine.read(projects)


async def _add(
    tx: Transaction,
    project: int,
    spider: str,
    state: JobState,
    metadata: dict[str, Any],
    *,
    unique_key: str | None,
    stamp: Stamp,
) -> JobKey:
    await _refuse_duplicate(tx, project, unique_key)
    number = await spider_id(tx, project, spider) or await _new_spider(tx, project, spider)
    key = JobKey(project, number, await advance(tx, project, f"job {number}"))
    entered, entered_by = _ENTERED[state]
    metadata = {**metadata, "project": project, "spider": spider, "state": state.value, entered: stamp.now}
    metadata.setdefault(entered_by, stamp.by)
    while not await tx.execute(
        """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, unique_key, metadata)
           VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8) ON CONFLICT (project, unique_key) DO NOTHING""",
        *key,
        spider,
        state.value,
        stamp.now,
        unique_key if state in _ACTIVE else None,
        _encode(metadata),
    ):
        await _refuse_duplicate(tx, project, unique_key)  # unless the job that was in the way has just ended
    await _index_tags(tx, key, metadata)
    return key


async def _refuse_duplicate(tx: Transaction, project: int, unique_key: str | None) -> None:
    if unique_key is None:
        return
    row = await tx.fetchrow("SELECT spider, job FROM jobs WHERE project = $1 AND unique_key = $2", project, unique_key)
    if row is not None:
        raise DuplicateJobError(JobKey(project, *row))


async def _new_spider(tx: Transaction, project: int, name: str) -> int:
    await hold(tx, project, "spider")
    number = await spider_id(tx, project, name)  # another may have been faster
    if number is None:
        number = await advance(tx, project, "spider")
        await tx.execute("INSERT INTO spiders (project, name, spider) VALUES ($1, $2, $3)", project, name, number)
    return number


def _encode(metadata: Mapping[str, Any]) -> bytes:
    encoded = msgspec.json.encode(metadata)
    if len(encoded) > MAX_METADATA_BYTES:
        raise ContractError(
            [
                Violation(
                    "metadata",
                    f"of a job must be at most {MAX_METADATA_BYTES} bytes of JSON, got {len(encoded)}",
                    "Keep large values in a collection.",
                    413,
                )
            ]
        )
    return encoded


async def _merge(tx: Transaction, key: JobKey, fields: Mapping[str, Any], removed: Iterable[str], now: int) -> bool:
    job = await lock_job(tx, key)
    if job is None:
        return False
    metadata = {**job.metadata, **{name: value for name, value in fields.items() if name not in PROTECTED}}
    for name in removed:
        if name not in PROTECTED:
            metadata.pop(name, None)
    await _store(tx, key, metadata, now)
    return True


async def _store(tx: Transaction, key: JobKey, metadata: Mapping[str, Any], now: int) -> None:
    await tx.execute(
        "UPDATE jobs SET metadata = $4, updated = $5 WHERE project = $1 AND spider = $2 AND job = $3",
        *key,
        _encode(metadata),
        now,
    )
    await _index_tags(tx, key, metadata)


async def _index_tags(tx: Transaction, key: JobKey, metadata: Mapping[str, Any]) -> None:
    tags = set(tags_of(metadata))
    rows = await tx.fetch("SELECT tag FROM job_tags WHERE project = $1 AND spider = $2 AND job = $3", *key)
    present = {row[0] for row in rows}
    await tx.execute_many(
        "DELETE FROM job_tags WHERE project = $1 AND spider = $2 AND job = $3 AND tag = $4",
        [(*key, tag) for tag in present - tags],
    )
    await tx.execute_many(
        "INSERT INTO job_tags (project, spider, job, tag) VALUES ($1, $2, $3, $4)",
        [(*key, tag) for tag in tags - present],
    )


async def _change_all(tx: Transaction, changes: Sequence[Change], stamp: Stamp) -> list[JobState | None]:
    await lock_jobs(tx, [change.key for change in changes])
    return [await _change(tx, *change, stamp) for change in changes]


async def _change(
    tx: Transaction, key: JobKey, state: JobState | None, fields: Mapping[str, Any], stamp: Stamp
) -> JobState | None:
    job = await lock_job(tx, key)
    if job is None:
        return None
    metadata = {**job.metadata, **{name: value for name, value in fields.items() if name not in PROTECTED}}
    if state is not None and state is not job.state:
        if state not in TRANSITIONS[job.state]:
            raise ContractError([_refused(key, job.state, state)])
        await _enter(tx, key, state, metadata, stamp, event=_EVENTS.get(state))
    await _store(tx, key, metadata, stamp.now)
    return job.state


def _refused(key: JobKey, present: JobState, wanted: JobState) -> Violation:
    allowed = ", ".join(sorted(state.value for state in TRANSITIONS[present])) or "none"
    return Violation(
        "state",
        f"of job {key} is {present.value} and cannot become {wanted.value}",
        f"States that can follow: {allowed}. Start a new job instead.",
    )


async def _enter(
    tx: Transaction,
    key: JobKey,
    state: JobState,
    metadata: dict[str, Any],
    stamp: Stamp,
    *,
    event: str | None,
) -> None:
    """Make a change of state, except for storing the metadata, which it completes."""
    entered, entered_by = _ENTERED[state]
    if state is JobState.RUNNING:  # it may have ended before, and goes on now
        for name in _OF_ITS_END:
            metadata.pop(name, None)
    metadata.update({"state": state.value, entered: stamp.now})
    metadata.setdefault(entered_by, stamp.by)
    await tx.execute(
        "UPDATE jobs SET state = $4, changed = $5 WHERE project = $1 AND spider = $2 AND job = $3",
        *key,
        state.value,
        stamp.now,
    )
    if state not in _ACTIVE:
        await tx.execute("UPDATE jobs SET unique_key = NULL WHERE project = $1 AND spider = $2 AND job = $3", *key)
    if event is not None:
        await _report(tx, key, event, stamp)


async def _report(tx: Transaction, key: JobKey, event: str, stamp: Stamp) -> None:
    await add_events(tx, key.project, [msgspec.json.encode(JobEvent(event, str(key), stamp.by))], stamp.now)


async def _cancel(tx: Transaction, key: JobKey, stamp: Stamp) -> JobState | None:
    job = await lock_job(tx, key)
    if job is None or job.state not in _ACTIVE:
        return job and job.state
    metadata = {**job.metadata, "cancelled_by": stamp.by}
    if job.state is JobState.PENDING:
        metadata.setdefault("close_reason", "cancelled")
        await _enter(tx, key, JobState.FINISHED, metadata, stamp, event=None)
    if "cancelled_by" not in job.metadata:
        await _report(tx, key, JOB_CANCELLED, stamp)
    await _store(tx, key, metadata, stamp.now)
    return job.state


async def _delete(tx: Transaction, keys: Sequence[JobKey], stamp: Stamp) -> int:
    await lock_jobs(tx, keys)
    previous = [await _change(tx, key, JobState.DELETED, {}, stamp) for key in keys]
    return sum(state not in (None, JobState.DELETED) for state in previous)


async def _tag(tx: Transaction, keys: Sequence[JobKey], add: Sequence[str], remove: Sequence[str], now: int) -> int:
    await lock_jobs(tx, keys)
    found = 0
    for key in keys:
        job = await lock_job(tx, key)
        if job is None:
            continue
        kept = [tag for tag in tags_of(job.metadata) if tag not in remove]
        tags = list(dict.fromkeys([*kept, *add]))
        await _store(tx, key, {**job.metadata, "tags": tags}, now)
        found += 1
    return found

"""Jobs: adding them, their metadata and tags, and the reasons of their verdicts.

``rows`` describes the row of a job, ``states`` the changes of its state, ``queries`` the lists of jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.platform.jobs import SCRIPT, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.verdicts import Reason
from scrapy_ext.api.platform.webhooks import STATE_EVENTS
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Method, Transaction
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.jobs import queries as job_queries
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs import windows
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage, from_rows, pairs
from scrapy_ext.server.store.jobs.rows import (
    PROTECTED,
    StoredJob,
    encode,
    get_job,
    index_tags,
    merged,
    needs_of,
    priority_of,
    save,
    tags_of,
)
from scrapy_ext.server.store.jobs.states import ACTIVE, ENTERED, Change, Happened, Move, Stamp
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.records.removal import deletion_error, remove_job
from scrapy_ext.server.store.spiders import spider_number
from scrapy_ext.server.store.version_rows import Runnable, held_version

_reasons: Final = msgspec.json.Decoder(list[Reason]).decode


class Judgement(NamedTuple):
    """Reasons of the verdict on a job, the worst first, and the most frequent error of its log in a line."""

    reasons: list[Reason]
    error: str


async def judgements(tx: Transaction, project: int, keys: Sequence[JobKey]) -> dict[JobKey, Judgement]:
    """Return those of the jobs that have a verdict."""
    if not keys:
        return {}
    rows = await tx.fetch(
        f"""SELECT v.spider, v.job, v.reasons, v.error FROM {from_rows(f"VALUES {pairs(keys, 2)}", "job_verdicts v")}
            WHERE v.project = $1 AND v.spider = chosen.column1 AND v.job = chosen.column2""",
        project,
        *(number for key in keys for number in (key.spider, key.job)),
    )
    return {JobKey(project, spider, job): Judgement(_reasons(reasons), error) for spider, job, reasons, error in rows}


#: Jobs per transaction, during which other writers wait: about 100 ms on SQLite.
AT_ONCE: Final = 500
#: Jobs per transaction that deletes them, with some rows each.
DELETED_AT_ONCE: Final = 50

Part = TypeVar("Part")


class DuplicateJobError(Exception):
    """A job with the same unique key is pending or running."""

    def __init__(self, key: JobKey) -> None:
        super().__init__(f"Active job exists with key {key}")
        self.key = key


class NewJob(NamedTuple):
    """A job to add. While one with the same ``unique_key`` is active, it is not added."""

    spider: str
    state: JobState
    metadata: Mapping[str, Any]
    unique_key: str | None = None


def unique_key(*parts: object) -> str:
    """Return a key for jobs that must not be active at the same time."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def run_key(spider: str, metadata: Mapping[str, Any]) -> str:
    """Return the unique key of a spider with its arguments, or of a script with its command line."""
    arguments = metadata.get("spider_args") or {}
    if spider.startswith(SCRIPT):
        return unique_key("run", spider, arguments, metadata.get("cmd_args") or "")
    return unique_key("run", spider, arguments)


def _in_parts(several: Sequence[Part], size: int = AT_ONCE) -> Iterator[Sequence[Part]]:
    for first in range(0, len(several), size):
        yield several[first : first + size]


async def add_jobs(
    tx: Transaction, project: int, jobs: Sequence[NewJob], stamp: Stamp
) -> list[JobKey | DuplicateJobError]:
    """Add jobs within a larger operation that has not written activity messages yet."""
    # The counter locks additions to the project until the commit, so that unique keys and numbers of spiders that are
    # read below remain valid.
    last = await advance(tx, project, "queue", len(jobs))
    added: list[JobKey | DuplicateJobError] = []
    happened: list[Happened] = []
    moves: list[Move] = []
    current = await held_version(tx, project, None)
    for queued, job in enumerate(jobs, last - len(jobs) + 1):
        double = None if job.unique_key is None else await _active(tx, project, job.unique_key)
        if double is not None:
            added.append(DuplicateJobError(double))
            continue
        version = await _version_of(tx, project, job, current)
        key = await _insert(tx, project, _with_version(job, version), queued, stamp)
        if version is not None:
            await tx.execute(
                "UPDATE jobs SET deploy = $4 WHERE project = $1 AND spider = $2 AND job = $3", *key, version.deploy
            )
        added.append(key)
        happened.append(Happened(key, STATE_EVENTS[job.state]))
        moves.append(Move(key.spider, None, job.state))
    await job_states.report(tx, project, happened, stamp, moves)
    return added


async def _active(tx: Transaction, project: int, unique_key: str) -> JobKey | None:
    row = await tx.fetchrow("SELECT spider, job FROM jobs WHERE project = $1 AND unique_key = $2", project, unique_key)
    return JobKey(project, *row) if row else None


async def _version_of(tx: Transaction, project: int, job: NewJob, current: Runnable | None) -> Runnable | None:
    """Return the deployed version of a pending job: the named or the current one.

    A job that is added as running has code of its own.
    """
    if job.state is not JobState.PENDING:
        return None
    named = job.metadata.get("version")
    return await held_version(tx, project, named) if isinstance(named, str) else current


def _with_version(job: NewJob, version: Runnable | None) -> NewJob:
    if version is None:
        return job
    return job._replace(metadata={**job.metadata, "version": version.name, "deploy_id": version.deploy})


async def _insert(tx: Transaction, project: int, job: NewJob, queued: int, stamp: Stamp) -> JobKey:
    spider = await spider_number(tx, project, job.spider, stamp.now)
    key = await _next_key(tx, project, spider)
    entered, entered_by = ENTERED[job.state]
    metadata = {
        **merged({}, job.metadata),
        "project": project,
        "spider": job.spider,
        "state": job.state.value,
        entered: stamp.now,
    }
    metadata.setdefault(entered_by, stamp.by)
    await tx.execute(
        """INSERT INTO jobs (project, spider, job, spider_name, state, changed, updated, unique_key, metadata,
                             priority, queued, since, units, node_tags)
           VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9, $10, $6, $11, $12)""",
        *key,
        job.spider,
        job.state.value,
        stamp.now,
        job.unique_key if job.state in ACTIVE else None,
        encode(metadata),
        priority_of(metadata),
        queued,
        *needs_of(metadata),
    )
    await index_tags(tx, key, metadata, new=True)
    if job.state is JobState.DELETED:
        await remove_job(tx, key, stamp.now)
    return key


async def _next_key(tx: Transaction, project: int, spider: int) -> JobKey:
    """Take the next number of a spider's jobs. A number whose records were deleted without a job is not given again."""
    while True:
        key = JobKey(project, spider, await advance(tx, project, f"job {spider}"))
        row = await tx.fetchrow(
            """SELECT 1 FROM record_totals WHERE project = $1 AND kind = 'items' AND spider = $2 AND job = $3
               AND removed IS NOT NULL""",
            *key,
        )
        if row is None:
            return key


async def _merge(
    tx: Transaction,
    key: JobKey,
    fields: Mapping[str, Any],
    removed: Iterable[str],
    now: int,
    *,
    from_client: bool = True,
    attempt: Attempt | None = None,
) -> bool:
    await check_attempt(tx, attempt)
    job = await get_job(tx, key, lock=True)
    if job is None:
        return False
    if job.state is JobState.DELETED:
        if from_client:
            raise deletion_error(key)
        return False
    metadata = merged(job.metadata, fields)
    for name in removed:
        if name not in PROTECTED:
            metadata.pop(name, None)
    await save(tx, key, metadata, now, from_client=from_client)
    return True


async def _tag(tx: Transaction, keys: Sequence[JobKey], add: Sequence[str], remove: Sequence[str], now: int) -> int:
    found = 0
    for key in sorted(keys):
        job = await get_job(tx, key, lock=True)
        if job is None:
            continue
        if job.state is JobState.DELETED:
            raise deletion_error(key)
        kept = [tag for tag in tags_of(job.metadata) if tag not in remove]
        tags = list(dict.fromkeys([*kept, *add]))
        await save(tx, key, {**job.metadata, "tags": tags}, now)
        found += 1
    return found


class JobStore(EngineStore):
    def __init__(self, engine: Engine, clock: Callable[[], int], deleted: Callable[[], None]) -> None:
        super().__init__(engine, clock)
        #: Called after jobs were deleted.
        self._deleted = deleted
        #: Callbacks for jobs that were cancelled through this process.
        self.news: set[Callable[[], None]] = set()

    def _notify(self) -> None:
        for listener in list(self.news):
            listener()

    def _stamp(self, by: str) -> Stamp:
        return Stamp(by, self._clock())

    async def add(self, project: int, jobs: Sequence[NewJob], by: str) -> list[JobKey | DuplicateJobError]:
        """Add jobs; return their keys, and an error in place of each whose unique key is active."""
        stamp = self._stamp(by)
        added: list[JobKey | DuplicateJobError] = []
        for some in _in_parts(jobs):
            added += await self._engine.write(add_jobs, project, some, stamp)
        return added

    get = Method("read_inline", get_job)

    async def merge(self, key: JobKey, fields: Mapping[str, Any], attempt: Attempt | None = None) -> bool:
        """Set fields of the metadata and keep the others; return whether the job exists.

        ``attempt``, here and below: that of the process that writes; the write fails (403) once the attempt is over.
        """
        return await self._engine.write(_merge, key, fields, (), self._clock(), attempt=attempt)

    async def note(self, key: JobKey, fields: Mapping[str, Any]) -> bool:
        """Set fields as :meth:`merge`, also beyond the size that clients may use."""
        return await self._engine.write(_merge, key, fields, (), self._clock(), from_client=False)

    async def remove_field(self, key: JobKey, field: str, attempt: Attempt | None = None) -> bool:
        """Remove a field of the metadata; return whether the job exists."""
        return await self._engine.write(_merge, key, {}, (field,), self._clock(), attempt=attempt)

    async def change(self, project: int, changes: Sequence[Change], by: str) -> list[JobState | None]:
        """Change states and metadata of jobs; return their previous states, None for unknown jobs.

        Raises :class:`ContractError` for an invalid change of state, and for a change of a deleted job (410). Records
        without a job are deleted as if their job was finished. Up to :data:`AT_ONCE` changes are one transaction.
        More are checked together first; a concurrent change may still make a later one fail.
        """
        stamp = self._stamp(by)
        if len(changes) > AT_ONCE:
            await self._engine.read(job_states.check_changes, changes)
        previous: list[JobState | None] = []
        for some in _in_parts(changes):
            previous += await self._engine.write(job_states.change_jobs, project, some, stamp)
        if any(change.state is JobState.DELETED for change in changes):
            await self._remove_unlisted(changes, previous, stamp)
            self._deleted()
        return previous

    async def _remove_unlisted(self, changes: Sequence[Change], previous: list[JobState | None], stamp: Stamp) -> None:
        for place, change in enumerate(changes):
            is_unlisted = change.state is JobState.DELETED and previous[place] is None
            if is_unlisted and await self._engine.write(job_states.remove_unlisted, change.key, stamp):
                previous[place] = JobState.FINISHED

    async def start_next(self, project: int, fields: Mapping[str, Any], by: str) -> StoredJob | None:
        """Start the next pending job by priority and age, and set fields of it."""
        return await self._engine.write(job_states.start_next, project, fields, self._stamp(by))

    async def cancel(
        self, project: int, keys: Sequence[JobKey], by: str, *, named: bool = True
    ) -> list[JobState | None]:
        """End pending jobs, and request the end of running ones; return their states before, None for unknown jobs.

        Raises :class:`ContractError` (409) for a job that is being imported, unless the jobs were not ``named``.
        """
        stamp = self._stamp(by)
        states: list[JobState | None] = []
        for some in _in_parts(keys):
            states += await self._engine.write(job_states.cancel_jobs, project, some, stamp, named=named)
        self._notify()
        return states

    async def cancel_some(self, project: int, count: int, by: str) -> int:
        """Cancel up to ``count`` active jobs, pending ones first; return their number."""
        keys = await self._engine.read(job_states.active_jobs, project, count)
        return sum(state in job_states.ACTIVE for state in await self.cancel(project, keys, by, named=False))

    async def delete(self, project: int, keys: Sequence[JobKey], by: str) -> int:
        """Mark jobs as deleted; return the number of those that were not."""
        changes = [Change(key, JobState.DELETED, {}) for key in dict.fromkeys(keys)]
        states = [await self.change(project, some, by) for some in _in_parts(changes, DELETED_AT_ONCE)]
        return sum(state not in (None, JobState.DELETED) for some in states for state in some)

    async def tag(self, keys: Sequence[JobKey], add: Sequence[str], remove: Sequence[str]) -> int:
        """Change the tags of jobs; return the number of existing ones."""
        now = self._clock()
        return sum([await self._engine.write(_tag, some, add, remove, now) for some in _in_parts(keys)])

    count = Method("read_inline", job_queries.count_jobs)
    count_by_state = Method("read_inline", job_queries.count_by_state)
    count_quickly = Method("read", job_queries.count_quickly)

    async def listed(self, project: int, which: JobFilter, page: JobPage, *, counts: bool = False) -> list[StoredJob]:
        """Return matching jobs by their last change of state, newest first; ``counts`` adds the numbers of records."""
        return await self._engine.read(job_queries.list_jobs, project, which, page, counts=counts)

    window = Method("read", windows.window)
    judgements = Method("read", judgements)
    tags = Method("read", job_queries.list_tags)
    last_finished = Method("read", job_queries.last_finished)
    states = Method("read_inline", job_queries.count_states)
    active = Method("read", job_queries.count_active)
    states_of_all = Method("read", job_queries.count_all_states)

    async def scan(self, project: int, spider: int | None = None) -> AsyncIterator[list[StoredJob]]:
        """Yield pages of the jobs of a project or a spider, ordered by key."""
        after = JobKey(project, spider or 0, 0)
        while jobs := await self._engine.read(job_queries.page_after, after, within=spider):
            yield jobs
            after = jobs[-1].key

    async def of_spider(self, project: int, spider: int) -> AsyncIterator[list[JobKey]]:
        """Yield pages of the jobs of a spider that are not deleted."""
        after = 0
        while keys := await self._engine.read(job_queries.spider_page, project, spider, after):
            yield keys
            after = keys[-1].job

    projects = Method("read_inline", job_queries.projects)

"""Jobs: adding them, their metadata and tags, and the one place that their resources call.

What a job's row is stands in ``job_rows``, how its state changes in ``job_states``, how jobs are found in
``job_queries``.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.platform.jobs import SCRIPT, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.webhooks import STATE_EVENTS
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.jobs import queries as job_queries
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
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
from scrapy_ext.server.store.jobs.states import ACTIVE, ENTERED, Change, Happened, Stamp
from scrapy_ext.server.store.spiders import spider_number
from scrapy_ext.server.store.versions.rows import Runnable, current_version, runnable

#: Jobs of one transaction. The more there are, the longer other writers wait: this many take about 100 ms on SQLite.
AT_ONCE: Final = 500

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


def unique_key(*parts: Any) -> str:
    """A short text for what jobs have in common that must not be active at the same time."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def run_key(spider: str, metadata: Mapping[str, Any]) -> str:
    """What is not active twice, whoever starts it: a spider with the same arguments, a script with the same words."""
    arguments = metadata.get("spider_args") or {}
    if spider.startswith(SCRIPT):
        return unique_key("run", spider, arguments, metadata.get("cmd_args") or "")
    return unique_key("run", spider, arguments)


class JobStore:
    """The jobs of all projects."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock
        #: Called when this process has added or cancelled jobs.
        self.news: set[Callable[[], None]] = set()

    def _tell(self) -> None:
        for listener in list(self.news):
            listener()

    def _stamp(self, by: str) -> Stamp:
        return Stamp(by, self._clock())

    async def add(self, project: int, jobs: Sequence[NewJob], by: str) -> list[JobKey | DuplicateJobError]:
        """Create jobs, each on its own: for one that has an active double, that is said in its place."""
        stamp = self._stamp(by)
        added: list[JobKey | DuplicateJobError] = []
        for some in _in_parts(jobs):
            added += await self._engine.write(add_jobs, project, some, stamp)
        return added

    async def get(self, key: JobKey) -> StoredJob | None:
        return await self._engine.glance(get_job, key)

    async def merge(self, key: JobKey, fields: Mapping[str, Any]) -> bool:
        """Set fields of the metadata; the rest stays. Returns whether the job exists."""
        return await self._engine.write(_merge, key, fields, (), self._clock())

    async def note(self, key: JobKey, fields: Mapping[str, Any]) -> bool:
        """As :meth:`merge`, for what the runner writes, however much clients have."""
        return await self._engine.write(_merge, key, fields, (), self._clock(), from_client=False)

    async def remove_field(self, key: JobKey, field: str) -> bool:
        """Remove a field of the metadata; returns whether the job exists."""
        return await self._engine.write(_merge, key, {}, (field,), self._clock())

    async def change(self, project: int, changes: Sequence[Change], by: str) -> list[JobState | None]:
        """Bring jobs to states and set fields; returns the states they were in, None for no such job.

        Raises :class:`ContractError` for a change that jobs do not make. Up to :data:`AT_ONCE` are made all or none.
        Of more, all are checked before the first is made; those that others change meanwhile may still be refused.
        """
        stamp = self._stamp(by)
        if len(changes) > AT_ONCE:
            await self._engine.read(job_states.check_changes, changes)
        previous: list[JobState | None] = []
        for some in _in_parts(changes):
            previous += await self._engine.write(job_states.change_jobs, project, some, stamp)
        return previous

    async def start_next(self, project: int, fields: Mapping[str, Any], by: str) -> StoredJob | None:
        """Start the pending job of the highest priority that has waited longest, and set fields of it."""
        return await self._engine.write(job_states.start_next, project, fields, self._stamp(by))

    async def cancel(self, project: int, keys: Sequence[JobKey], by: str) -> list[JobState | None]:
        """End pending jobs, ask running ones to end. Returns the states they were in, None for no such job."""
        stamp = self._stamp(by)
        states: list[JobState | None] = []
        for some in _in_parts(keys):
            states += await self._engine.write(job_states.cancel_jobs, project, some, stamp)
        self._tell()
        return states

    async def cancel_some(self, project: int, count: int, by: str) -> int:
        """Cancel up to ``count`` active jobs, pending ones first; returns how many."""
        keys = await self._engine.read(job_states.active_jobs, project, count)
        return sum(state in job_states.ACTIVE for state in await self.cancel(project, keys, by))

    async def delete(self, project: int, keys: Sequence[JobKey], by: str) -> int:
        """Mark jobs as deleted; returns how many were not before."""
        changes = [Change(key, JobState.DELETED, {}) for key in dict.fromkeys(keys)]
        return sum(state not in (None, JobState.DELETED) for state in await self.change(project, changes, by))

    async def tag(self, keys: Sequence[JobKey], add: Sequence[str], remove: Sequence[str]) -> int:
        """Change the tags of jobs; returns how many jobs there are of these."""
        now = self._clock()
        return sum([await self._engine.write(_tag, some, add, remove, now) for some in _in_parts(keys)])

    async def count(self, project: int, which: JobFilter) -> int:
        """How many jobs match."""
        return await self._engine.glance(job_queries.count_jobs, project, which)

    async def listed(self, project: int, which: JobFilter, page: JobPage, *, counts: bool = False) -> list[StoredJob]:
        """Matching jobs, those that changed state last first; with ``counts``, also what they have stored."""
        return await self._engine.read(job_queries.list_jobs, project, which, page, counts=counts)

    async def last_finished(self, project: int, spiders: Sequence[int]) -> list[StoredJob]:
        """Of each of these spiders the job that finished last, with what it stored."""
        return await self._engine.read(job_queries.last_finished, project, spiders)

    async def states(self, project: int) -> dict[JobState, int]:
        """How many jobs of a project are in each state."""
        return await self._engine.glance(job_queries.count_states, project)

    async def states_of_all(self) -> dict[int, dict[JobState, int]]:
        """How many jobs of every project are in each state."""
        return await self._engine.read(job_queries.count_all_states)

    async def scan(self, project: int, spider: int | None = None) -> AsyncIterator[list[StoredJob]]:
        """The jobs of a project or a spider in the order of their keys, in pages."""
        after = JobKey(project, spider or 0, 0)
        while jobs := await self._engine.read(job_queries.page_after, after, within=spider):
            yield jobs
            after = jobs[-1].key

    async def of_spider(self, project: int, spider: int) -> AsyncIterator[list[JobKey]]:
        """The jobs of a spider that are not deleted, in pages."""
        after = 0
        while keys := await self._engine.read(job_queries.spider_page, project, spider, after):
            yield keys
            after = keys[-1].job

    async def projects(self) -> list[int]:
        """The projects that have anything."""
        return await self._engine.glance(job_queries.projects)


def _in_parts(several: Sequence[Part]) -> Iterator[Sequence[Part]]:
    for first in range(0, len(several), AT_ONCE):
        yield several[first : first + AT_ONCE]


async def add_jobs(
    tx: Transaction, project: int, jobs: Sequence[NewJob], stamp: Stamp
) -> list[JobKey | DuplicateJobError]:
    """Create jobs as part of a larger operation, which has not written to the activity yet."""
    # Whoever adds to a project has its turn with this counter. What is read after it stays so until the commit:
    # nobody adds a double or numbers a spider meanwhile.
    last = await advance(tx, project, "queue", len(jobs))
    added: list[JobKey | DuplicateJobError] = []
    happened: list[Happened] = []
    current = await current_version(tx, project)
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
    await job_states.report(tx, project, happened, stamp)
    return added


async def _active(tx: Transaction, project: int, unique_key: str) -> JobKey | None:
    row = await tx.fetchrow("SELECT spider, job FROM jobs WHERE project = $1 AND unique_key = $2", project, unique_key)
    return JobKey(project, *row) if row else None


async def _version_of(tx: Transaction, project: int, job: NewJob, current: Runnable | None) -> Runnable | None:
    """The deployed version that a job will run: the one that it names, or the current one. One that is not pending is
    run by who adds it, with code of its own."""
    if job.state is not JobState.PENDING:
        return None
    named = job.metadata.get("version")
    return await runnable(tx, project, named) if isinstance(named, str) else current


def _with_version(job: NewJob, version: Runnable | None) -> NewJob:
    if version is None:
        return job
    return job._replace(metadata={**job.metadata, "version": version.name, "deploy_id": version.deploy})


async def _insert(tx: Transaction, project: int, job: NewJob, queued: int, stamp: Stamp) -> JobKey:
    spider = await spider_number(tx, project, job.spider, stamp.now)
    key = JobKey(project, spider, await advance(tx, project, f"job {spider}"))
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
    return key


async def _merge(
    tx: Transaction,
    key: JobKey,
    fields: Mapping[str, Any],
    removed: Iterable[str],
    now: int,
    *,
    from_client: bool = True,
) -> bool:
    job = await get_job(tx, key, lock=True)
    if job is None:
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
        kept = [tag for tag in tags_of(job.metadata) if tag not in remove]
        tags = list(dict.fromkeys([*kept, *add]))
        await save(tx, key, {**job.metadata, "tags": tags}, now)
        found += 1
    return found

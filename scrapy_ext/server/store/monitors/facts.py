"""Facts about finished jobs that monitors compare: counts, fields, stats, and the earlier runs of the same spider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.jobs import CRAWL_STATS, FINISHED, HOSTED_STATS, JobState
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.monitors import NewMonitor
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.queries import with_counts
from scrapy_ext.server.store.jobs.rows import (
    COLUMNS,
    Counts,
    StoredJob,
    arguments_of,
    get_job,
    ran_for,
    stored,
    tags_of,
)
from scrapy_ext.server.store.records.removal import find_removed_kinds

#: Earlier jobs of a spider that are examined for those with the same arguments, and those of one page.
MAX_EXAMINED: Final = 300
_PAGE: Final = 50


class JobFacts(NamedTuple):
    """A finished job. ``stats`` None: the crawl has sent none. ``seconds`` None: it never ran."""

    key: JobKey
    spider: str
    finished: int
    outcome: str
    tags: list[str]
    args: Mapping[str, Any]
    seconds: float | None
    counts: Counts
    warnings: int
    #: Number of items with each field.
    fields: Mapping[str, int]
    stats: Mapping[str, Any] | None
    #: Kinds of its records that were removed.
    removed: frozenset[str]
    #: Arguments of a script.
    command: str = ""

    @property
    def is_complete(self) -> bool:
        return self.outcome == FINISHED


async def find_facts(tx: Transaction, key: JobKey, finished: int | None = None) -> JobFacts | None:
    """Return the facts of a finished job; None when there is none, or when it ended at another time (ms)."""
    job = await get_job(tx, key)
    if job is None or job.state is not JobState.FINISHED or finished not in (None, job.changed):
        return None
    return await _facts(tx, job)


async def find_earlier(tx: Transaction, job: JobFacts, count: int) -> list[JobFacts]:
    """Return the last ``count`` complete runs of the same spider with the same arguments before a job, newest first."""
    found: list[JobFacts] = []
    async for other in _finished(tx, job.key.project, job.key.spider, (job.finished, job.key.spider, job.key.job)):
        if other.metadata.get("close_reason") == FINISHED and arguments_of(other.metadata) == (job.args, job.command):
            found.append(await _facts(tx, other))
            if len(found) == count:
                break
    return found


async def find_last(tx: Transaction, project: int, monitor: NewMonitor, count: int) -> list[JobFacts]:
    """Return the last finished jobs that a monitor covers, newest first."""
    spider = await _spider(tx, project, monitor.spider)
    found: list[JobFacts] = []
    if spider is None and monitor.spider is not None:
        return found
    async for job in _finished(tx, project, spider):
        if monitor.covers(job.spider, tags_of(job.metadata), arguments_of(job.metadata)[0]):
            found.append(await _facts(tx, job))
            if len(found) == count:
                break
    return found


async def find_success(tx: Transaction, project: int, monitor: NewMonitor) -> tuple[int, str] | None:
    """Return end (ms) and key of the last complete run that a monitor expects."""
    spider = await _spider(tx, project, monitor.spider)
    if spider is None:
        return None
    async for job in _finished(tx, project, spider):
        is_covered = monitor.covers(job.spider, tags_of(job.metadata), arguments_of(job.metadata)[0])
        if is_covered and job.metadata.get("close_reason") == FINISHED:
            return job.changed, str(job.key)
    return None


async def _spider(tx: Transaction, project: int, name: str | None) -> int | None:
    row = await tx.fetchrow("SELECT spider FROM spiders WHERE project = $1 AND name = $2", project, name or "")
    return row[0] if row else None


async def _finished(
    tx: Transaction,
    project: int,
    spider: int | None,
    before: tuple[int, int, int] = (MAX_NUMBER, MAX_NUMBER, MAX_NUMBER),
) -> AsyncIterator[StoredJob]:
    """Yield the finished jobs of a project or a spider before a place, newest first, up to :data:`MAX_EXAMINED`."""
    place, within = before, "" if spider is None else " AND spider = $5"
    for _ in range(MAX_EXAMINED // _PAGE):
        rows = await tx.fetch(
            f"""SELECT {COLUMNS} FROM jobs WHERE project = $1 AND state = 'finished'
                AND (changed, spider, job) < ($2, $3, $4){within}
                ORDER BY changed DESC, spider DESC, job DESC LIMIT {_PAGE}""",
            project,
            *place,
            *(() if spider is None else (spider,)),
        )
        for row in rows:
            yield stored(project, row)
        if len(rows) < _PAGE:
            return
        place = (rows[-1][4], rows[-1][0], rows[-1][1])


async def _facts(tx: Transaction, job: StoredJob) -> JobFacts:
    (job,) = await with_counts(tx, job.key.project, [job])
    rows = await tx.fetch(
        """SELECT field, occurrences FROM record_counts
           WHERE project = $1 AND spider = $2 AND job = $3 AND occurrences > 0
           AND kind = 'items'""",
        *job.key,
    )
    ran = ran_for(job, job.changed)
    reason, (args, command) = job.metadata.get("close_reason"), arguments_of(job.metadata)
    stats = [job.metadata.get(name) for name in (HOSTED_STATS, CRAWL_STATS)]
    return JobFacts(
        key=job.key,
        spider=job.spider,
        finished=job.changed,
        outcome=reason if isinstance(reason, str) else "",
        tags=tags_of(job.metadata),
        args=args,
        seconds=ran / 1000 if ran is not None else None,
        counts=job.counts,
        warnings=job.counts.warnings,
        fields={row[0]: row[1] for row in rows},
        stats=None
        if not any(isinstance(each, dict) for each in stats)
        else {name: value for each in stats if isinstance(each, dict) for name, value in each.items()},
        removed=frozenset(await find_removed_kinds(tx, job.key)),
        command=command,
    )

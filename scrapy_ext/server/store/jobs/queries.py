"""Queries of jobs: filtered lists, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.places import find_place
from scrapy_ext.server.store.jobs.rows import COLUMNS, Counts, StoredJob, stored

#: Keys per page.
_PAGE: Final = 1000
#: Jobs per page.
_SCAN: Final = 200


class JobFilter(NamedTuple):
    """Filter of a project's jobs; None or empty matches any, except that empty ``spider_ids`` match none.

    ``has_tags``: at least one of them; ``lacks_tags``: none of them. ``startts`` (inclusive) and ``endts`` (exclusive)
    bound the time of the last change of state.
    """

    spider: str | None = None
    spider_id: int | None = None
    spider_ids: tuple[int, ...] | None = None
    states: tuple[JobState, ...] = ()
    has_tags: tuple[str, ...] = ()
    lacks_tags: tuple[str, ...] = ()
    startts: int | None = None
    endts: int | None = None
    keys: tuple[JobKey, ...] = ()


class JobPage(NamedTuple):
    """Part of a list: ``limit`` jobs after the first ``offset``, up to ``stop`` (exclusive)."""

    limit: int
    offset: int = 0
    stop: JobKey | None = None


def _condition(project: int, which: JobFilter) -> tuple[str, list[Any]]:
    """Return a WHERE condition on jobs, and its arguments."""
    text, arguments = "project = $1", [project]

    def marks(values: Iterable[Any]) -> str:
        first = len(arguments) + 1
        arguments.extend(values)
        return ", ".join(f"${place}" for place in range(first, len(arguments) + 1))

    tagged = "EXISTS (SELECT 1 FROM job_tags t WHERE t.project = $1 AND t.spider = jobs.spider AND t.job = jobs.job"
    if which.spider is not None:
        text += f" AND spider_name = {marks([which.spider])}"
    if which.spider_id is not None:
        text += f" AND spider = {marks([which.spider_id])}"
    if which.spider_ids is not None:
        text += f" AND spider IN ({marks(which.spider_ids or (-1,))})"
    if which.states:
        text += f" AND state IN ({marks(state.value for state in which.states)})"
    if which.has_tags:
        text += f" AND {tagged} AND t.tag IN ({marks(which.has_tags)}))"
    if which.lacks_tags:
        text += f" AND NOT {tagged} AND t.tag IN ({marks(which.lacks_tags)}))"
    if which.startts is not None:
        text += f" AND changed >= {marks([which.startts])}"
    if which.endts is not None:
        text += f" AND changed < {marks([which.endts])}"
    if which.keys:
        text += f" AND (spider, job) IN (VALUES {_pairs(which.keys, len(arguments) + 1)})"
        arguments += [number for key in which.keys for number in (key.spider, key.job)]
    return text, arguments


def _pairs(keys: Sequence[JobKey], first: int) -> str:
    """Return placeholders for spider and job of each key, with a cast: PostgreSQL would assume text."""
    return ", ".join(
        f"(CAST(${place} AS BIGINT), CAST(${place + 1} AS BIGINT))" for place in range(first, first + 2 * len(keys), 2)
    )


async def count_jobs(tx: Transaction, project: int, which: JobFilter) -> int:
    """Return the number of matching jobs."""
    condition, arguments = _condition(project, which)
    row = await tx.fetchrow(f"SELECT count(*) FROM jobs WHERE {condition}", *arguments)  # noqa: S608 - from above
    return row[0] if row else 0


async def list_jobs(
    tx: Transaction,
    project: int,
    which: JobFilter,
    page: JobPage,
    *,
    counts: bool,
) -> list[StoredJob]:
    """Return matching jobs by their last change of state, newest first.

    Raises :class:`ContractError` (410) for a ``stop`` whose place is unknown: neither all jobs nor none would be right.
    """
    condition, arguments = _condition(project, which)
    if page.stop is not None:
        last = await find_place(tx, page.stop)
        if last is None:
            raise ContractError([_unknown_stop(page.stop)])
        place = len(arguments) + 1
        condition += f" AND (changed, spider, job) > (${place}, ${place + 1}, ${place + 2})"
        arguments += last
    place = len(arguments) + 1
    rows = await tx.fetch(
        f"""SELECT {COLUMNS} FROM jobs WHERE {condition}
            ORDER BY changed DESC, spider DESC, job DESC LIMIT ${place} OFFSET ${place + 1}""",  # noqa: S608 - as above
        *arguments,
        page.limit,
        page.offset,
    )
    jobs = [stored(project, row) for row in rows]
    return await _with_counts(tx, project, jobs) if counts else jobs


def _unknown_stop(key: JobKey) -> Violation:
    return Violation(
        "stop",
        f"is {key}, which does not exist, or was deleted over a year ago",
        "Name a job that exists, or list the jobs since a time with startts.",
        410,
    )


async def _with_counts(tx: Transaction, project: int, jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """Return the jobs with the numbers of their records."""
    if not jobs:
        return []
    # The counts of deleted jobs are removed later.
    keys = [job.key for job in jobs if job.state is not JobState.DELETED]
    if not keys:
        return list(jobs)
    numbers = [number for key in keys for number in (key.spider, key.job)]
    found: dict[JobKey, dict[str, int]] = {job.key: {} for job in jobs}
    rows = await tx.fetch(
        f"""SELECT spider, job, kind, records FROM record_totals
            WHERE project = $1 AND kind IN ('items', 'requests', 'logs')
            AND (spider, job) IN (VALUES {_pairs(keys, 2)})""",  # noqa: S608 - marks
        project,
        *numbers,
    )
    rows += await tx.fetch(
        f"""SELECT spider, job, 'errors', CAST(sum(occurrences) AS BIGINT) FROM record_counts
            WHERE project = $1 AND kind = 'logs' AND field IN ('40', '50')
            AND (spider, job) IN (VALUES {_pairs(keys, 2)}) GROUP BY spider, job""",  # noqa: S608 - marks
        project,
        *numbers,
    )
    for spider, job, kind, records in rows:
        found[JobKey(project, spider, job)][kind] = records
    return [job._replace(counts=Counts(**found[job.key])) for job in jobs]


async def last_finished(tx: Transaction, project: int, spiders: Sequence[int]) -> list[StoredJob]:
    """Return the last finished job of each spider, with the numbers of its records."""
    jobs = []
    for spider in spiders:
        row = await tx.fetchrow(
            f"""SELECT {COLUMNS} FROM jobs WHERE project = $1 AND spider = $2 AND state = 'finished'
                ORDER BY changed DESC, job DESC LIMIT 1""",  # noqa: S608 - fixed text
            project,
            spider,
        )
        if row is not None:
            jobs.append(stored(project, row))
    return await _with_counts(tx, project, jobs)


async def count_states(tx: Transaction, project: int) -> dict[JobState, int]:
    """Return the number of a project's jobs in each state."""
    rows = await tx.fetch("SELECT state, count(*) FROM jobs WHERE project = $1 GROUP BY state", project)
    return {**dict.fromkeys(JobState, 0), **{JobState(state): count for state, count in rows}}


async def count_all_states(tx: Transaction) -> dict[int, dict[JobState, int]]:
    """Return the number of jobs in each state, by project."""
    found: dict[int, dict[JobState, int]] = {}
    for project, state, count in await tx.fetch("SELECT project, state, count(*) FROM jobs GROUP BY project, state"):
        found.setdefault(project, dict.fromkeys(JobState, 0))[JobState(state)] = count
    return found


async def page_after(tx: Transaction, after: JobKey, *, within: int | None) -> list[StoredJob]:
    """Return the next jobs of a project, or of the spider ``within``, ordered by key."""
    bound = "" if within is None else " AND spider = $2"
    rows = await tx.fetch(
        f"""SELECT {COLUMNS} FROM jobs WHERE project = $1 AND (spider, job) > ($2, $3){bound}
            ORDER BY spider, job LIMIT $4""",  # noqa: S608 - fixed text
        *after,
        _SCAN,
    )
    return [stored(after.project, row) for row in rows]


async def spider_page(tx: Transaction, project: int, spider: int, after: int) -> list[JobKey]:
    """Return the keys of a spider's next jobs that are not deleted."""
    rows = await tx.fetch(
        """SELECT job FROM jobs WHERE project = $1 AND spider = $2 AND job > $3 AND state <> 'deleted'
           ORDER BY job LIMIT $4""",
        project,
        spider,
        after,
        _PAGE,
    )
    return [JobKey(project, spider, row[0]) for row in rows]


async def projects(tx: Transaction) -> list[int]:
    rows = await tx.fetch(
        """SELECT DISTINCT project FROM counters WHERE project >= 0
           UNION SELECT DISTINCT project FROM project_settings WHERE project >= 0 ORDER BY project"""
    )
    return [row[0] for row in rows]

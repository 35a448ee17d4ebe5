"""Queries of jobs: filtered lists, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.verdicts import Verdict
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.places import find_place
from scrapy_ext.server.store.jobs.rows import COLUMNS, Counts, StoredJob, stored

_ALL_STATES: Final = tuple(JobState)
#: Keys per page.
_PAGE: Final = 1000
#: Jobs per page.
_SCAN: Final = 200
#: Maximum number of tags that are listed.
_TAGS: Final = 100
_NEWEST_FIRST: Final = "changed DESC, spider DESC, job DESC"
_OLDEST_FIRST: Final = "changed, spider, job"
#: Offset above which SQLite merges the states instead of sorting the first jobs of each.
_DEEP: Final = 2000
#: Jobs that are read and sorted for a list, instead of being looked for in its order: some milliseconds.
_FEW: Final = 2000


class JobFilter(NamedTuple):
    """Filter of a project's jobs; None or empty matches any, except that empty ``spider_ids`` match none.

    ``has_tags``: at least one of them; ``lacks_tags``: none of them. ``startts`` (inclusive) and ``endts`` (exclusive)
    bound the time of the last change of state. ``worst``: the least verdict.
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
    worst: Verdict | None = None


class JobPage(NamedTuple):
    """Part of a list: ``limit`` jobs after the first ``offset``, up to ``stop`` (exclusive).

    ``oldest_first`` reverses the list.
    """

    limit: int
    offset: int = 0
    stop: JobKey | None = None
    oldest_first: bool = False

    @property
    def order(self) -> str:
        return _OLDEST_FIRST if self.oldest_first else _NEWEST_FIRST


class _Condition:
    """A WHERE condition on jobs, and its arguments. The first argument is the project."""

    def __init__(self, project: int) -> None:
        self.text = "project = $1"
        self.arguments: list[Any] = [project]

    def add(self, text: str, *values: object) -> None:
        """Add a condition with ``{}`` for the marks of the values."""
        self.text += " AND " + text.format(self.marks(values))

    def marks(self, values: Iterable[Any]) -> str:
        first = len(self.arguments) + 1
        self.arguments.extend(values)
        return ", ".join(f"${place}" for place in range(first, len(self.arguments) + 1))

    def add_spiders(self, which: JobFilter, column: str = "spider") -> None:
        if which.spider is not None:
            of_name = "(SELECT s.spider FROM spiders s WHERE s.project = $1 AND s.name = {})"
            self.add(f"{column} = {of_name}", which.spider)
        if which.spider_id is not None:
            self.add(f"{column} = {{}}", which.spider_id)
        if which.spider_ids is not None:
            self.add(f"{column} IN ({{}})", *(which.spider_ids or (-1,)))

    def add_states(self, which: JobFilter) -> None:
        self.add("state IN ({})", *(state.value for state in _states(which)))

    def add_others(self, which: JobFilter, *, chosen: bool = False) -> None:
        """Add the conditions on tags and times; ``chosen``: without those of :meth:`add_chosen`."""
        tagged = "EXISTS (SELECT 1 FROM job_tags t WHERE t.project = $1 AND t.spider = jobs.spider AND t.job = jobs.job"
        if which.has_tags and not (chosen and not which.keys):
            self.add(f"{tagged} AND t.tag IN ({{}}))", *which.has_tags)
        if which.lacks_tags:
            self.add(f"NOT {tagged} AND t.tag IN ({{}}))", *which.lacks_tags)
        if which.startts is not None:
            self.add("changed >= {}", which.startts)
        if which.endts is not None:
            self.add("changed < {}", which.endts)
        if which.worst is not None:
            # A number, not a mark: the engines know by it that the index of jobs in need has them all.
            self.text += f" AND verdict >= {int(which.worst):d}"

    def add_chosen(self, which: JobFilter) -> str:
        """Add the condition that a job is a named one, or that it has one of the tags; return the tables of the query.

        They are read from the keys or the tags on: of a million jobs, few may match.
        """
        if which.keys:
            keys = list(dict.fromkeys(which.keys))
            rows = f"VALUES {pairs(keys, len(self.arguments) + 1)}"
            self.arguments += [number for key in keys for number in (key.spider, key.job)]
        else:
            rows = f"""SELECT DISTINCT spider AS column1, job AS column2 FROM job_tags
                       WHERE project = $1 AND tag IN ({self.marks(which.has_tags)})"""
        self.text += " AND jobs.spider = chosen.column1 AND jobs.job = chosen.column2"
        return from_rows(rows, "jobs")


def _states(which: JobFilter) -> tuple[JobState, ...]:
    return which.states or _ALL_STATES


def pairs(keys: Sequence[JobKey], first: int) -> str:
    """Return placeholders for spider and job of each key, with a cast: PostgreSQL would assume text."""
    return ", ".join(
        f"(CAST(${place} AS BIGINT), CAST(${place + 1} AS BIGINT))" for place in range(first, first + 2 * len(keys), 2)
    )


def from_rows(rows: str, table: str) -> str:
    """Return tables of a query that reads rows of ``table`` by spider and job: columns 1 and 2 of other ``rows``.

    SQLite reads tables of a CROSS JOIN in their order. For ``(spider, job) IN (VALUES …)`` it reads the whole project.
    """
    return f"({rows}) chosen CROSS JOIN {table}"


async def count_jobs(tx: Transaction, project: int, which: JobFilter) -> int:
    """Return the number of matching jobs."""
    return sum((await count_by_state(tx, project, which)).values())


async def count_by_state(tx: Transaction, project: int, which: JobFilter) -> dict[JobState, int]:
    """Return the number of matching jobs in each state of the filter.

    Spiders and states alone are counted already. With other conditions it reads the named jobs, those that have one of
    the tags if they are few, or the index of those of the spiders and states.
    """
    condition = _Condition(project)
    condition.add_spiders(which)
    condition.add_states(which)
    bounds = (which.startts, which.endts, which.worst)
    if not (which.has_tags or which.lacks_tags or which.keys) and all(each is None for each in bounds):
        number, source = "CAST(sum(jobs) AS BIGINT)", "job_counts"
    else:
        number, source = "count(*)", "jobs"
        chosen = await _are_few_chosen(tx, project, which)
        if chosen:
            source = condition.add_chosen(which)
        condition.add_others(which, chosen=chosen)
    rows = await tx.fetch(
        f"SELECT state, {number} FROM {source} WHERE {condition.text} GROUP BY state",
        *condition.arguments,
    )
    return {**dict.fromkeys(_states(which), 0), **{JobState(state): count for state, count in rows}}


async def count_quickly(tx: Transaction, project: int, which: JobFilter) -> dict[JobState, int] | None:
    """Return the number of matching jobs in each state; None for tags of many jobs, all of which it would read."""
    if which.has_tags and not await _are_few_chosen(tx, project, which):
        return None
    return await count_by_state(tx, project, which)


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
    keys, arguments = await _keys_query(tx, project, which, page)
    columns = ", ".join(f"jobs.{column}" for column in COLUMNS.split(", "))
    order = ", ".join(f"page.{column}" for column in page.order.split(", "))
    rows = await tx.fetch(
        f"""WITH page AS MATERIALIZED ({keys})
            SELECT {columns} FROM page
            JOIN jobs ON jobs.project = $1 AND jobs.spider = page.spider AND jobs.job = page.job
            ORDER BY {order}""",
        *arguments,
    )
    jobs = [stored(project, row) for row in rows]
    return await with_counts(tx, project, jobs) if counts else jobs


async def list_keys(tx: Transaction, project: int, which: JobFilter, page: JobPage) -> list[tuple[int, JobKey]]:
    """Return the times of the last change and the keys of matching jobs, in the order of :func:`list_jobs`."""
    keys, arguments = await _keys_query(tx, project, which, page)
    return [(changed, JobKey(project, spider, job)) for changed, spider, job in await tx.fetch(keys, *arguments)]


async def _keys_query(tx: Transaction, project: int, which: JobFilter, page: JobPage) -> tuple[str, Sequence[Any]]:
    """Return a query of the page's times and keys, and its arguments."""
    condition, source, by_state = await _way(tx, project, which)
    if page.stop is not None:
        last = await find_place(tx, page.stop)
        if last is None:
            raise ContractError([_unknown_stop(page.stop)])
        condition.text += f" AND (changed, spider, job) > ({condition.marks(last)})"
    keys = f"SELECT changed, spider, job FROM {source} WHERE {condition.text}"
    if by_state:
        keys = _union(keys, _states(which), page)
    part = f"LIMIT {condition.marks([page.limit])} OFFSET {condition.marks([page.offset])}"
    return f"{keys} ORDER BY {page.order} {part}", condition.arguments


def _union(keys: str, states: Iterable[JobState], page: JobPage) -> str:
    """Return a query of the keys of each state."""
    parts = [f"{keys} AND state = '{state.value}'" for state in states]
    if page.offset <= _DEEP:
        # Otherwise PostgreSQL would read and sort all jobs of the states. SQLite merges them without that.
        most = page.limit + page.offset
        parts = [
            f"SELECT changed, spider, job FROM ({part} ORDER BY {page.order} LIMIT {most}) of_state" for part in parts
        ]
    return " UNION ALL ".join(parts)


async def _way(tx: Transaction, project: int, which: JobFilter) -> tuple[_Condition, str, bool]:
    """Return the condition of a list, the tables that it reads, and whether it reads them state by state.

    Few jobs (those of rare tags, of small spiders, or named ones) are read and sorted. Otherwise each state is read in
    the order of the list, until the page is full.
    """
    condition = _Condition(project)
    if await _are_few_chosen(tx, project, which):
        source = condition.add_chosen(which)
        condition.add_spiders(which, "jobs.spider")
        condition.add_states(which)
        condition.add_others(which, chosen=True)
        return condition, source, False
    several = which.spider_ids is not None and len(which.spider_ids) != 1
    few = several and sum((await count_by_state(tx, project, _of_spiders(which))).values()) <= _FEW
    # An expression, for which the engine cannot leave the order of the list to sort the jobs of some spiders.
    condition.add_spiders(which, "(spider + 0)" if several and not few else "spider")
    condition.add_others(which)
    if few:
        condition.add_states(which)
    return condition, "jobs", not few


def _of_spiders(which: JobFilter) -> JobFilter:
    return JobFilter(spider=which.spider, spider_id=which.spider_id, spider_ids=which.spider_ids, states=which.states)


async def _are_few_chosen(tx: Transaction, project: int, which: JobFilter) -> bool:
    """Return true for named jobs, and for tags that few jobs have."""
    if which.keys or not which.has_tags:
        return bool(which.keys)
    condition = _Condition(project)
    condition.add("tag IN ({})", *which.has_tags)
    row = await tx.fetchrow(
        f"""SELECT count(*) FROM (SELECT 1 FROM job_tags WHERE {condition.text} LIMIT {_FEW + 1}) first_ones""",
        *condition.arguments,
    )
    return row is None or row[0] <= _FEW


def _unknown_stop(key: JobKey) -> Violation:
    return Violation(
        "stop",
        f"is {key}, which does not exist, or was deleted over a year ago",
        "Name a job that exists, or list the jobs since a time with startts.",
        410,
    )


async def with_counts(
    tx: Transaction, project: int, jobs: Sequence[StoredJob], wanted: Sequence[str] = Counts._fields
) -> list[StoredJob]:
    """Return the jobs with the ``wanted`` numbers of their records; the others are 0."""
    if not jobs:
        return []
    # The counts of deleted jobs are removed later.
    keys = [job.key for job in jobs if job.state is not JobState.DELETED]
    if not keys:
        return list(jobs)
    numbers = [number for key in keys for number in (key.spider, key.job)]
    found: dict[JobKey, dict[str, int]] = {job.key: {} for job in jobs}
    chosen = f"VALUES {pairs(keys, 2)}"
    of_chosen = "t.project = $1 AND t.spider = chosen.column1 AND t.job = chosen.column2"
    rows = []
    if kinds := [f"'{kind}'" for kind in ("items", "requests", "logs") if kind in wanted]:
        rows += await tx.fetch(
            f"""SELECT t.spider, t.job, t.kind, t.records FROM {from_rows(chosen, "record_totals t")}
                WHERE {of_chosen} AND t.kind IN ({", ".join(kinds)})""",
            project,
            *numbers,
        )
    if "errors" in wanted or "warnings" in wanted:
        rows += await tx.fetch(
            f"""SELECT t.spider, t.job, CASE WHEN t.field = '30' THEN 'warnings' ELSE 'errors' END,
                       CAST(sum(t.occurrences) AS BIGINT)
                FROM {from_rows(chosen, "record_counts t")}
                WHERE {of_chosen} AND t.kind = 'logs' AND t.field IN ('30', '40', '50')
                GROUP BY 1, 2, 3""",
            project,
            *numbers,
        )
    for spider, job, kind, records in rows:
        found[JobKey(project, spider, job)][kind] = records
    return [job._replace(counts=Counts(**found[job.key])) for job in jobs]


async def list_tags(tx: Transaction, project: int) -> list[str]:
    """Return the first tags of a project's jobs in alphabetical order.

    The index is searched once for each: of a million jobs, all may have the same few tags.
    """
    rows = await tx.fetch(
        f"""WITH RECURSIVE known (tag) AS (
                SELECT min(tag) FROM job_tags WHERE project = $1
                UNION ALL
                SELECT (SELECT min(t.tag) FROM job_tags t WHERE t.project = $1 AND t.tag > known.tag) FROM known
                WHERE known.tag IS NOT NULL
            )
            SELECT tag FROM known WHERE tag IS NOT NULL LIMIT {_TAGS}""",
        project,
    )
    return [row[0] for row in rows]


async def last_finished(tx: Transaction, project: int, spiders: Sequence[int]) -> list[StoredJob]:
    """Return the last finished job of each spider, with the numbers of its records."""
    jobs = []
    for spider in spiders:
        row = await tx.fetchrow(
            f"""SELECT {COLUMNS} FROM jobs WHERE project = $1 AND spider = $2 AND state = 'finished'
                ORDER BY changed DESC, job DESC LIMIT 1""",
            project,
            spider,
        )
        if row is not None:
            jobs.append(stored(project, row))
    return await with_counts(tx, project, jobs)


async def count_states(tx: Transaction, project: int) -> dict[JobState, int]:
    """Return the number of a project's jobs in each state."""
    rows = await tx.fetch(
        "SELECT state, CAST(sum(jobs) AS BIGINT) FROM job_counts WHERE project = $1 GROUP BY state", project
    )
    return {**dict.fromkeys(_ALL_STATES, 0), **{JobState(state): count for state, count in rows}}


async def count_active(tx: Transaction, project: int) -> dict[int, dict[JobState, int]]:
    """Return the numbers of pending and running jobs of each spider that has some."""
    rows = await tx.fetch(
        """SELECT spider, state, jobs FROM job_counts WHERE project = $1 AND state IN ('pending', 'running')
           AND jobs > 0""",
        project,
    )
    found: dict[int, dict[JobState, int]] = {}
    for spider, state, count in rows:
        found.setdefault(spider, {})[JobState(state)] = count
    return found


async def count_all_states(tx: Transaction) -> dict[int, dict[JobState, int]]:
    """Return the number of jobs in each state, by project."""
    found: dict[int, dict[JobState, int]] = {}
    for project, state, count in await tx.fetch(
        "SELECT project, state, CAST(sum(jobs) AS BIGINT) FROM job_counts GROUP BY project, state"
    ):
        found.setdefault(project, dict.fromkeys(JobState, 0))[JobState(state)] = count
    return found


async def page_after(tx: Transaction, after: JobKey, *, within: int | None) -> list[StoredJob]:
    """Return the next jobs of a project, or of the spider ``within``, ordered by key."""
    bound = "" if within is None else " AND spider = $2"
    rows = await tx.fetch(
        f"""SELECT {COLUMNS} FROM jobs WHERE project = $1 AND (spider, job) > ($2, $3){bound}
            ORDER BY spider, job LIMIT $4""",
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
           UNION SELECT DISTINCT project FROM project_settings WHERE project >= 0
           UNION SELECT project FROM project_names ORDER BY project"""
    )
    return [row[0] for row in rows]

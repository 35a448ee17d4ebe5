"""Reading jobs: one, or lists of them, filtered and newest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine import Row, Transaction

_COLUMNS: Final = "spider, job, spider_name, state, changed, updated, metadata"


class Counts(NamedTuple):
    """What a job has stored."""

    items: int = 0
    requests: int = 0
    logs: int = 0
    errors: int = 0


class StoredJob(NamedTuple):
    """A job: ``changed`` is when it entered its state, ``updated`` when anything of it changed (ms)."""

    key: JobKey
    spider: str
    state: JobState
    changed: int
    updated: int
    metadata: dict[str, Any]
    counts: Counts = Counts()


class JobFilter(NamedTuple):
    """Which jobs of a project; None or empty means any.

    ``has_tags``: one of them is enough; ``lacks_tags``: none of them may be there. ``startts`` is included,
    ``endts`` is not, and both are about when the job entered its state.
    """

    spider: str | None = None
    states: tuple[JobState, ...] = ()
    has_tags: tuple[str, ...] = ()
    lacks_tags: tuple[str, ...] = ()
    startts: int | None = None
    endts: int | None = None
    keys: tuple[JobKey, ...] = ()


class Page(NamedTuple):
    """Which part of a list: ``limit`` jobs after the first ``offset``, and none from ``stop`` on."""

    limit: int
    offset: int = 0
    stop: JobKey | None = None


async def get_job(tx: Transaction, key: JobKey) -> StoredJob | None:
    """One job; None if there is none."""
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM jobs WHERE project = $1 AND spider = $2 AND job = $3",  # noqa: S608 - fixed text
        *key,
    )
    return _stored(key.project, row) if row else None


async def lock_job(tx: Transaction, key: JobKey) -> StoredJob | None:
    """One job, to be changed: others that change it wait. Who changes several locks them first (:func:`lock_jobs`)."""
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM jobs WHERE project = $1 AND spider = $2 AND job = $3 FOR UPDATE",  # noqa: S608 - as above
        *key,
    )
    return _stored(key.project, row) if row else None


async def lock_jobs(tx: Transaction, keys: Iterable[JobKey]) -> None:
    """Lock several jobs by their keys, so that two who do that never wait for each other."""
    for key in sorted(set(keys)):
        await tx.fetchrow("SELECT 1 FROM jobs WHERE project = $1 AND spider = $2 AND job = $3 FOR UPDATE", *key)


def _stored(project: int, row: Row) -> StoredJob:
    spider, job, name, state, changed, updated, metadata = row
    return StoredJob(
        JobKey(project, spider, job), name, JobState(state), changed, updated, msgspec.json.decode(metadata)
    )


def tags_of(metadata: Mapping[str, Any]) -> list[str]:
    """The tags in a job's metadata, in their order."""
    tags = metadata.get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _condition(project: int, which: JobFilter) -> tuple[str, list[Any]]:
    """A WHERE condition on jobs, and its arguments."""
    text, arguments = "project = $1", [project]

    def marks(values: Iterable[Any]) -> str:
        first = len(arguments) + 1
        arguments.extend(values)
        return ", ".join(f"${place}" for place in range(first, len(arguments) + 1))

    def whole(number: int) -> str:
        return f"CAST({marks([number])} AS BIGINT)"

    tagged = "EXISTS (SELECT 1 FROM job_tags t WHERE t.project = $1 AND t.spider = jobs.spider AND t.job = jobs.job"
    if which.spider is not None:
        text += f" AND spider_name = {marks([which.spider])}"
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
        # Values of a list have no type of their own: PostgreSQL would take them for text.
        pairs = ", ".join(f"({whole(key.spider)}, {whole(key.job)})" for key in which.keys)
        text += f" AND (spider, job) IN (VALUES {pairs})"
    return text, arguments


async def count_jobs(tx: Transaction, project: int, which: JobFilter) -> int:
    """How many jobs match."""
    condition, arguments = _condition(project, which)
    row = await tx.fetchrow(f"SELECT count(*) FROM jobs WHERE {condition}", *arguments)  # noqa: S608 - from above
    return row[0] if row else 0


async def list_jobs(
    tx: Transaction,
    project: int,
    which: JobFilter,
    page: Page,
    *,
    counts: bool,
) -> list[StoredJob]:
    """Matching jobs, those that changed state last first."""
    condition, arguments = _condition(project, which)
    last = await get_job(tx, page.stop) if page.stop is not None else None
    if last is not None:
        place = len(arguments) + 1
        condition += f" AND (changed, spider, job) > (${place}, ${place + 1}, ${place + 2})"
        arguments += [last.changed, last.key.spider, last.key.job]
    place = len(arguments) + 1
    rows = await tx.fetch(
        f"""SELECT {_COLUMNS} FROM jobs WHERE {condition}
            ORDER BY changed DESC, spider DESC, job DESC LIMIT ${place} OFFSET ${place + 1}""",  # noqa: S608 - as above
        *arguments,
        page.limit,
        page.offset,
    )
    jobs = [_stored(project, row) for row in rows]
    return [job._replace(counts=await _counts(tx, job.key)) for job in jobs] if counts else jobs


async def _counts(tx: Transaction, key: JobKey) -> Counts:
    totals: dict[str, int] = dict(
        await tx.fetch(
            """SELECT kind, records FROM record_totals
               WHERE project = $1 AND kind IN ('items', 'requests', 'logs') AND spider = $2 AND job = $3""",
            *key,
        )
    )
    errors = await tx.fetchrow(
        """SELECT CAST(sum(occurrences) AS BIGINT) FROM record_counts
           WHERE project = $1 AND kind = 'logs' AND spider = $2 AND job = $3 AND field IN ('40', '50')""",
        *key,
    )
    return Counts(errors=(errors and errors[0]) or 0, **totals)


async def spider_id(tx: Transaction, project: int, name: str) -> int | None:
    """The number of a spider."""
    row = await tx.fetchrow("SELECT spider FROM spiders WHERE project = $1 AND name = $2", project, name)
    return row[0] if row else None


async def spider_name(tx: Transaction, project: int, spider: int) -> str | None:
    """The name of a spider."""
    row = await tx.fetchrow("SELECT name FROM spiders WHERE project = $1 AND spider = $2", project, spider)
    return row[0] if row else None


async def spider_keys(tx: Transaction, project: int, spider: str) -> list[JobKey]:
    """The jobs of a spider that are not deleted."""
    rows = await tx.fetch(
        """SELECT j.spider, j.job FROM jobs j JOIN spiders s ON s.project = j.project AND s.spider = j.spider
           WHERE j.project = $1 AND s.name = $2 AND j.state <> 'deleted' ORDER BY j.job""",
        project,
        spider,
    )
    return [JobKey(project, *row) for row in rows]


async def projects(tx: Transaction) -> list[int]:
    """The projects that have anything."""
    return [row[0] for row in await tx.fetch("SELECT DISTINCT project FROM counters ORDER BY project")]

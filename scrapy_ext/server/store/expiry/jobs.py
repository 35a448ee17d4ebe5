"""Removal of the last rows of deleted jobs: metadata, tags, deliveries, marks of removed records, and late comments.

A job stays while a node has an attempt of it, and while rows of it wait in ``removals``: without its marks, records
that are still stored would be readable again. Its number is never given to another job.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.expiry.steps import Steps
from scrapy_ext.server.store.jobs.counts import Move, count_moves
from scrapy_ext.server.store.removals import JOB, RECORD_KINDS, STAGED, RemovedOwner, add_removal

#: Jobs of a step, with some rows each.
_AT_ONCE: Final = 50
_KINDS: Final = ", ".join(f"'{kind}'" for kind in RECORD_KINDS)
#: Kinds of removals that belong to a job.
_OF_JOB: Final = ", ".join(f"'{kind}'" for kind in (JOB, STAGED, *RECORD_KINDS))
_OWNED: Final = "project = $1 AND spider = $2 AND job = $3"


def _due(before: str) -> str:
    """Return a condition on jobs: nothing else of the job is left, and it was deleted at ``before`` at the latest."""
    return f"""jobs.state = 'deleted' AND jobs.changed <= {before} AND NOT EXISTS (
        SELECT 1 FROM attempts a WHERE a.project = jobs.project AND a.spider = jobs.spider AND a.job = jobs.job
    ) AND NOT EXISTS (
        SELECT 1 FROM removals r WHERE r.project = jobs.project AND r.kind IN ({_OF_JOB})
        AND r.number = jobs.spider AND r.part = jobs.job
    )"""  # noqa: S608 - fixed text


async def forget_jobs(engine: Engine, before: int) -> Steps:
    """Remove the rows of jobs that were deleted at ``before`` (ms) or earlier."""
    while keys := await engine.read(_find, before):
        forgotten = await engine.write(_forget, keys, before)
        yield forgotten
        if not forgotten:  # others have changed them; the next run finds the rest
            return


async def _find(tx: Transaction, before: int) -> list[JobKey]:
    rows = await tx.fetch(
        f"""SELECT project, spider, job FROM jobs WHERE {_due("$1")}
            ORDER BY changed, project, spider, job LIMIT $2""",  # noqa: S608 - fixed text
        before,
        _AT_ONCE,
    )
    return [JobKey(*row) for row in rows]


async def _forget(tx: Transaction, keys: Sequence[JobKey], before: int) -> int:
    doomed = [key for key in sorted(keys) if await _may_go(tx, key, before)]
    for table, condition in (
        ("comments", ""),
        ("record_counts", f" AND kind IN ({_KINDS})"),
        ("record_totals", f" AND kind IN ({_KINDS})"),
        ("deliveries", ""),
        ("monitor_results", ""),
        ("job_tags", ""),
        ("jobs", ""),
    ):
        await tx.execute_many(f"DELETE FROM {table} WHERE {_OWNED}{condition}", doomed)  # noqa: S608 - fixed text
    for project, some in groupby(doomed, key=lambda key: key.project):
        await count_moves(tx, project, [Move(key.spider, JobState.DELETED, None) for key in some])
    return len(doomed)


async def _may_go(tx: Transaction, key: JobKey, before: int) -> bool:
    """Lock a job; return true when it is still due."""
    row = await tx.fetchrow(
        f"SELECT 1 FROM jobs WHERE {_OWNED} AND {_due('$4')} FOR UPDATE",  # noqa: S608 - fixed text
        *key,
        before,
    )
    if row is None:
        return False
    left = await tx.fetchrow(
        f"SELECT 1 FROM record_chunks WHERE {_OWNED} AND kind IN ({_KINDS}) LIMIT 1",  # noqa: S608 - fixed text
        *key,
    )
    if left is None:
        return True
    # A server of an older version has stored records after the removal.
    for kind in RECORD_KINDS:
        await add_removal(tx, RemovedOwner(key.project, kind, key.spider, key.job))
    return False

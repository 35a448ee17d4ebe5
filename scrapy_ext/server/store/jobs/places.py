"""Places of deleted jobs in the lists of jobs, by the time of the last change of state before the deletion.

Consumers of the job queue read the jobs up to the last one that they have seen. When that job was deleted, they
continue after its place: they neither get all jobs again nor miss one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Transaction

#: Milliseconds for which the place of a deleted job is kept.
_KEPT: Final = 366 * 24 * 3600 * 1000
#: Older places removed with each new one.
_SWEEP: Final = 10


class Place(NamedTuple):
    """Place in a list of jobs, in the order of the list: time of the last change of state (ms), spider, job."""

    changed: int
    spider: int
    job: int


async def keep_place(tx: Transaction, key: JobKey, now: int) -> None:
    """Keep the place of a locked job that is about to be deleted."""
    await tx.execute(
        """INSERT INTO job_places (project, spider, job, changed, deleted)
           SELECT project, spider, job, changed, $4 FROM jobs WHERE project = $1 AND spider = $2 AND job = $3
           ON CONFLICT (project, spider, job) DO NOTHING""",
        *key,
        now,
    )
    old = await tx.fetch(
        """SELECT spider, job FROM job_places WHERE project = $1 AND deleted < $2 ORDER BY deleted LIMIT $3
           FOR UPDATE SKIP LOCKED""",
        key.project,
        now - _KEPT,
        _SWEEP,
    )
    await tx.execute_many(
        "DELETE FROM job_places WHERE project = $1 AND spider = $2 AND job = $3", [(key.project, *each) for each in old]
    )


async def find_place(tx: Transaction, key: JobKey) -> Place | None:
    """Return the place of a job, which may be deleted; None if it is unknown."""
    row = await tx.fetchrow(
        "SELECT changed FROM job_places WHERE project = $1 AND spider = $2 AND job = $3", *key
    ) or await tx.fetchrow("SELECT changed FROM jobs WHERE project = $1 AND spider = $2 AND job = $3", *key)
    return None if row is None else Place(row[0], key.spider, key.job)

"""Groups as pages and metrics show them, read without locks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.workers import WorkerRow
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.attempt_rows import rows_of
from scrapy_ext.server.store.jobs.group_rows import Group, get_group


class GroupState(NamedTuple):
    """A group and its workers, by their numbers."""

    group: Group
    workers: Sequence[WorkerRow]


class GroupCounts(NamedTuple):
    """Numbers over all groups with workers: workers by state, places without one, and workers that were lost."""

    workers: Mapping[str, int]
    vacant: int
    losses: int


async def listed(tx: Transaction, key: JobKey) -> list[WorkerRow]:
    """Return the workers of a job."""
    return [row.listed for row in await rows_of(tx, key)]


async def count_workers(tx: Transaction, key: JobKey) -> int:
    """Return the number of the workers of a job."""
    row = await tx.fetchrow("SELECT COUNT(*) FROM attempts WHERE project = $1 AND spider = $2 AND job = $3", *key)
    return row[0] if row else 0


async def group_state(tx: Transaction, key: JobKey) -> GroupState | None:
    """Return the group of a job; None if it has none."""
    group = await get_group(tx, key)
    return None if group is None else GroupState(group, await listed(tx, key))


async def group_counts(tx: Transaction) -> GroupCounts:
    """Count the workers of all groups. CROSS JOIN: SQLite then reads the attempts first, which are few."""
    states = await tx.fetch(
        """SELECT CASE WHEN a.outcome IS NOT NULL THEN 'ended' WHEN a.reports = 0 THEN 'starting' ELSE 'running' END,
                  COUNT(*)
           FROM attempts a CROSS JOIN worker_groups g
           WHERE g.project = a.project AND g.spider = a.spider AND g.job = a.job GROUP BY 1"""
    )
    lost = await tx.fetchrow(
        """SELECT CAST(COALESCE(SUM(g.losses), 0) AS BIGINT)
           FROM (SELECT DISTINCT project, spider, job FROM attempts) a CROSS JOIN worker_groups g
           WHERE g.project = a.project AND g.spider = a.spider AND g.job = a.job"""
    )
    vacant = await tx.fetchrow(
        "SELECT CAST(COALESCE(SUM(vacant), 0) AS BIGINT) FROM jobs WHERE state = 'running' AND vacant > 0"
    )
    workers = dict.fromkeys(("starting", "running", "ended"), 0) | dict(states)
    return GroupCounts(workers, vacant[0] if vacant else 0, lost[0] if lost else 0)

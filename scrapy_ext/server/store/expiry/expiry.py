"""Removal of what is older than the operator keeps it. Each method yields the number of rows removed by each step.

A table of which whole rows are removed by their age alone is an entry below. Frontiers (:mod:`frontiers`) and deleted
jobs have rules of their own.

Of a deleted job, the last rows are metadata, tags, deliveries, marks of removed records, and late comments. A job stays
while a node has an attempt of it, and while rows of it wait in ``removals``: without its marks, records that are still
stored would be readable again. Its number is never given to another job.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Row, Transaction
from scrapy_ext.server.store.expiry import frontiers
from scrapy_ext.server.store.expiry.steps import STEP_ROWS, OldRows, Steps, fitting
from scrapy_ext.server.store.jobs.states import Move, count_moves
from scrapy_ext.server.store.projects import hold
from scrapy_ext.server.store.removals import JOB, RECORD_KINDS, STAGED, RemovedOwner, add_removal
from scrapy_ext.server.store.version_rows import UPLOADING
from scrapy_ext.server.store.versions import remove_version

#: Milliseconds of a day, the unit of the arguments.
DAY: Final = 24 * 3600 * 1000
#: Time (ms) from the beginning of an upload, much longer than any takes.
GIVEN_UP: Final = DAY
_UPLOADS_AT_ONCE: Final = 100
#: Below the number of any project, and of the server's own messages.
_FIRST: Final = -2
_EXPIRING: Final = ", ".join(f"'{each.value}'" for each in CollectionType if each.expires)


async def _next_project(tx: Transaction, _: int, after: Row) -> Row | None:
    """Return the next project with results of monitors."""
    row = await tx.fetchrow("SELECT min(project) FROM monitor_results WHERE project > $1", *after)
    return row if row and row[0] is not None else None


async def _next_collection(tx: Transaction, now: int, after: Row) -> Row | None:
    """Return the next collection with expired records."""
    return await tx.fetchrow(
        f"""SELECT project, collection FROM collections c
            WHERE type IN ({_EXPIRING}) AND (project, collection) > ($1, $2) AND EXISTS (
                SELECT 1 FROM collection_records r WHERE r.project = c.project AND r.collection = c.collection
                AND expires IS NOT NULL AND expires <= $3
            ) ORDER BY project, collection LIMIT 1""",
        *after,
        now,
    )


#: Deliveries of webhooks that are no longer pending.
_DELIVERIES: Final = OldRows(
    "webhook_deliveries",
    key=("project", "webhook", "number"),
    size="length(body)",
    old="due IS NULL AND created <= $1",
    order="created, project, webhook, number",
)
#: Messages to targets of alerts that are no longer pending.
_MESSAGES: Final = OldRows(
    "alert_messages",
    key=("project", "target", "number"),
    size="length(body)",
    old="due IS NULL AND created <= $1",
    order="created, project, target, number",
)
_RESULTS: Final = OldRows(
    "monitor_results",
    key=("project", "spider", "job", "of_server", "rule"),
    size="length(result)",
    old="checked <= $1 AND project = $2",
    order="checked, spider, job",
    next_group=_next_project,
    first=(-1,),
)
#: Records of collections to which nothing may be written any more; no reader sees them.
_RECORDS: Final = OldRows(
    "collection_records",
    key=("project", "collection", "key"),
    size="length(value) + COALESCE(length(value_1), 0) + COALESCE(length(value_2), 0)",
    old="expires IS NOT NULL AND expires <= $1 AND project = $2 AND collection = $3",
    order="expires",
    next_group=_next_collection,
    first=(-1, 0),
)


class ExpiryStore(EngineStore):
    """Removals by age; nothing that the clock shows as stored in the future is old."""

    def deleted_jobs(self, days: int) -> Steps:
        """Remove the last rows of jobs that were deleted ``days`` ago."""
        return _forget_jobs(self._engine, self._before(days))

    def messages(self, days: int, most: int) -> Steps:
        """Remove activity messages by age, and all but the newest ``most`` of a project."""
        return _remove_activity(self._engine, self._before(days), most)

    def deliveries(self, days: int) -> Steps:
        """Remove past deliveries of webhooks."""
        return _DELIVERIES.remove(self._engine, self._before(days))

    async def monitor_results(self, days: int) -> Steps:
        """Remove results of monitors, and past messages of alerts."""
        before = self._before(days)
        for table in (_RESULTS, _MESSAGES):
            async for removed in table.remove(self._engine, before):
                yield removed

    def expired_records(self) -> Steps:
        """Remove expired records of collections."""
        return _RECORDS.remove(self._engine, self._clock())

    def frontiers(self, days: int) -> Steps:
        """Remove own frontiers of jobs that are over; those with requests ``days`` after the end of the job."""
        ended = self._clock() - frontiers.GRACE
        return frontiers.remove_frontiers(self._engine, frontiers.FrontierAges(ended, self._before(days)))

    def staged_items(self) -> Steps:
        """Remove staged items of jobs that are over."""
        return frontiers.remove_staged_items(self._engine, self._clock() - frontiers.GRACE)

    def uploads(self) -> Steps:
        """Remove uploads of versions that were given up."""
        return _remove_uploads(self._engine, self._clock() - GIVEN_UP)

    def _before(self, days: int) -> int:
        return self._clock() - days * DAY


# ── activity messages ──


async def _remove_activity(engine: Engine, before: int, most: int) -> Steps:
    """Remove messages stored at ``before`` (ms) or earlier, and all but the newest ``most`` of each project.

    The newest message of a project always stays: readers recognise new messages by its number.
    """
    project = _FIRST
    while (found := await engine.read(_next_active_project, project)) is not None:
        project = found
        while removed := await engine.write(_remove_messages, project, before, most):
            yield removed
        yield 0


async def _next_active_project(tx: Transaction, after: int) -> int | None:
    row = await tx.fetchrow("SELECT min(project) FROM activity WHERE project > $1", after)
    return row[0] if row else None


async def _remove_messages(tx: Transaction, project: int, before: int, most: int) -> int:
    newest = await tx.fetchrow("SELECT max(number) FROM activity WHERE project = $1", project)
    if newest is None or newest[0] is None:
        return 0
    rows = await tx.fetch(
        """SELECT length(event), number, ts FROM activity WHERE project = $1 AND number < $2
           ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED""",
        project,
        newest[0],
        STEP_ROWS,
    )
    # Numbers have gaps, since deliveries of tests have numbers, too: more than ``most`` are never kept.
    old = [row for row in rows if row[2] <= before or row[1] <= newest[0] - most]
    doomed = fitting(old)
    await tx.execute_many(
        "DELETE FROM activity WHERE project = $1 AND number = $2", [(project, number) for _, number, _ in doomed]
    )
    return len(doomed)


# ── uploads of versions ──


async def _remove_uploads(engine: Engine, before: int) -> Steps:
    """Remove versions whose upload has begun at ``before`` (ms) or earlier, and has not ended.

    Their server was killed, or their client was cut off.
    """
    for project, deploy in await engine.read(_find_uploads, before):
        yield await engine.write(_remove_upload, project, deploy)


async def _find_uploads(tx: Transaction, before: int) -> list[tuple[int, int]]:
    rows = await tx.fetch(
        "SELECT project, deploy FROM versions WHERE state = $1 AND touched <= $2 ORDER BY project, deploy LIMIT $3",
        UPLOADING,
        before,
        _UPLOADS_AT_ONCE,
    )
    return [(project, deploy) for project, deploy in rows]


async def _remove_upload(tx: Transaction, project: int, deploy: int) -> int:
    await hold(tx, project, "deploy")
    row = await tx.fetchrow(
        "SELECT 1 FROM versions WHERE project = $1 AND deploy = $2 AND state = $3 FOR UPDATE",
        project,
        deploy,
        UPLOADING,
    )
    if row is None:  # it is complete
        return 0
    await remove_version(tx, project, deploy)
    return 1


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
        AND a.node <> ''
    ) AND NOT EXISTS (
        SELECT 1 FROM removals r WHERE r.project = jobs.project AND r.kind IN ({_OF_JOB})
        AND r.number = jobs.spider AND r.part = jobs.job
    )"""


async def _forget_jobs(engine: Engine, before: int) -> Steps:
    """Remove the rows of jobs that were deleted at ``before`` (ms) or earlier."""
    while keys := await engine.read(_find, before):
        forgotten = await engine.write(_forget, keys, before)
        yield forgotten
        if not forgotten:  # others have changed them; the next run finds the rest
            return


async def _find(tx: Transaction, before: int) -> list[JobKey]:
    rows = await tx.fetch(
        f"""SELECT project, spider, job FROM jobs WHERE {_due("$1")}
            ORDER BY changed, project, spider, job LIMIT $2""",
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
        ("attempts", ""),
        ("worker_groups", ""),
        ("jobs", ""),
    ):
        await tx.execute_many(f"DELETE FROM {table} WHERE {_OWNED}{condition}", doomed)
    for project, some in groupby(doomed, key=lambda key: key.project):
        await count_moves(tx, project, [Move(key.spider, JobState.DELETED, None) for key in some])
    return len(doomed)


async def _may_go(tx: Transaction, key: JobKey, before: int) -> bool:
    """Lock a job; return true when it is still due."""
    row = await tx.fetchrow(
        f"SELECT 1 FROM jobs WHERE {_OWNED} AND {_due('$4')} FOR UPDATE",
        *key,
        before,
    )
    if row is None:
        return False
    left = await tx.fetchrow(
        f"SELECT 1 FROM record_chunks WHERE {_OWNED} AND kind IN ({_KINDS}) LIMIT 1",
        *key,
    )
    if left is None:
        return True
    # A server of an older version has stored records after the removal.
    for kind in RECORD_KINDS:
        await add_removal(tx, RemovedOwner(key.project, kind, key.spider, key.job))
    return False

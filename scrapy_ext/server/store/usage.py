"""Use of storage by projects, counted in bounded reads.

A count reads all rows of a project, page by page, without a lock: the totals of jobs' records, and the sizes of other
rows. So it may take minutes. It runs in the background, once at a time in a process, and its result is kept for some
time. Meanwhile the result of the count before it is returned, or the sums so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.platform.usage import Deleted, Part, Usage
from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction
from scrapy_ext.server.store.removals import COLLECTION, RECORD_KINDS, SLOT

#: Milliseconds for which a result is returned without a new count.
_KEPT: Final = 30_000
#: Multiple of its duration for which the result of a count is kept that took longer than a call waits (:data:`_WAIT`),
#: deletions or not: looking at the use of a large project again and again must not count it all the time.
_KEPT_LONG: Final = 20
#: Seconds that a call waits for a count, before it returns an earlier result or the sums so far.
_WAIT: Final = 3.0
#: Jobs and other rows per read: some milliseconds.
_JOBS: Final = 500
_ROWS: Final = 2000
_DAY: Final = 24 * 60 * 60 * 1000
#: Ages of jobs since their last change of state: name and maximum (ms).
_AGES: Final = (("7d", 7 * _DAY), ("30d", 30 * _DAY), ("90d", 90 * _DAY), ("older", MAX_NUMBER))
_NO_JOB: Final = "unknown"

_JOB_KIND: Final = "jobs"


class _Table(NamedTuple):
    """Table of a kind: its key after the project, and the bytes and records of a row."""

    kind: str
    name: str
    key: tuple[str, ...]
    size: str
    records: str = "1"
    #: Kind of the owner that the first column of the key numbers, if it may be deleted before its rows.
    owner: str = ""


_COPIES: Final = "COALESCE(length(value_1), 0) + COALESCE(length(value_2), 0)"
_FPS: Final = "COALESCE(length(fdata), 0)"
_TABLES: Final = (
    _Table(
        "collections",
        "collection_records",
        ("collection", "key"),
        f"length(key) + length(value) + {_COPIES}",
        owner=COLLECTION,
    ),
    _Table("frontiers", "frontier_batches", ("slot", "priority", "batch"), "length(requests)", "size", SLOT),
    _Table("frontiers", "frontier_fingerprints", ("slot", "run", "fp"), f"length(fp) + {_FPS}", "0", SLOT),
    _Table("frontiers", "frontier_fingerprint_blocks", ("slot", "run", "first"), f"length(fps) + {_FPS}", "0", SLOT),
    _Table("frontiers", "frontier_packed_fingerprints", ("slot", "run", "first"), "length(fps)", "0", SLOT),
    _Table("frontiers", "frontier_long_fingerprints", ("slot", "beginning", "hash"), "length(fp)", "0", SLOT),
    _Table(
        "frontiers", "frontier_fingerprint_data", ("slot", "addition", "place"), "length(fp) + length(fdata)", "0", SLOT
    ),
    _Table("versions", "version_pieces", ("deploy", "piece"), "length(body)", "CASE WHEN piece = 0 THEN 1 ELSE 0 END"),
    _Table("deliveries", "webhook_deliveries", ("webhook", "number"), "length(body)"),
    _Table("activity", "activity", ("number",), "length(event)"),
    _Table("comments", "comments", ("number",), "length(content)"),
)
#: Tables whose rows name all projects with data.
_PROJECTS: Final = (
    *("jobs", "record_totals", "collections", "frontier_slots", "versions", "activity", "webhooks", "removals"),
    "freed",
)


class _Sum:
    """Jobs, records and bytes."""

    def __init__(self) -> None:
        self.jobs = 0
        self.records = 0
        self.bytes = 0

    def add(self, jobs: int, records: int, size: int) -> None:
        self.jobs += jobs
        self.records += records
        self.bytes += size


_Sums = defaultdict[str, _Sum]


class _Count:
    """Count of a project; ``counted``: when it was complete (ms), after so many ``seconds``."""

    def __init__(self) -> None:
        self.counted: int | None = None
        self.seconds = 0.0
        self.kinds = _Sums(_Sum)
        self.spiders = _Sums(_Sum)
        self.ages = _Sums(_Sum)
        #: Bytes of deleted collections and frontiers, whose rows are still there.
        self.deleted = 0
        #: Deletions before the count: number of those to be removed, and of removed rows.
        self.deletions = (0, 0)


class _Job(NamedTuple):
    spider: int
    job: int
    name: str
    changed: int
    size: int


class UsageStore:
    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock
        self._complete: dict[int, _Count] = {}
        self._running: dict[int, tuple[_Count, asyncio.Task[None]]] = {}
        self._one = asyncio.Lock()

    async def of_project(self, project: int) -> Usage:
        """Return the use of storage by a project."""
        count = await self._counted(project, time.monotonic() + _WAIT)
        return _usage(project, [count], {}, await self._engine.read(_deleted, project))

    async def of_all(self) -> Usage:
        """Return the use of storage by all projects."""
        until = time.monotonic() + _WAIT
        projects = await self._engine.read(_projects)
        counts = {project: await self._counted(project, until) for project in projects}
        return _usage(None, counts.values(), counts, await self._engine.read(_deleted, None))

    async def close(self) -> None:
        """End the counts that run."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    async def _counted(self, project: int, until: float) -> _Count:
        """Return the last count of a project, which runs again if it is old; one that has not ended without another."""
        complete = self._complete.get(project)
        if complete is not None and await self._is_recent(project, complete):
            return complete
        if project not in self._running:
            count = _Count()
            self._running[project] = (count, asyncio.create_task(self._run(project, count)))
        count, task = self._running[project]
        done, _ = await asyncio.wait({task}, timeout=max(until - time.monotonic(), 0))
        if done:
            task.result()
            return count
        return complete or count

    async def _is_recent(self, project: int, count: _Count) -> bool:
        """Return true for a count without a later deletion that was complete a short time ago, or that took long."""
        if count.counted is None:
            return False
        age = self._clock() - count.counted
        if count.seconds > _WAIT:
            return age < max(_KEPT, _KEPT_LONG * 1000 * count.seconds)
        return age < _KEPT and count.deletions == await self._deletions(project)

    async def _deletions(self, project: int) -> tuple[int, int]:
        deleted = await self._engine.read(_deleted, project)
        return deleted.owners, deleted.removed_rows

    async def _run(self, project: int, count: _Count) -> None:
        try:
            async with self._one:
                began = time.monotonic()
                count.deletions = await self._deletions(project)
                await self._count(project, count)
                count.seconds = time.monotonic() - began
            count.counted = self._clock()
            self._complete[project] = count
        finally:
            del self._running[project]

    async def _count(self, project: int, count: _Count) -> None:
        now, after = self._clock(), (-1, -1)
        while after < (MAX_NUMBER, MAX_NUMBER):
            jobs, totals, after = await self._page(_jobs_page, project, after)
            _add_jobs(count, jobs, totals, now)
        removed = await self._engine.read(_removed, project)
        for table in _TABLES:
            last: Row | None = ()
            while last is not None:
                rows, last = await self._page(_rows_page, project, table, last)
                for size, records, owner in rows:
                    if (table.owner, owner) in removed:
                        count.deleted += size
                    else:
                        count.kinds[table.kind].add(0, records, size)

    async def _page(self, read: Callable[..., Any], *arguments: object) -> Any:
        """Read a page, and pause as long as that took."""
        began = time.monotonic()
        page = await self._engine.read(read, *arguments)
        await asyncio.sleep(time.monotonic() - began)
        return page


def _add_jobs(count: _Count, jobs: Iterable[_Job], totals: Iterable[Row], now: int) -> None:
    known, seen = {job[:2]: job for job in jobs}, set[tuple[int, int]]()
    for each in known.values():
        count.kinds[_JOB_KIND].add(1, 1, each.size)
    for kind, spider, number, records, size in totals:
        key = (spider, number)
        job = known.get(key)
        age = _NO_JOB if job is None else next(name for name, most in _AGES if now - job.changed <= most)
        is_first = key not in seen
        seen.add(key)
        count.kinds[kind].add(records > 0, records, size)
        for sums, name in ((count.spiders, str(spider) if job is None else job.name), (count.ages, age)):
            sums[name].add(is_first, records, size)


def _usage(project: int | None, counts: Iterable[_Count], projects: Mapping[int, _Count], deleted: Deleted) -> Usage:
    kinds, spiders, ages, times = _Sums(_Sum), _Sums(_Sum), _Sums(_Sum), list[int | None]()
    for count in counts:
        _merge(kinds, count.kinds)
        _merge(spiders, count.spiders)
        _merge(ages, count.ages)
        times.append(count.counted)
        deleted.waiting += count.deleted
    complete = [each for each in times if each is not None]
    of_projects = {str(number): _total(count) for number, count in projects.items()}
    order = [*(name for name, _ in _AGES), _NO_JOB]
    return Usage(
        project=project,
        counted=min(complete, default=0) if len(complete) == len(times) else None,
        bytes=_total_of(kinds).bytes,
        kinds=_largest(kinds),
        spiders=[] if project is None else _largest(spiders),
        ages=sorted(_largest(ages), key=lambda part: order.index(part.name)),
        projects=_largest(of_projects),
        deleted=deleted,
    )


def _merge(into: _Sums, sums: Mapping[str, _Sum]) -> None:
    for name, each in sums.items():
        into[name].add(each.jobs, each.records, each.bytes)


def _total(count: _Count) -> _Sum:
    total = _total_of(count.kinds)
    total.jobs = count.kinds[_JOB_KIND].jobs
    return total


def _total_of(sums: Mapping[str, _Sum]) -> _Sum:
    total = _Sum()
    for each in sums.values():
        total.add(each.jobs, each.records, each.bytes)
    return total


def _largest(sums: Mapping[str, _Sum]) -> list[Part]:
    parts = [Part(name, each.jobs, each.records, each.bytes) for name, each in sums.items()]
    return sorted(parts, key=lambda part: (-part.bytes, part.name))


async def _projects(tx: Transaction) -> list[int]:
    """Return the projects with data."""
    found = set[int]()
    for table in _PROJECTS:
        project = -1
        # One step in the index for each project.
        while row := await tx.fetchrow(
            f"SELECT project FROM {table} WHERE project > $1 ORDER BY project LIMIT 1",
            project,
        ):
            project = row[0]
            found.add(project)
    return sorted(found)


async def _jobs_page(
    tx: Transaction, project: int, after: tuple[int, int]
) -> tuple[list[_Job], list[Row], tuple[int, int]]:
    """Return the next jobs, the totals of the readable records up to them, and the key of the last job."""
    rows = await tx.fetch(
        f"""SELECT spider, job, spider_name, changed, length(metadata) FROM jobs
            WHERE project = $1 AND (spider, job) > ($2, $3) ORDER BY spider, job LIMIT {_JOBS}""",
        project,
        *after,
    )
    jobs = [_Job(*row) for row in rows]
    last = (jobs[-1].spider, jobs[-1].job) if len(jobs) == _JOBS else (MAX_NUMBER, MAX_NUMBER)
    totals: list[Row] = []
    for kind in RECORD_KINDS:
        totals += await tx.fetch(
            """SELECT kind, spider, job, records, COALESCE(stored, 0) FROM record_totals
               WHERE project = $1 AND kind = $2 AND (spider, job) > ($3, $4) AND (spider, job) <= ($5, $6)
               AND removed IS NULL""",
            project,
            kind,
            *after,
            *last,
        )
    return jobs, totals, last


async def _rows_page(
    tx: Transaction, project: int, table: _Table, after: Row
) -> tuple[list[tuple[int, int, int]], Row | None]:
    """Return bytes, records and first part of the key of the next rows, summed, and the key of the last; None: the end.

    ``after`` is empty for the first page.
    """
    key = ", ".join(table.key)
    marks = ", ".join(f"${place}" for place in range(2, 2 + len(after)))
    following = f"AND ({key}) > ({marks})" if after else ""
    rows = await tx.fetch(
        f"""SELECT {table.size}, {table.records}, {key} FROM {table.name} WHERE project = $1 {following}
            ORDER BY {key} LIMIT {_ROWS}""",
        project,
        *after,
    )
    sums: dict[int, _Sum] = defaultdict(_Sum)
    for size, records, owner, *_ in rows:
        sums[owner].add(0, records, size)
    found = [(each.bytes, each.records, owner) for owner, each in sums.items()]
    return found, rows[-1][2:] if len(rows) == _ROWS else None


async def _removed(tx: Transaction, project: int) -> set[tuple[str, int]]:
    """Return kind and number of the deleted collections and slots whose rows are still there."""
    rows = await tx.fetch(
        "SELECT kind, number FROM removals WHERE project = $1 AND kind IN ('collection', 'slot')", project
    )
    return {(row[0], row[1]) for row in rows}


async def _deleted(tx: Transaction, project: int | None) -> Deleted:
    of_project, arguments = ("", ()) if project is None else (" WHERE project = $1", (project,))
    waiting = await tx.fetchrow(
        f"SELECT count(*), CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM removals{of_project}",
        *arguments,
    )
    removed = await tx.fetchrow(
        f"""SELECT CAST(COALESCE(sum(rows_deleted), 0) AS BIGINT), CAST(COALESCE(sum(bytes), 0) AS BIGINT)
            FROM freed{of_project}""",
        *arguments,
    )
    return Deleted(*(waiting or (0, 0)), *(removed or (0, 0)))

"""Periodic jobs: the schedules of projects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.periodic.runs import (
    STATE_COLUMNS,
    Due,
    Run,
    ScheduleState,
    find_due,
    next_due,
    plan,
    plan_some,
    run_due,
    state_of,
)
from scrapy_ext.server.store.spiders import spider_number

#: Of one project.
MAX_SCHEDULES: Final = 10_000
#: Makes a schedule out of the stored one; raises ``ContractError``.
Edit = Callable[[PeriodicJob], PeriodicJob]

_decode: Final = msgspec.json.Decoder(PeriodicJob).decode


class SchedulePage(NamedTuple):
    """Some of a project's schedules, and how many it has in all."""

    total: int
    schedules: list[PeriodicJob]


class PeriodicStore:
    """Schedules by project and number."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock
        #: Set when a schedule was made or edited here: what waits for the next run looks again.
        self.changed = asyncio.Event()

    async def add(self, schedule: PeriodicJob) -> PeriodicJob:
        """Store a new schedule; returns it with its number and those of what it runs."""
        added = await self._engine.write(_add, schedule, self._clock())
        self.changed.set()
        return added

    async def get(self, project: int, number: int) -> PeriodicJob | None:
        """One schedule."""
        return await self._engine.read(_get, project, number)

    async def page(self, project: int, limit: int, offset: int) -> SchedulePage:
        """Schedules in the order in which they were made."""
        return await self._engine.read(_page, project, limit, offset)

    async def edit(self, project: int, number: int, edit: Edit) -> PeriodicJob | None:
        """Replace a schedule by what ``edit`` makes of it; returns that, None when there is none."""
        edited = await self._engine.write(_edit, project, number, edit, self._clock())
        self.changed.set()
        return edited

    async def remove(self, project: int, number: int) -> bool:
        """Delete a schedule; returns whether there was one."""
        return await self._engine.write(_remove, project, number)

    async def listed(self, project: int, limit: int, offset: int = 0) -> list[ScheduleState]:
        """Schedules in the order in which they were made, with when each runs next and what ran last."""
        return await self._engine.read(_listed, project, limit, offset)

    async def state(self, project: int, number: int) -> ScheduleState | None:
        """One schedule, with when it runs next and what ran last."""
        return await self._engine.read(_state, project, number)

    async def plan(self) -> None:
        """Plan anew what was planned while the clock was wrong by days."""
        while await self._engine.write(plan_some, self._clock()):
            pass

    async def due(self) -> list[Due]:
        """Schedules whose next run has come."""
        return await self._engine.read(find_due, self._clock())

    async def next_due(self) -> int | None:
        """When the next schedule is due (ms); None when none will be."""
        return await self._engine.read(next_due)

    async def run(self, due: Due) -> Run | None:
        """Add the jobs of a due schedule; None when that is done already."""
        try:
            return await self._engine.write(run_due, due, self._clock())
        except ContractError as error:  # what it would add cannot be stored
            return await self._engine.write(run_due, due, self._clock(), refused=str(error))

    async def load(self) -> Mapping[str, int]:
        """How many tasks the schedules of all projects that are not disabled run at each cron expression."""
        return await self._engine.read(_load)


async def _add(tx: Transaction, schedule: PeriodicJob, now: int) -> PeriodicJob:
    project = schedule.project
    number = await advance(tx, project, "periodic")
    row = await tx.fetchrow("SELECT count(*) FROM periodic_jobs WHERE project = $1", project)
    if row is not None and row[0] >= MAX_SCHEDULES:
        raise ContractError(
            [Violation("project", f"has {MAX_SCHEDULES} periodic jobs, which is the limit", "Delete some of them.")]
        )
    schedule = await _numbered(tx, schedule, now)
    schedule.id = number
    await tx.execute(
        """INSERT INTO periodic_jobs (project, number, cron, disabled, tasks, definition)
           VALUES ($1, $2, $3, $4, $5, $6)""",
        project,
        number,
        *_columns(schedule),
    )
    await plan(tx, schedule, now)
    return schedule


async def _numbered(tx: Transaction, schedule: PeriodicJob, now: int) -> PeriodicJob:
    """The schedule with the number of the spider or script of each task."""
    tasks = [
        msgspec.structs.replace(task, jobq_id=await spider_number(tx, schedule.project, task.name, now))
        for task in schedule.tasks
    ]
    return msgspec.structs.replace(schedule, tasks=tasks)


def _columns(schedule: PeriodicJob) -> tuple[str, int, int, bytes]:
    return schedule.cron, int(schedule.disabled), len(schedule.tasks), msgspec.json.encode(schedule)


async def _get(tx: Transaction, project: int, number: int, *, lock: bool = False) -> PeriodicJob | None:
    query = "SELECT definition FROM periodic_jobs WHERE project = $1 AND number = $2"
    row = await tx.fetchrow(f"{query} FOR UPDATE" if lock else query, project, number)
    return _decode(row[0]) if row else None


async def _page(tx: Transaction, project: int, limit: int, offset: int) -> SchedulePage:
    row = await tx.fetchrow("SELECT count(*) FROM periodic_jobs WHERE project = $1", project)
    rows = await tx.fetch(
        "SELECT definition FROM periodic_jobs WHERE project = $1 ORDER BY number LIMIT $2 OFFSET $3",
        project,
        limit,
        offset,
    )
    return SchedulePage(row[0] if row else 0, [_decode(each[0]) for each in rows])


async def _edit(tx: Transaction, project: int, number: int, edit: Edit, now: int) -> PeriodicJob | None:
    stored = await _get(tx, project, number, lock=True)
    if stored is None:
        return None
    schedule = await _numbered(tx, edit(stored), now)
    await tx.execute(
        """UPDATE periodic_jobs SET cron = $3, disabled = $4, tasks = $5, definition = $6
           WHERE project = $1 AND number = $2""",
        project,
        number,
        *_columns(schedule),
    )
    if (schedule.cron, schedule.disabled) != (stored.cron, stored.disabled):
        await plan(tx, schedule, now)  # not always: a run that is due now would be lost
    return schedule


async def _listed(tx: Transaction, project: int, limit: int, offset: int) -> list[ScheduleState]:
    rows = await tx.fetch(
        f"""SELECT {STATE_COLUMNS} FROM periodic_jobs
            WHERE project = $1 ORDER BY number LIMIT $2 OFFSET $3""",  # noqa: S608 - fixed text
        project,
        limit,
        offset,
    )
    return [state_of(row) for row in rows]


async def _state(tx: Transaction, project: int, number: int) -> ScheduleState | None:
    row = await tx.fetchrow(
        f"SELECT {STATE_COLUMNS} FROM periodic_jobs WHERE project = $1 AND number = $2",  # noqa: S608 - fixed text
        project,
        number,
    )
    return state_of(row) if row else None


async def _remove(tx: Transaction, project: int, number: int) -> bool:
    return await tx.execute("DELETE FROM periodic_jobs WHERE project = $1 AND number = $2", project, number) > 0


async def _load(tx: Transaction) -> dict[str, int]:
    return dict(
        await tx.fetch(
            "SELECT cron, CAST(sum(tasks) AS BIGINT) FROM periodic_jobs WHERE disabled = 0 GROUP BY cron ORDER BY cron"
        )
    )

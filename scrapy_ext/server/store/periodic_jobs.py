"""Periodic jobs: the schedules of projects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Method, Transaction
from scrapy_ext.server.store.monitor_queue import forget_schedule
from scrapy_ext.server.store.periodic_runs import (
    STATE_COLUMNS,
    DueRun,
    ScheduleRun,
    ScheduleState,
    find_due,
    next_due,
    plan,
    plan_some,
    run_due,
    state_of,
)
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.spiders import spider_number

#: Maximum schedules of a project.
MAX_SCHEDULES: Final = 10_000
#: Returns a changed schedule; raises ``ContractError``.
Edit = Callable[[PeriodicJob], PeriodicJob]

_decode: Final = msgspec.json.Decoder(PeriodicJob).decode


class SchedulePage(NamedTuple):
    """A page of a project's schedules, and the number of all."""

    total: int
    schedules: list[PeriodicJob]


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


async def _add_all(tx: Transaction, schedules: Sequence[PeriodicJob], now: int) -> list[PeriodicJob]:
    return [await _add(tx, schedule, now) for schedule in schedules]


async def _numbered(tx: Transaction, schedule: PeriodicJob, now: int) -> PeriodicJob:
    """Return the schedule with the numbers of its tasks' spiders or scripts."""
    tasks = [
        msgspec.structs.replace(task, jobq_id=await spider_number(tx, schedule.project, task.name, now))
        for task in schedule.tasks
    ]
    return msgspec.structs.replace(schedule, tasks=tasks)


def _columns(schedule: PeriodicJob) -> tuple[str, int, int, bytes]:
    return schedule.cron, int(schedule.disabled), len(schedule.tasks), msgspec.json.encode(schedule)


async def get(tx: Transaction, project: int, number: int, *, lock: bool = False) -> PeriodicJob | None:
    query = "SELECT definition FROM periodic_jobs WHERE project = $1 AND number = $2"
    row = await tx.fetchrow(f"{query} FOR UPDATE" if lock else query, project, number)
    return _decode(row[0]) if row else None


async def page(tx: Transaction, project: int, limit: int, offset: int) -> SchedulePage:
    """Return schedules, oldest first."""
    row = await tx.fetchrow("SELECT count(*) FROM periodic_jobs WHERE project = $1", project)
    rows = await tx.fetch(
        "SELECT definition FROM periodic_jobs WHERE project = $1 ORDER BY number LIMIT $2 OFFSET $3",
        project,
        limit,
        offset,
    )
    return SchedulePage(row[0] if row else 0, [_decode(each[0]) for each in rows])


async def _edit(tx: Transaction, project: int, number: int, edit: Edit, now: int) -> PeriodicJob | None:
    stored = await get(tx, project, number, lock=True)
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
        # Only after a change of the times: otherwise a due run would be lost.
        await plan(tx, schedule, now)
    if schedule.disabled and not stored.disabled:
        await forget_schedule(tx, project, number)
    return schedule


async def listed(tx: Transaction, project: int, limit: int, offset: int = 0) -> list[ScheduleState]:
    """Return schedules, oldest first, with their next and last runs."""
    rows = await tx.fetch(
        f"""SELECT {STATE_COLUMNS} FROM periodic_jobs
            WHERE project = $1 ORDER BY number LIMIT $2 OFFSET $3""",
        project,
        limit,
        offset,
    )
    return [state_of(row) for row in rows]


async def state(tx: Transaction, project: int, number: int) -> ScheduleState | None:
    """Return one schedule with its next and last run."""
    row = await tx.fetchrow(
        f"SELECT {STATE_COLUMNS} FROM periodic_jobs WHERE project = $1 AND number = $2",
        project,
        number,
    )
    return state_of(row) if row else None


async def remove(tx: Transaction, project: int, number: int) -> bool:
    """Delete a schedule; return whether there was one."""
    await forget_schedule(tx, project, number)
    return await tx.execute("DELETE FROM periodic_jobs WHERE project = $1 AND number = $2", project, number) > 0


class _Named(msgspec.Struct):
    name: str


class _Tasks(msgspec.Struct):
    """The names in a definition; the rest is skipped, not decoded."""

    tasks: list[_Named]


_decode_names: Final = msgspec.json.Decoder(_Tasks).decode


async def next_runs(tx: Transaction, project: int) -> dict[str, int]:
    """Return the next planned run (ms) of each spider and script of a project that has one."""
    rows = await tx.fetch(
        """SELECT next_run, definition FROM periodic_jobs WHERE project = $1 AND next_run IS NOT NULL
           ORDER BY next_run DESC""",
        project,
    )
    return {task.name: run for run, definition in rows for task in _decode_names(definition).tasks}


async def load(tx: Transaction) -> dict[str, int]:
    """Return the number of tasks by cron expression, over all enabled schedules."""
    return dict(
        await tx.fetch(
            "SELECT cron, CAST(sum(tasks) AS BIGINT) FROM periodic_jobs WHERE disabled = 0 GROUP BY cron ORDER BY cron"
        )
    )


class PeriodicStore(EngineStore):
    """Schedules by project and number."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        #: Set when a schedule was added or edited here, so that the loop of runs polls again.
        self.changed = asyncio.Event()

    async def add(self, schedule: PeriodicJob) -> PeriodicJob:
        """Store a new schedule; return it with its number and those of its spiders."""
        added = await self._engine.write(_add, schedule, self._clock())
        self.changed.set()
        return added

    async def add_all(self, schedules: Sequence[PeriodicJob]) -> list[PeriodicJob]:
        """Store several new schedules, or none of them."""
        added = await self._engine.write(_add_all, schedules, self._clock())
        self.changed.set()
        return added

    get = Method("read", get)
    page = Method("read", page)

    async def edit(self, project: int, number: int, edit: Edit) -> PeriodicJob | None:
        """Replace a schedule by the result of ``edit``; return that, or None when there is none."""
        edited = await self._engine.write(_edit, project, number, edit, self._clock())
        self.changed.set()
        return edited

    remove = Method("write", remove)
    listed = Method("read", listed)
    state = Method("read", state)

    async def plan(self) -> None:
        """Plan the schedules anew that were planned while the clock was wrong by days."""
        while await self._engine.write(plan_some, self._clock()):
            pass

    async def due(self) -> list[DueRun]:
        """Return the schedules whose next run is due."""
        return await self._engine.read(find_due, self._clock())

    next_due = Method("read", next_due)

    async def run(self, due: DueRun) -> ScheduleRun | None:
        """Add the jobs of a due schedule; None when that is done already."""
        try:
            return await self._engine.write(run_due, due, self._clock())
        # The jobs cannot be stored.
        except ContractError as error:
            return await self._engine.write(run_due, due, self._clock(), refused=str(error))

    load = Method("read", load)
    next_runs = Method("read", next_runs)

"""Periodic jobs: a due minute is run for by one server, once; missed minutes are one run; clocks go back and forth."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.periodic_runs import DueRun
from tests.support.models.history import Call
from tests.support.models.machine import either, made, only
from tests.support.models.worlds import HttpWorld, StoreWorld, accepted

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
#: How old a missed minute may be to be made up for, and how far a clock may go back and minutes be known (docs).
CATCH_UP, SET_BACK = _HOUR, _DAY
CRONS = ("* * * * *", "0 * * * *", "30 4 * * *", "0 0 1 * *", "15 3 * * 1", "0 12 1 * 0", "0 0 29 2 *")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Add(NamedTuple):
    cron: str
    disabled: bool
    spider: str = ""
    now: int = 0


class Edit(NamedTuple):
    """``None``: as it is."""

    number: int
    cron: str | None
    disabled: bool | None
    now: int = 0


class Remove(NamedTuple):
    number: int


class Look(NamedTuple):
    """Schedules that are due."""

    now: int = 0


class Run(NamedTuple):
    """Choice of one that was due; then the schedule, and its time."""

    due: Any
    now: int = 0


class See(NamedTuple):
    number: int


class Jobs(NamedTuple):
    """All jobs that runs have added: their schedule and minute."""


class Finish(NamedTuple):
    """All jobs end."""


class Plan(NamedTuple):
    now: int = 0


class Wait(NamedTuple):
    """The clocks are set: forward, or back."""

    milliseconds: int
    now: int = 0


class Schedule(NamedTuple):
    cron: str
    disabled: bool
    next_run: int | None
    planned: int
    last_run: int | None = None
    is_active: bool = False

    def replanned(self, now: int) -> Schedule:
        """The schedule as it is planned anew."""
        last = self.last_run or 0
        after = max(now, last) if last - now <= SET_BACK else now
        return self._replace(next_run=None if self.disabled else minute_after(self.cron, after), planned=now)


class State(NamedTuple):
    """Schedules by their numbers, from 1; the runs that added a job; the latest time that any clock showed, and whether
    clocks have gone back so far that minutes may come again."""

    schedules: tuple[Schedule | None, ...] = ()
    ran: tuple[tuple[int, int], ...] = ()
    latest: int = 0
    is_far_back: bool = False

    def of(self, number: int) -> Schedule | None:
        """A schedule by its number."""
        return self.schedules[number - 1] if 1 <= number <= len(self.schedules) else None

    def with_one(self, number: int, schedule: Schedule | None) -> State:
        """The state with another schedule of a number."""
        return self._replace(schedules=(*self.schedules[: number - 1], schedule, *self.schedules[number:]))


class Periodic:
    """The model: the schedules of a project."""

    tables = ("periodic_jobs", "jobs", "counters")

    def initial(self, part: Any) -> State:
        return State()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        yield "project", call

    def step(self, state: State, operation: Any, result: Any) -> Iterator[State]:
        schedules = list(enumerate(state.schedules, 1))
        match operation:
            case Add(cron, disabled, _, now):
                added = Schedule(cron, disabled, None, now).replanned(now)
                yield from only(
                    either(result, len(state.schedules) + 1), state._replace(schedules=(*state.schedules, added))
                )
            case Edit(number, _, _, now):
                schedule = state.of(number)
                if either(result, schedule is not None):
                    yield state if schedule is None else state.with_one(number, edited(schedule, operation, now))
            case Remove(number):
                schedule = state.of(number)
                if either(result, schedule is not None):
                    yield state if schedule is None else state.with_one(number, None)
            case Look(now):
                due = [(n, each.next_run) for n, each in schedules if each and each.next_run and each.next_run <= now]
                yield from only(either(result, sorted(due)), state)
            case See(number):
                each = state.of(number)
                seen = each and (each.cron, each.disabled, each.next_run, each.last_run)
                yield from only(either(result, seen), state)
            case Jobs():
                yield from only(either(result, sorted(state.ran)), state)
            case Finish():
                ended = tuple(each and each._replace(is_active=False) for each in state.schedules)
                yield state._replace(schedules=ended)
            case Plan(now):
                planned = tuple(
                    each.replanned(now) if each and each.planned > now + SET_BACK else each for each in state.schedules
                )
                yield state._replace(schedules=planned)
            case Wait(milliseconds, now):
                latest, later = max(state.latest, now), now + milliseconds
                yield state._replace(latest=latest, is_far_back=state.is_far_back or latest - later > SET_BACK)
            case Run():
                yield from self._run(state, operation, result)

    def _run(self, state: State, operation: Run, result: Any) -> Iterator[State]:
        (number, due), now = operation.due, operation.now
        schedule = state.of(number)
        if schedule is None or schedule.next_run != due:
            yield from only(either(result, None), state)
            return
        newest = newest_of(schedule.cron, due, now)
        following = schedule._replace(next_run=minute_after(schedule.cron, now), planned=now)
        if newest is None:
            yield from only(either(result, (due, "missed", False)), state.with_one(number, following))
            return
        is_added = not schedule.is_active
        ran = ((number, newest),) if is_added else ()
        if set(ran) & set(state.ran) and not state.is_far_back:
            return  # a minute is run for once
        following = following._replace(last_run=newest, is_active=True)
        if either(result, (newest, None, is_added)):
            yield state.with_one(number, following)._replace(ran=(*state.ran, *ran))

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        crons, numbers, which = st.sampled_from(CRONS), st.integers(1, 4), st.integers(0, 3)
        add = made(Add, crons, st.sampled_from([False, False, True]))
        edit = made(Edit, numbers, st.none() | crons, st.none() | st.booleans())
        run = made(Run, which)
        each: list[st.SearchStrategy[Any]] = [
            *(add, edit, made(Remove, numbers), run, run, run, run, made(See, numbers)),
            *(st.just(Jobs()), st.just(Look()), st.just(Look())),
        ]
        if not at_once:
            forward = [1, _MINUTE, 59 * _MINUTE, _HOUR, 25 * _HOUR, 40 * _DAY]
            wait = made(Wait, st.sampled_from([*forward, *forward, -_MINUTE, -3 * _HOUR, -3 * _DAY]))
            each += [wait, wait, wait, st.just(Finish()), st.just(Plan()), st.just(Look())]
        return st.one_of(each)


def edited(schedule: Schedule, edit: Edit, now: int) -> Schedule:
    """A schedule after an edit: it is planned anew when that makes a difference."""
    cron = schedule.cron if edit.cron is None else edit.cron
    disabled = schedule.disabled if edit.disabled is None else edit.disabled
    after = schedule._replace(cron=cron, disabled=disabled)
    return schedule if after == schedule else after.replanned(now)


def newest_of(cron: str, due: int, now: int) -> int | None:
    """The newest minute from ``due`` on that has come, unless that is too long ago."""
    newest, minute = None, max(due, now - CATCH_UP - _MINUTE)
    minute = due if minute == due else minute_after(cron, minute) or now + 1
    while minute <= now:
        newest = minute
        minute = minute_after(cron, minute) or now + 1
    return newest if newest is not None and now - newest < CATCH_UP else None


@cache
def minute_after(cron: str, after: int) -> int | None:
    """The first minute after a time (ms) at which an expression runs: by looking at one day after the other."""
    fields = [None if each == "*" else int(each) for each in cron.split()]
    first = _EPOCH + timedelta(milliseconds=after)
    for days in range(9 * 366):
        day = first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
        if not _runs_on(fields, day):
            continue
        for hour in range(24) if fields[1] is None else [fields[1]]:
            if day + timedelta(hours=hour + 1) <= first:
                continue
            for minute in range(60) if fields[0] is None else [fields[0]]:
                at = day + timedelta(hours=hour, minutes=minute)
                if at > first:
                    return (at - _EPOCH) // timedelta(milliseconds=1)
    return None


def _runs_on(fields: list[int | None], day: datetime) -> bool:
    _, _, day_of_month, month, day_of_week = fields
    if month not in (None, day.month):
        return False
    weekday = day.isoweekday() % 7
    if day_of_month is not None and day_of_week is not None:
        return day.day == day_of_month or weekday == day_of_week
    return day_of_month in (None, day.day) and day_of_week in (None, weekday)


def schedule_of(project: int, cron: str, spider: str, *, disabled: bool) -> PeriodicJob:
    """A schedule with one task."""
    given = {"addtags": [], "type": "spider", "description": ""}
    return PeriodicJob(id=0, project=project, cron=cron, disabled=disabled, tasks=[Task(name=spider)], **given)


class OnStores:
    """Operations of two servers' stores in turn."""

    def __init__(self, world: StoreWorld, project: int) -> None:
        self._world, self._project, self._turn = world, project, 0
        self._added = 0
        self._due: list[tuple[int, int]] = []

    def resolved(self, operation: Any) -> Any:
        if isinstance(operation, Add):
            self._added += 1
            operation = operation._replace(spider=f"s{self._added}")
        if isinstance(operation, Run):
            due = self._due[operation.due % len(self._due)] if self._due else (1, 0)
            operation = operation._replace(due=due)
        return operation._replace(now=self._world.clock.now) if "now" in operation._fields else operation

    async def make(self, operation: Any) -> Any:
        self._turn += 1
        store = self._world.stores[self._turn % 2]
        periodic, project = store.periodic, self._project
        match operation:
            case Add(cron, disabled, spider):
                return (await periodic.add(schedule_of(project, cron, spider, disabled=disabled))).id
            case Edit(number, cron, disabled):
                fields = {name: each for name, each in (("cron", cron), ("disabled", disabled)) if each is not None}
                found = await periodic.edit(project, number, lambda old: msgspec.structs.replace(old, **fields))
                return found is not None
            case Remove(number):
                return await periodic.remove(project, number)
            case Look():
                self._due = sorted((due.number, due.next_run) for due in await periodic.due() if due.project == project)
                return self._due
            case Run((number, next_run)):
                run = await periodic.run(DueRun(project, number, next_run))
                return run and (run.minute, run.refused, any(task.added for task in run.jobs))
            case See(number):
                state = await periodic.state(project, number)
                return state and (state.schedule.cron, state.schedule.disabled, state.next_run, state.last_run)
            case Jobs():
                found = await store.jobs.listed(project, JobFilter(), JobPage(1000))
                added = [job.metadata for job in found]
                return sorted((each["periodic_job_id"], each["periodic_time"]) for each in added)
            case Finish():
                await store.jobs.cancel_some(project, 1000, "me")
            case Plan():
                await periodic.plan()
            case Wait(milliseconds):
                self._world.clock.now += milliseconds
        return None

    async def end(self) -> None:
        """Leave no schedule that is due for others."""
        store = self._world.stores[0]
        for number in range(1, self._added + 1):
            await store.periodic.remove(self._project, number)


# ── over HTTP, where the clock is nobody's ──


class Create(NamedTuple):
    cron: str
    disabled: bool


class Change(NamedTuple):
    number: int
    cron: str | None
    disabled: bool | None


class Delete(NamedTuple):
    number: int


class Read(NamedTuple):
    number: int


class ListAll(NamedTuple):
    pass


_Given = tuple[str, bool]


class Schedules:
    """The model of the schedules themselves: numbers without gaps, and edits of the fields that are named."""

    tables = ("periodic_jobs",)

    def initial(self, part: Any) -> tuple[_Given | None, ...]:
        return ()

    def parts(self, call: Call) -> Iterator[tuple[str, Call]]:
        yield "project", call

    def step(self, state: tuple[_Given | None, ...], operation: Any, result: Any) -> Iterator[Any]:
        known = dict(enumerate(state, 1))
        match operation:
            case Create(cron, disabled):
                yield from only(either(result, len(state) + 1), (*state, (cron, disabled)))
                return
            case Read(number):
                yield from only(either(result, known.get(number)), state)
                return
            case ListAll():
                found = [(number, each) for number, each in known.items() if each is not None]
                yield from only(either(result, found), state)
                return
        before = known.get(operation.number)
        if not either(result, before is not None):
            return
        if before is not None:
            known[operation.number] = None
            if isinstance(operation, Change):
                cron = before[0] if operation.cron is None else operation.cron
                known[operation.number] = cron, before[1] if operation.disabled is None else operation.disabled
        yield tuple(known.values())

    def operations(self, *, at_once: bool) -> st.SearchStrategy[Any]:
        crons, numbers = st.sampled_from(["0 0 1 1 *", "1 0 1 1 *"]), st.integers(1, 5)
        create = made(Create, crons, st.booleans())
        change = made(Change, numbers, st.none() | crons, st.none() | st.booleans())
        reads = [made(Read, numbers), st.just(ListAll())]
        return st.one_of(create, create, change, change, made(Delete, numbers), *reads)


class OverHttp:
    """Schedules over HTTP."""

    def __init__(self, world: HttpWorld, project: int) -> None:
        self._world, self._path = world, f"/api/projects/{project}/periodicjobs"

    def resolved(self, operation: Any) -> Any:
        return operation

    async def make(self, operation: Any) -> Any:
        http = self._world.http
        match operation:
            case Create(cron, disabled):
                body = {"cron": cron, "disabled": disabled, "tasks": [{"name": "s"}]}
                return accepted(await http.post(self._path, msgspec.json.encode(body))).json["id"]
            case Change(number, cron, disabled):
                fields = {name: each for name, each in (("cron", cron), ("disabled", disabled)) if each is not None}
                answer = await http.call("PATCH", f"{self._path}/{number}", msgspec.json.encode(fields))
                return answer.status != 404 and bool(accepted(answer))
            case Delete(number):
                answer = await http.delete(f"{self._path}/{number}")
                return answer.status != 404 and bool(accepted(answer))
            case Read(number):
                answer = await http.get(f"{self._path}/{number}")
                return None if answer.status == 404 else _given(accepted(answer).json)
            case ListAll():
                found = accepted(await http.get(f"{self._path}?count=1000")).json["results"]
                return [(each["id"], _given(each)) for each in found]
        return None


def _given(answer: dict[str, Any]) -> _Given:
    return answer["cron"], answer["disabled"]

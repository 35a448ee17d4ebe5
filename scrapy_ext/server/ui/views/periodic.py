"""``/ui/<project>/periodic``: periodic jobs with their next and last runs, and a form for one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.common_schedules import COMMON, MAX_CRONS, crons_of, next_times
from scrapy_ext.api.platform.jobs import MAX_PRIORITY, MIN_PRIORITY
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.periodic import NewSchedule, PeriodicJob, blank, edited, suggested_hour
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.jobs.versions.runnable import check_tasks
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError
from scrapy_ext.server.store.periodic_runs import ScheduleState, jobs_of
from scrapy_ext.server.ui.frame import HEADERS, Link, MissingError, UiPage, Visit, field_errors
from scrapy_ext.server.ui.job_summary import summary
from scrapy_ext.server.ui.record_form import controls, default_texts, stored_texts, texts_of
from scrapy_ext.server.ui.schedule_form import FormTask, crons_of_form, fields_of, form_tasks
from scrapy_ext.server.ui.schedule_week import week_of
from scrapy_ext.server.ui.shapes import iso, when_in_words

_PATH: Final = "/ui/{project:number}/periodic"
_PER_PAGE: Final = 50
#: Schedules that a search reads at once.
_STEP: Final = 1000
_NEXT_RUNS: Final = 5
#: Schedules in the calendar of a week.
_IN_WEEK: Final = 500
#: Jobs of the last run shown in the list.
_LAST_JOBS: Final = 3
#: Actions of the form that store nothing.
_PREVIEWS: Final = ("preview", "choose")


class _Ran(NamedTuple):
    """A job of the last run; ``is_old`` when an earlier run had added it."""

    key: str
    state: str
    outcome: str
    verdict: str
    is_old: bool


class _Row(NamedTuple):
    schedule: PeriodicJob
    next_runs: list[int]
    last_run: int | None
    ran: list[_Ran]
    ran_more: int


def next_runs(schedule: PeriodicJob, now: int, number: int = _NEXT_RUNS) -> list[int]:
    """Return the times (ms) of the next runs after ``now`` (ms), ignoring that a schedule may be disabled."""
    # Another writer may have stored a schedule that does not parse.
    with contextlib.suppress(ContractError):
        return _next_times([schedule.cron], now, number)
    return []


def _next_times(crons: Sequence[str], now: int, number: int = _NEXT_RUNS) -> list[int]:
    after = datetime.fromtimestamp(now / 1000, timezone.utc)
    return [int(when.timestamp()) * 1000 for when in next_times(crons, after, number)]


async def _list(visit: Visit) -> Response:
    search, offset = visit.text("q"), visit.number("offset")
    states, total = await _found(visit, search.casefold(), offset)
    return visit.rendered(
        "periodic.html",
        rows=[await _row(visit, state) for state in states],
        total=total,
        offset=offset,
        size=_PER_PAGE,
        search=search,
        path=f"/ui/{visit.project}/periodic",
    )


async def _week(visit: Visit) -> Response:
    states = await visit.store.periodic.listed(visit.project, _IN_WEEK + 1, 0)
    schedules = [state.schedule for state in states[:_IN_WEEK]]
    return visit.rendered(
        "periodic_week.html",
        week=week_of([each for each in schedules if not each.disabled], visit.store.clock()),
        paused=sum(each.disabled for each in schedules),
        read=_IN_WEEK,
        more=len(states) > _IN_WEEK,
        path=f"/ui/{visit.project}/periodic",
    )


async def _found(visit: Visit, search: str, offset: int) -> tuple[list[ScheduleState], int]:
    """Return a page of the schedules that contain a text, and the number of all matches."""
    store = visit.store.periodic
    if not search:
        total = (await store.page(visit.project, 0, 0)).total
        return await store.listed(visit.project, _PER_PAGE, offset), total
    found: list[ScheduleState] = []
    read = 0
    while page := await store.listed(visit.project, _STEP, read):
        read += len(page)
        found += [state for state in page if search in _searched(state.schedule)]
    return found[offset : offset + _PER_PAGE], len(found)


def _searched(schedule: PeriodicJob) -> str:
    names = [task.name for task in schedule.tasks]
    return "\n".join([schedule.description, schedule.cron, *names, *schedule.addtags]).casefold()


async def _row(visit: Visit, state: ScheduleState, most: int = _LAST_JOBS) -> _Row:
    ran = []
    for run in islice(state.last_jobs, most):
        job = await visit.store.jobs.get(JobKey.parse(run.job))
        if job is None:
            ran.append(_Ran(run.job, "deleted", "", "", not run.added))
            continue
        of_job = summary(job, visit.store.clock())
        ran.append(_Ran(run.job, of_job.state, of_job.outcome, of_job.verdict, not run.added))
    return _Row(
        state.schedule,
        next_runs(state.schedule, visit.store.clock()),
        state.last_run,
        ran,
        max(len(state.last_jobs) - most, 0),
    )


async def _new(visit: Visit) -> Response:
    visit.require_write()
    return await schedule_of_task(visit, FormTask(visit.text("spider")))


async def schedule_of_task(visit: Visit, task: FormTask, tags: Sequence[str] = ()) -> Response:
    """Render the form of a new schedule with a task."""
    visit.section = "periodic"
    hour = suggested_hour(await visit.store.periodic.load())
    given = {**default_texts(NewSchedule), "addtags": "\n".join(tags)}
    tasks = form_tasks([]) if task.is_empty else [task, *form_tasks([])]
    return await _form(visit, None, given, tasks, crons=[f"0 {hour} * * *"])


async def _create(visit: Visit) -> Response:
    if visit.form.get("action") in _PREVIEWS:
        return await _preview(visit, None)
    try:
        fields = fields_of(visit.form)
        crons = crons_of_form(visit.form) or [""]
        schedules = [edited(blank(visit.project), {**fields, "cron": cron}) for cron in crons]
        await check_tasks(visit.store, visit.services.environments, schedules[0])
        added = await visit.store.periodic.add_all(schedules)
    except ContractError as error:
        return await _again(visit, None, error)
    for each in added:
        await visit.note(ChangeEvents.SCHEDULE_CREATED, id=each.id)
    if len(added) > 1:
        return visit.redirect(f"/ui/{visit.project}/periodic", "schedules-made", len(added))
    return visit.redirect(f"/ui/{visit.project}/periodic/{added[0].id}", "schedule-made")


async def _preview(visit: Visit, state: ScheduleState | None) -> Response:
    """Render the form again, with the expressions of a common schedule if one was chosen, and the next runs."""
    form = visit.form
    try:
        if form.get("action") == "choose":
            return await _again(visit, state, crons=crons_of(form.get("schedule") or "", form.get("at") or ""))
        _next_times(crons_of_form(form) or [""], visit.store.clock())
    except ContractError as error:
        return await _again(visit, state, error)
    return await _again(visit, state)


async def _again(
    visit: Visit, state: ScheduleState | None, error: ContractError | None = None, *, crons: list[str] | None = None
) -> Response:
    """Render the form with the submitted fields, valid or not."""
    form = visit.form
    shown = crons or [*form.all("cron")[:MAX_CRONS]] or [""]
    return await _form(visit, state, texts_of(NewSchedule, form), FormTask.of_form(form), error, crons=shown)


async def _next(visit: Visit) -> Response:
    """Return the next runs of expressions, or of a common schedule, which the form shows while somebody types."""
    query = visit.request.query_params
    crons = [" ".join(text.split()) for text in query.getlist("cron")[:MAX_CRONS] if text.strip()]
    found: dict[str, Any] = {"crons": crons, "next": [], "error": ""}
    try:
        if name := visit.text("schedule"):
            crons = found["crons"] = crons_of(name, visit.text("at"))
        times = _next_times(crons, visit.store.clock())
        found["next"] = [{"time": iso(time), "text": when_in_words(time)} for time in times]
    except ContractError as error:
        (message, *_) = field_errors(error).values()
        found["error"] = message
    return Response(msgspec.json.encode(found), 200, HEADERS, media_type="application/json")


async def _state(visit: Visit) -> ScheduleState:
    state = await visit.store.periodic.state(visit.project, visit.request.path_params["number"])
    if state is None:
        raise MissingError
    return state


async def _one(visit: Visit) -> Response:
    state = await _state(visit)
    schedule = state.schedule
    given, tasks = stored_texts(NewSchedule, schedule), form_tasks(schedule.tasks)
    return await _form(visit, state, given, tasks, crons=[schedule.cron])


async def _form(
    visit: Visit,
    state: ScheduleState | None,
    given: Mapping[str, str],
    tasks: list[FormTask],
    error: ContractError | None = None,
    *,
    crons: list[str],
) -> Response:
    path, form = f"/ui/{visit.project}/periodic", visit.form
    following: list[int] = []
    # Beside the form, a stored schedule has its next runs already. An error is at its field.
    previewed = crons if state is None or form.get("action") in _PREVIEWS else []
    with contextlib.suppress(ContractError):
        following = _next_times([cron for cron in previewed if cron.strip()], visit.store.clock())
    return visit.rendered(
        "schedule.html",
        error.status if error else 200,
        state=state,
        row=await _row(visit, state, most=100) if state else None,
        controls=[each for _, fields in controls(NewSchedule) for each in fields if each.name != "cron"],
        given=given,
        crons=crons,
        common=COMMON,
        chosen=form.get("schedule") or "",
        at=form.get("at") or "04:30",
        next_runs=following,
        tasks=tasks,
        spiders=[each.name for each in await visit.store.spiders.listed(visit.project, 0, 500)],
        priorities=range(MIN_PRIORITY, MAX_PRIORITY + 1),
        errors=field_errors(error) if error else {},
        path=path,
        own_path=f"{path}/{state.schedule.id}" if state else path,
    )


async def _change(visit: Visit) -> Response:
    state = await _state(visit)
    number = state.schedule.id
    own, onward = f"/ui/{visit.project}/periodic/{number}", visit.form.get("onward")
    back = f"/ui/{visit.project}/periodic" if onward == "list" else own
    match visit.form.get("action"):
        case "save":
            return await _save(visit, state, own)
        case "preview":
            return await _preview(visit, state)
        case "pause" | "resume" as action:
            fields = {"disabled": action == "pause"}
            await visit.store.periodic.edit(visit.project, number, lambda stored: edited(stored, fields))
            await visit.note(ChangeEvents.SCHEDULE_CHANGED, schedule=number, **fields)
            return visit.redirect(back, "schedule-paused" if action == "pause" else "schedule-resumed")
        case "run":
            jobs = list(jobs_of(state.schedule, visit.store.clock()))
            added = await visit.store.jobs.add(visit.project, jobs, visit.grant.name)
            number_added = sum(not isinstance(each, DuplicateJobError) for each in added)
            return visit.redirect(back, "schedule-run" if number_added else "schedule-active", number_added)
        case "delete":
            await visit.store.periodic.remove(visit.project, number)
            await visit.note(ChangeEvents.SCHEDULE_REMOVED, schedule=number)
            return visit.redirect(f"/ui/{visit.project}/periodic", "removed")
        case _:
            raise refused("action", "must be save, pause, resume, run or delete", "Use the buttons of the page.")


async def _save(visit: Visit, state: ScheduleState, own: str) -> Response:
    try:
        fields = fields_of(visit.form, state.schedule.tasks)
        await check_tasks(visit.store, visit.services.environments, edited(state.schedule, fields), state.schedule)
        await visit.store.periodic.edit(visit.project, state.schedule.id, lambda stored: edited(stored, fields))
    except ContractError as error:
        return await _again(visit, state, error)
    await visit.note(ChangeEvents.SCHEDULE_CHANGED, schedule=state.schedule.id)
    return visit.redirect(own, "saved")


PAGES: Final = (
    UiPage(_PATH, "periodic", _list, _create),
    UiPage(_PATH + "/new", "periodic", _new),
    UiPage(_PATH + "/week", "periodic", _week),
    UiPage(_PATH + "/next", "periodic", _next),
    UiPage(_PATH + "/{number:number}", "periodic", _one, _change),
)
LINKS: Final = (Link("periodic", "Periodic jobs", "/ui/{project}/periodic"),)

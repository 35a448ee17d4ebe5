"""``/ui/<project>/jobs``: the jobs of a project, filtered and sorted, and actions on several of them.

Jobs come in the order of an index where there is one. Other orders, and filters by outcome and duration, are about a
window of the newest jobs (``store.jobs.windows``), and the page says how many these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import OUTCOME_NAMES, SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.cookies import cookie_of
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.queries import JobPage as Page
from scrapy_ext.server.store.jobs.reruns import metadata_of_rerun
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.monitor_queue import MOST_UNJUDGED
from scrapy_ext.server.ui.frame import Link, UiPage, Visit
from scrapy_ext.server.ui.job_columns import (
    COLUMNS,
    COOKIE,
    KEPT,
    MONITORS,
    Order,
    chosen_columns,
    order_of,
    text_of_columns,
)
from scrapy_ext.server.ui.job_filters import MOST_TEXT, PARAMETERS, JobFilters, filters_of, typed
from scrapy_ext.server.ui.job_selection import Selection, selection_of
from scrapy_ext.server.ui.job_summary import Summary, summary
from scrapy_ext.server.ui.pending_reason import capacity_of
from scrapy_ext.server.ui.sessions import local_path

_PATH: Final = "/ui/{project:number}/jobs"
_PER_PAGE: Final = 50
#: Jobs that are listed where an action on all that are found is confirmed.
_LISTED: Final = 20
#: Jobs that are read at once to run them again.
_READ: Final = 50


async def _show(visit: Visit) -> Response:
    store, project, now = visit.store, visit.project, visit.store.clock()
    errors: dict[str, str] = {}
    filters, order = await filters_of(visit, errors), order_of(visit.text("sort"))
    # An outcome or a duration would need each job to be read.
    by_state = None if filters.examines else await store.jobs.count_quickly(project, filters.of_any_state)
    in_need = None if by_state is None else await store.jobs.count_quickly(project, filters.in_need)
    offset = min(visit.number("offset"), 10**9)
    part = await _part(visit, filters, order, offset)
    pending = any(job.state is JobState.PENDING for job in part.jobs)
    capacity = await capacity_of(store, project) if pending else None
    chosen = visit.text("columns") or cookie_of(visit.request, COOKIE)
    columns = chosen_columns(chosen)
    names = {column.name for column in columns}
    keys = [job.key for job in part.jobs] if MONITORS in names else []
    return visit.rendered(
        "jobs.html",
        HTTPStatus.BAD_REQUEST if errors else HTTPStatus.OK,
        errors=errors,
        state=filters.state,
        given={name: typed(visit, name) for name in PARAMETERS},
        labels=PARAMETERS,
        most_text=MOST_TEXT,
        filtered=any(typed(visit, name) for name in (*PARAMETERS, "before")),
        tags=await store.jobs.tags(project),
        outcomes=OUTCOME_NAMES,
        state_counts=by_state and {each.value: by_state[each] for each in SHOWN_STATES},
        in_need=in_need and in_need[JobState.FINISHED],
        unjudged=await store.verdicts.unjudged(project),
        most_unjudged=MOST_UNJUDGED,
        deleted=by_state[JobState.DELETED] if by_state else None,
        jobs=[summary(job, now, capacity) for job in part.jobs],
        part=part,
        order=order,
        columns=columns,
        all_columns=COLUMNS,
        names=names,
        are_usual=columns == chosen_columns(None),
        checks={str(key): checks for key, checks in (await store.monitors.count_of_jobs(project, keys)).items()},
        all_chosen=visit.text("chosen") == "page",
        # The order of a list that is read may change at each refresh.
        live=not offset and order.is_usual and not filters.examines,
        offset=offset,
        newer=max(offset - _PER_PAGE, 0) if offset else None,
        older=offset + _PER_PAGE if part.follows else None,
        now=now,
    )


class _Part(NamedTuple):
    """Jobs of a page; ``follows``: there are further pages.

    ``examined``: number of jobs that were read to filter or sort them; ``oldest``: time of the last change (ms) of the
    oldest of them if there are older ones, which were not read.
    """

    jobs: list[StoredJob]
    follows: bool
    examined: int | None = None
    oldest: int | None = None
    matches: int = 0


async def _part(visit: Visit, filters: JobFilters, order: Order, offset: int) -> _Part:
    store, project = visit.store, visit.project
    if order.is_indexed and not filters.examines:
        page = Page(_PER_PAGE + 1, offset, oldest_first=not order.descending)
        jobs = await store.jobs.listed(project, filters.stored, page, counts=True)
        return _Part(jobs[:_PER_PAGE], len(jobs) > _PER_PAGE)
    now = store.clock()
    counted = (order.column.counts,) if order.column.counts else ()
    found = await store.jobs.window(project, filters.stored, counts=counted)
    matching = order.sorted([job for job in found.jobs if filters.match(job, now)], now)
    keys = tuple(job.key for job in matching[offset : offset + _PER_PAGE])
    oldest = found.jobs[-1].changed if found.more and found.jobs else None
    # The window has few fields of the metadata.
    which = JobFilter(keys=keys, states=filters.stored.states)
    read = await store.jobs.listed(project, which, Page(_PER_PAGE), counts=True) if keys else []
    by_key = {job.key: job for job in read}
    jobs = [by_key[key] for key in keys if key in by_key]
    return _Part(jobs, len(matching) > offset + _PER_PAGE, len(found.jobs), oldest, len(matching))


async def _choose(visit: Visit) -> Response:
    """Remember the chosen columns in this browser, and in the address for others."""
    back = local_path(visit.request.query_params.get("back") or f"/ui/{visit.project}/jobs")
    names = visit.request.query_params.getlist("column")[: len(COLUMNS)]
    chosen = text_of_columns([*names, COLUMNS[0].name])
    answer = _redirect_back(visit, back, "columns", columns=chosen)
    answer.set_cookie(COOKIE, chosen, max_age=KEPT, path="/ui", httponly=True, samesite="lax")
    return answer


async def _act(visit: Visit) -> Response:
    """Stop, rerun or delete jobs; deletion, and any action on all that are found, asks for confirmation first."""
    form, project = visit.form, visit.project
    back = local_path(form.get("back") or f"/ui/{project}/jobs")
    if form.get("action") == "delete":
        visit.require(Action.MANAGE)
    selection = await selection_of(visit)
    keys = selection.keys
    if not keys:
        return _redirect_back(visit, back, "nothing")
    if selection.is_all and form.get("action") in ("stop", "rerun") and not form.get("sure"):
        return await _confirm(visit, selection, back)
    match form.get("action"):
        case "stop":
            # One of all that are found may be imported at this time.
            named = not selection.is_all
            states = await visit.store.jobs.cancel(project, keys, visit.grant.name, named=named)
            number = sum(state in (JobState.PENDING, JobState.RUNNING) for state in states)
            return _redirect_back(visit, back, "stopped", number)
        case "rerun" if len(keys) == 1:
            return visit.redirect(f"/ui/{project}/jobs/run", again=str(keys[0]))
        case "rerun":
            # Repeated on the same list, it would find the new jobs.
            older = {} if selection.older is None else {"before": str(selection.older), "offset": "0"}
            return _redirect_back(visit, back, "rerun", await _rerun(visit, keys), **older)
        case "compare":
            return await _compare(visit, keys, back)
        case "delete" if form.get("sure"):
            number = await visit.store.jobs.delete(project, keys, visit.grant.name)
            return visit.redirect(f"/ui/{project}/jobs", "deleted", number)
        case "delete":
            return await _confirm(visit, selection, back)
        case action:
            raise refused(
                "action", f"must be stop, rerun, compare or delete, got {str(action)[:60]!r}", "Use a button."
            )


async def _compare(visit: Visit, keys: Sequence[JobKey], back: str) -> Response:
    """Redirect to the comparison of two jobs, the older one first."""
    if len(keys) != 2:
        return _redirect_back(visit, back, "two")
    found = {
        job.key: job.changed
        for job in await visit.store.jobs.listed(visit.project, JobFilter(keys=tuple(keys)), Page(2))
    }
    first, second = sorted(keys, key=lambda key: (found.get(key, 0), key))
    return visit.redirect(f"/ui/{visit.project}/compare", a=str(first), b=str(second))


async def _confirm(visit: Visit, selection: Selection, back: str) -> Response:
    """Ask for confirmation, with the number of jobs; the page lists those that were chosen, or the first of all."""
    listed = selection.keys[:_LISTED] if selection.is_all else selection.keys
    return visit.rendered(
        "confirm_jobs.html",
        action=visit.form.get("action"),
        jobs=await _summaries(visit, listed),
        selection=selection,
        back=back,
    )


def _redirect_back(visit: Visit, back: str, done: str, number: int | None = None, **query: str) -> Response:
    path, _, own = back.partition("?")
    kept = dict(pair for pair in parse_qsl(own) if pair[0] not in ("done", "n", "chosen"))
    return visit.redirect(path, done, number, **{**kept, **query})


async def _rerun(visit: Visit, keys: Sequence[JobKey]) -> int:
    number = 0
    # The metadata of many jobs is not read at once.
    for first in range(0, len(keys), _READ):
        part = tuple(keys[first : first + _READ])
        # The arguments of a deleted job are removed.
        which = JobFilter(keys=part, states=SHOWN_STATES)
        found = {job.key: job for job in await visit.store.jobs.listed(visit.project, which, Page(len(part)))}
        again = [found[key] for key in part if key in found]
        jobs = [NewJob(job.spider, JobState.PENDING, metadata_of_rerun(job)) for job in again]
        number += len(await visit.store.jobs.add(visit.project, jobs, visit.grant.name))
    return number


async def _summaries(visit: Visit, keys: Sequence[JobKey]) -> list[Summary]:
    which = JobFilter(keys=tuple(keys), states=SHOWN_STATES)
    jobs = await visit.store.jobs.listed(visit.project, which, Page(len(keys)), counts=True)
    return [summary(job, visit.store.clock()) for job in jobs]


PAGES: Final = (UiPage(_PATH, "jobs", _show, _act, Action.RUN), UiPage(_PATH + "/columns", "jobs", _choose))
LINKS: Final = (Link("jobs", "Jobs", "/ui/{project}/jobs"),)

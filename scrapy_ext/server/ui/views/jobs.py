"""``/ui/<project>/jobs``: the jobs of a project, filtered and sorted, and actions on several of them.

Jobs come in the order of an index where there is one. Other orders, and filters by outcome and duration, are about a
window of the newest jobs (``store.jobs.windows``), and the page says how many these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from starlette.responses import Response

from scrapy_ext.api.platform.chosen_ids import without_id
from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.outcomes import OUTCOME_NAMES
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.queries import JobPage as Page
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import Link, UiPage, Visit
from scrapy_ext.server.ui.job_columns import COLUMNS, COOKIE, KEPT, Order, chosen_columns, cookie_of, order_of
from scrapy_ext.server.ui.job_filters import PARAMETERS, JobFilters, filters_of
from scrapy_ext.server.ui.pending_reason import capacity_of
from scrapy_ext.server.ui.sessions import local_path

_PATH: Final = "/ui/{project:number}/jobs"
_PER_PAGE: Final = 50
#: Maximum number of jobs in one form.
_AT_ONCE: Final = 500
#: Metadata that a rerun copies.
_KEPT: Final = ("spider_type", "spider_args", "job_settings", "environment", "cmd_args", "tags", "priority", "units")


async def _show(visit: Visit) -> Response:
    store, project, now = visit.store, visit.project, visit.store.clock()
    state, filters, order = visit.text("state"), await filters_of(visit), order_of(visit.text("sort"))
    # An outcome or a duration would need each job to be read.
    by_state = None if filters.examines else await store.jobs.count_quickly(project, filters.stored)
    states = tuple(each for each in JobState if each.value == state) or SHOWN_STATES
    offset = min(visit.number("offset"), 10**9)
    part = await _part(visit, filters._replace(stored=filters.stored._replace(states=states)), order, offset)
    pending = any(job.state is JobState.PENDING for job in part.jobs)
    capacity = await capacity_of(store, project) if pending else None
    columns = chosen_columns(visit.request.cookies.get(COOKIE))
    return visit.rendered(
        "jobs.html",
        state=states[0].value if len(states) == 1 else None,
        given={name: visit.text(name) for name in PARAMETERS},
        filtered=any(visit.text(name) for name in (*PARAMETERS, "before")),
        outcomes=OUTCOME_NAMES,
        state_counts=by_state and {each.value: by_state[each] for each in SHOWN_STATES},
        deleted=by_state[JobState.DELETED] if by_state else None,
        jobs=[shapes.summary(job, now, capacity) for job in part.jobs],
        part=part,
        order=order,
        columns=columns,
        all_columns=COLUMNS,
        names={column.name for column in columns},
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
    """Remember the chosen columns in this browser."""
    back = local_path(visit.request.query_params.get("back") or f"/ui/{visit.project}/jobs")
    names = visit.request.query_params.getlist("column")[: len(COLUMNS)]
    answer = _redirect_back(visit, back, "columns")
    answer.set_cookie(COOKIE, cookie_of(names), max_age=KEPT, path="/ui", httponly=True, samesite="lax")
    return answer


async def _act(visit: Visit) -> Response:
    """Stop, rerun or delete the chosen jobs; deletion asks for confirmation first."""
    form, project = visit.form, visit.project
    keys = list(dict.fromkeys(own_key(text, project, "job") for text in form.all("job")))
    back = local_path(form.get("back") or f"/ui/{project}/jobs")
    if len(keys) > _AT_ONCE:
        raise refused("job", f"must be named {_AT_ONCE} times at most, got {len(keys)}", "Choose fewer jobs.")
    if not keys:
        return _redirect_back(visit, back, "nothing")
    if form.get("action") == "delete":
        visit.require(Action.MANAGE)
    match form.get("action"):
        case "stop":
            states = await visit.store.jobs.cancel(project, keys, visit.grant.name)
            number = sum(state in (JobState.PENDING, JobState.RUNNING) for state in states)
            return _redirect_back(visit, back, "stopped", number)
        case "rerun":
            return _redirect_back(visit, back, "rerun", await _rerun(visit, keys))
        case "compare":
            return await _compare(visit, keys, back)
        case "delete" if form.get("sure"):
            number = await visit.store.jobs.delete(project, keys, visit.grant.name)
            return visit.redirect(f"/ui/{project}/jobs", "deleted", number)
        case "delete":
            return visit.rendered("delete.html", jobs=await _summaries(visit, keys), back=back)
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


def _redirect_back(visit: Visit, back: str, done: str, number: int | None = None) -> Response:
    path, _, query = back.partition("?")
    kept = dict(pair for pair in parse_qsl(query) if pair[0] not in ("done", "n"))
    return visit.redirect(path, done, number, **kept)


async def _rerun(visit: Visit, keys: Sequence[JobKey]) -> int:
    found = [job for key in keys if (job := await visit.store.jobs.get(key)) is not None]
    # The arguments of a deleted job are removed.
    found = [job for job in found if job.state is not JobState.DELETED]
    jobs = [NewJob(job.spider, JobState.PENDING, _again(job)) for job in found]
    return len(await visit.store.jobs.add(visit.project, jobs, visit.grant.name))


def _again(job: StoredJob) -> dict[str, Any]:
    """Return the metadata of another run of a job."""
    return without_id({name: job.metadata[name] for name in _KEPT if name in job.metadata})


async def _summaries(visit: Visit, keys: Sequence[JobKey]) -> list[shapes.Summary]:
    which = JobFilter(keys=tuple(keys), states=SHOWN_STATES)
    jobs = await visit.store.jobs.listed(visit.project, which, Page(_AT_ONCE), counts=True)
    return [shapes.summary(job, visit.store.clock()) for job in jobs]


PAGES: Final = (UiPage(_PATH, "jobs", _show, _act, Action.RUN), UiPage(_PATH + "/columns", "jobs", _choose))
LINKS: Final = (Link("jobs", "Jobs", "/ui/{project}/jobs"),)

"""``/ui/<project>/jobs``: the jobs of a project, newest first, and actions on several of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.queries import JobPage as Part
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import Link, UiPage, Visit
from scrapy_ext.server.ui.pending_reason import capacity_of
from scrapy_ext.server.ui.sessions import local_path

_PATH: Final = "/ui/{project:number}/jobs"
_PER_PAGE: Final = 50
#: Maximum number of spiders that match the searched name.
_SPIDERS: Final = 500
#: Maximum number of jobs in one form.
_AT_ONCE: Final = 500
#: Metadata that a rerun copies.
_KEPT: Final = ("spider_type", "spider_args", "job_settings", "environment", "cmd_args", "tags", "priority", "units")


async def _show(visit: Visit) -> Response:
    store, project = visit.store, visit.project
    state, text, tag = visit.text("state"), visit.text("spider"), visit.text("tag")
    spiders = await _spiders(visit, text) if text else None
    which = JobFilter(spider_ids=spiders, has_tags=(tag,) if tag else ())
    by_state = await store.jobs.count_by_state(project, which)
    counts = {each.value: by_state[each] for each in SHOWN_STATES}
    states = tuple(each for each in JobState if each.value == state) or SHOWN_STATES
    offset = visit.number("offset")
    part = Part(_PER_PAGE + 1, min(offset, 10**9))
    jobs = await store.jobs.listed(project, which._replace(states=states), part, counts=True)
    capacity = await capacity_of(store, project) if counts["pending"] else None
    return visit.rendered(
        "jobs.html",
        state=states[0].value if len(states) == 1 else None,
        text=text,
        tag=tag,
        state_counts=counts,
        deleted=by_state[JobState.DELETED],
        jobs=[shapes.summary(job, store.clock(), capacity) for job in jobs[:_PER_PAGE]],
        offset=offset,
        newer=max(offset - _PER_PAGE, 0) if offset else None,
        older=offset + _PER_PAGE if len(jobs) > _PER_PAGE else None,
    )


async def _spiders(visit: Visit, text: str) -> tuple[int, ...]:
    """Return the spiders whose names contain the text."""
    known = await visit.store.spiders.listed(visit.project)
    return tuple(spider.number for spider in known if text.lower() in spider.name.lower())[:_SPIDERS]


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
        case "delete" if form.get("sure"):
            number = await visit.store.jobs.delete(project, keys, visit.grant.name)
            return visit.redirect(f"/ui/{project}/jobs", "deleted", number)
        case "delete":
            return visit.rendered("delete.html", jobs=await _summaries(visit, keys), back=back)
        case action:
            raise refused("action", f"must be stop, rerun or delete, got {str(action)[:60]!r}", "Use a button.")


def _redirect_back(visit: Visit, back: str, done: str, number: int | None = None) -> Response:
    path, _, query = back.partition("?")
    kept = dict(pair for pair in parse_qsl(query) if pair[0] not in ("done", "n"))
    return visit.redirect(path, done, number, **kept)


async def _rerun(visit: Visit, keys: Sequence[JobKey]) -> int:
    found = [job for key in keys if (job := await visit.store.jobs.get(key)) is not None]
    # The arguments of a deleted job are removed.
    found = [job for job in found if job.state is not JobState.DELETED]
    jobs = [
        NewJob(job.spider, JobState.PENDING, {name: job.metadata[name] for name in _KEPT if name in job.metadata})
        for job in found
    ]
    return len(await visit.store.jobs.add(visit.project, jobs, visit.grant.name))


async def _summaries(visit: Visit, keys: Sequence[JobKey]) -> list[shapes.Summary]:
    which = JobFilter(keys=tuple(keys), states=SHOWN_STATES)
    jobs = await visit.store.jobs.listed(visit.project, which, Part(_AT_ONCE), counts=True)
    return [shapes.summary(job, visit.store.clock()) for job in jobs]


PAGES: Final = (UiPage(_PATH, "jobs", _show, _act, Action.RUN),)
LINKS: Final = (Link("jobs", "Jobs", "/ui/{project}/jobs"),)

"""``/ui/<project>/jobs``: the jobs of a project, newest first."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store.job_queries import JobFilter
from scrapy_ext.server.store.job_queries import Page as Part
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import Link, Page, Visit

_PATH: Final = "/ui/{project:number}/jobs"
_PER_PAGE: Final = 50
_SHOWN: Final = (JobState.PENDING, JobState.RUNNING, JobState.FINISHED)


async def _show(visit: Visit) -> Response:
    store, project = visit.store, visit.project
    state = visit.text("state")
    states = tuple(each for each in _SHOWN if each.value == state) or _SHOWN
    counts = {each.value: await store.jobs.count(project, JobFilter(states=(each,))) for each in _SHOWN}
    offset = visit.number("offset")
    jobs = await store.jobs.listed(project, JobFilter(states=states), Part(_PER_PAGE + 1, offset), counts=True)
    return visit.rendered(
        "jobs.html",
        state=states[0].value if len(states) == 1 else None,
        state_counts=counts,
        jobs=[shapes.summary(job, store.clock()) for job in jobs[:_PER_PAGE]],
        offset=offset,
        newer=max(offset - _PER_PAGE, 0) if offset else None,
        older=offset + _PER_PAGE if len(jobs) > _PER_PAGE else None,
    )


PAGES: Final = (Page(_PATH, "jobs", _show),)
LINKS: Final = (Link("jobs", "Jobs", "/ui/{project}/jobs"),)

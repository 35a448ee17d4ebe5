"""Monitors of a project (``/api/projects/<project>/monitors``) and of the server (``/api/monitors``), and their
results; jobs with their verdicts (``/api/projects/<project>/verdicts``). These paths are this package's own."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState, JudgedJob, JudgedJobs
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.monitors import (
    SORT,
    Incident,
    Monitor,
    MonitorPreview,
    MonitorResult,
    NewMonitor,
    monitor_of,
)
from scrapy_ext.api.platform.verdicts import ATTENTION
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.monitors.item_schemas import ItemSchemas
from scrapy_ext.server.monitors.previews import preview
from scrapy_ext.server.platform.jobs import JOB_FILTERS, MAX_LIST, job_filter, listed_job
from scrapy_ext.server.platform.rules import RulePaths, declare, owner_of, projects_of
from scrapy_ext.server.store.jobs.jobs import Judgement
from scrapy_ext.server.store.jobs.queries import JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, verdict_text

_PER_PAGE: Final = 100
_MAX_PER_PAGE: Final = 1000

ROUTES: Final = Routes()


class MonitorPaths(RulePaths, frozen=True):
    """Paths about monitors, whose previews have results of jobs."""

    def parse(self, call: Call, fields: dict[str, Any]) -> NewMonitor:
        return monitor_of(fields, of_server=owner_of(call) is None)

    async def preview_of(self, call: Call, rule: Monitor) -> MonitorPreview:
        return await preview(call.store, rule, await projects_of(call), call.service(ItemSchemas))

    async def check(self, call: Call, new: NewMonitor) -> None:
        if new.schema is not None:
            await call.service(ItemSchemas).check(new.schema, owner_of(call))


@ROUTES.add(
    "GET /api/projects/{project}/monitors/incidents",
    "Read the monitors that fail for a spider, since when, and the last job.",
    schemas.value("The incidents, oldest first.", schemas.Many(Incident)),
)
async def _incidents(call: Call) -> Response:
    return json(await call.store.monitors.incidents(call.project))


@ROUTES.add(
    "GET /api/projects/{project}/monitors/results",
    "Read the results of monitors for the jobs of a project, newest first.",
    schemas.value("The results.", schemas.Many(MonitorResult)),
    parameters=(
        schemas.page_size(_MAX_PER_PAGE),
        schemas.Parameter("job", "only those of this job", schemas.JOB_KEY),
        schemas.Parameter("monitor", "only those of the monitor with this number", schemas.NUMBER),
        schemas.Parameter("of_server", "the monitor is one of the server", schemas.FLAG),
    ),
)
async def _results(call: Call) -> Response:
    count = call.page_size(_PER_PAGE, _MAX_PER_PAGE, "Ask for fewer.")
    if (job := call.query.get("job")) is not None:
        return json((await call.store.monitors.of_job(own_key(job, call.project, "job")))[:count])
    number = call.query.get("monitor")
    rule = None if number is None else number_of(number, "monitor")
    of_server = call.query.get("of_server") in ("1", "Y")
    return json(await call.store.monitors.results(call.project, rule, count, of_server))


declare(
    ROUTES,
    MonitorPaths(
        SORT,
        rules=lambda store: store.monitors,
        found="The results that it would have had for the last jobs.",
        has_next=False,
    ),
)


@ROUTES.add(
    "GET /api/projects/{project}/verdicts",
    "List jobs with their verdicts and the reasons, the newest first.",
    schemas.value("The jobs.", JudgedJobs),
    parameters=(
        schemas.Parameter("job", "only these jobs", schemas.array(schemas.JOB_KEY)),
        schemas.Parameter("needs_attention", "only finished jobs with the verdict red or amber", schemas.FLAG),
        *JOB_FILTERS,
        schemas.Parameter("count", "at most so many", schemas.COUNTER),
        schemas.Parameter("offset", "leave out so many", schemas.COUNTER),
    ),
)
async def _list(call: Call) -> Response:
    project, store = call.project, call.store
    keys = tuple(own_key(text, project, "job") for text in call.all("job"))
    which = job_filter(call, tuple(JobState) if keys else SHOWN_STATES)._replace(keys=keys)
    if call.query.get("needs_attention") in ("1", "Y"):
        which = which._replace(worst=min(ATTENTION))
    page = JobPage(min(call.number("count", MAX_LIST) or 0, MAX_LIST), call.number("offset", 0) or 0)
    total = await store.jobs.count(project, which)
    found = await store.jobs.listed(project, which, page, counts=True)
    known = await store.jobs.judgements(project, [job.key for job in found])
    judged = [_judged(job, known.get(job.key), store.clock()) for job in found]
    return json(JudgedJobs(total, judged, await store.verdicts.unjudged(project)))


def _judged(job: StoredJob, known: Judgement | None, now: int) -> JudgedJob:
    return JudgedJob(
        **msgspec.structs.asdict(listed_job(job, now)),
        verdict=verdict_text(job),
        reasons=[] if known is None else [reason.sentence for reason in known.reasons],
        error="" if known is None else known.error,
    )

"""``/jobq/<project>/report`` and ``/workers``: the workers of a job with several.

The hosted platform does not have these paths.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform import workers
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.workers import Report, ReportAnswer, WorkerRow
from scrapy_ext.api.violations import refused
from scrapy_ext.server.auth.tokens import AttemptTokens
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import Refusal, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.platform.jobs import answer
from scrapy_ext.server.store.fencing import Attempt

ROUTES: Final = Routes()
_EXAMPLE: Final = '{"job": "1/2/3", "attempt": 4, "number": 5}'


@ROUTES.add(
    "POST /jobq/{project}/report",
    "Report as a worker of a job, or join its workers.",
    schemas.value("The other workers, and what this one is to do.", ReportAnswer),
    body=schemas.Body(
        schemas.JSON,
        Report,
        "Without attempt, the caller joins: with an API key as a new worker, with the token of an attempt as that one. "
        "A repeated report has the number of the first one.",
    ),
    errors=(409, 413),
    access=Access.PROCESS,
)
async def _report(call: Call) -> Response:
    fields = await json_bodies.fields_of(call.request, _EXAMPLE, workers.MAX_REPORT)
    if call.attempt is not None:
        fields.setdefault("attempt", call.attempt.number)
    report = workers.report_of(fields)
    key = own_key(report.job, call.project, "job")
    if call.attempt not in (None, Attempt(key, report.attempt or 0)):
        raise Refusal(403, "Forbidden. The token of a worker is for its own attempt; use an API key.")
    given = await call.store.groups.report(key, report)
    if given.attempt is not None:
        token = await AttemptTokens(call.store).token(Attempt(key, given.attempt))
        given = msgspec.structs.replace(given, token=token)
    return json(given)


@ROUTES.add(
    "GET /jobq/{project}/workers",
    "List the workers of a job with several.",
    schemas.lines("The workers, by their numbers.", WorkerRow),
    parameters=(schemas.Parameter("job", "the job", schemas.JOB_KEY, required=True), *schemas.SHAPING),
)
async def _list(call: Call) -> Response:
    return await answer(call, await call.store.groups.listed(_job(call)))


def _job(call: Call) -> JobKey:
    text = call.query.get("job")
    if text is None:
        raise refused("job", "is required", "Add ?job=1/2/3 to the address.")
    return own_key(text, call.project, "job")

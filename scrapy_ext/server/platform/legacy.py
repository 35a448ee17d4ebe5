"""``/api/items.jl`` and ``/api/log.jl``: the records of a job for clients older than the storage host.

The answers are those of ``/items/<job>`` and ``/logs/<job>``; the parameters are ``job``, and ``offset`` for the start.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import own_key
from scrapy_ext.server.http.routes import Router, Routes

#: Parameters of these paths that are absent or have another meaning in the newer ones.
_OWN: Final = ("project", "job", "offset", "format", "index", "start", "startafter")

ROUTES: Final = Routes()

_PARAMETERS: Final = (
    schemas.Parameter("project", "the project", schemas.NUMBER, required=True),
    schemas.Parameter("job", "the job", schemas.JOB_KEY, required=True),
    schemas.Parameter("offset", "leave out so many", schemas.COUNTER),
    schemas.COUNT,
    schemas.META,
    schemas.NODATA,
    *schemas.FILTERS,
)


def _summary(records: str) -> tuple[str, schemas.AnswerShape]:
    summary = f"Read {records} of a job, for clients older than the storage host."
    return summary, schemas.AnswerShape("A record a line.", {schemas.JSON_LINES: schemas.Many(schemas.OBJECT)})


@ROUTES.add("GET /api/items.jl", *_summary("items"), parameters=_PARAMETERS)
async def _items(call: Call) -> Response:
    return await call.service(Router).answer(_moved(call, "items"))


@ROUTES.add("GET /api/log.jl", *_summary("log lines"), parameters=_PARAMETERS)
async def _log(call: Call) -> Response:
    return await call.service(Router).answer(_moved(call, "logs"))


def _moved(call: Call, resource: str) -> Call:
    project, text = call.asked_project(), call.query.get("job")
    if text is None:
        raise refused("job", "is required", "Add &job=<project>/<spider>/<job> to the address.")
    job = own_key(text, project, "job")
    start = job.entity(call.number("offset", 0) or 0)
    kept = [(name, value) for name, value in call.request.query_params.multi_items() if name not in _OWN]
    return call.moved(f"/{resource}/{job}", [*kept, ("format", "jl"), ("start", str(start))])

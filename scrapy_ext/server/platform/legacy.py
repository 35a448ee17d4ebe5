"""``/api/items.jl`` and ``/api/log.jl``: the records of a job for clients older than the storage host.

The answers are those of ``/items/<job>`` and ``/logs/<job>``; the parameters are ``job``, and ``offset`` for the start.
"""

from __future__ import annotations

from functools import partial
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


async def _read(resource: str, call: Call) -> Response:
    project, text = call.asked_project(), call.query.get("job")
    if text is None:
        raise refused("job", "is required", "Add &job=<project>/<spider>/<job> to the address.")
    job = own_key(text, project, "job")
    start = job.entity(call.number("offset", 0) or 0)
    kept = [(name, value) for name, value in call.request.query_params.multi_items() if name not in _OWN]
    moved = call.moved(f"/{resource}/{job}", [*kept, ("format", "jl"), ("start", str(start))])
    return await call.service(Router).answer(moved)


for path, resource, records in (("items.jl", "items", "items"), ("log.jl", "logs", "log lines")):
    ROUTES.add(
        f"GET /api/{path}",
        f"Read {records} of a job, for clients older than the storage host.",
        schemas.AnswerShape("A record a line.", {schemas.JSON_LINES: schemas.Many(schemas.OBJECT)}),
        parameters=_PARAMETERS,
    )(partial(_read, resource))

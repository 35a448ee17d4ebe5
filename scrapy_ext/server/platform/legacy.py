"""``/api/items.jl`` and ``/api/log.jl``: the records of a job for a client that is older than the storage host.

They are what ``/items/<job>`` and ``/logs/<job>`` give, asked for in other words: the job in the parameter ``job``, and
where to begin as its ``offset``.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.server.http.answers import NotFound, method_not_allowed, refused
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.platform.jobs import own_key
from scrapy_ext.server.platform.records.items import items
from scrapy_ext.server.platform.records.logs import logs

#: Parameters of these paths that the others do not have, or that mean something else there.
_OWN: Final = ("project", "job", "offset", "format", "index", "start", "startafter")


async def legacy_records(call: Call) -> Response:
    """Answer a call."""
    match call.path, call.method:
        case ["items.jl"], "GET":
            moved = _moved(call, "items")
            return await items(moved.store.items)(moved)
        case ["log.jl"], "GET":
            moved = _moved(call, "logs")
            return await logs(moved.store.logs)(moved)
        case ["items.jl" | "log.jl"], _:
            raise method_not_allowed("GET")
        case _:
            raise NotFound


def _moved(call: Call, resource: str) -> Call:
    project, text = call.asked_project(), call.query.get("job")
    if text is None:
        raise refused("job", "is required", "Add &job=<project>/<spider>/<job> to the address.")
    job = own_key(text, project, "job")
    start = job.entity(call.number("offset", 0) or 0)
    kept = [(name, value) for name, value in call.request.query_params.multi_items() if name not in _OWN]
    return call.moved(f"/{resource}/{job}", [*kept, ("format", "jl"), ("start", str(start))])

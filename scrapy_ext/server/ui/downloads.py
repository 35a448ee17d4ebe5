"""Downloads of all records, made by the platform API's handlers for a visitor with a session instead of a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.store.collections.selections import Collection
from scrapy_ext.server.store.records.records import RecordStore
from scrapy_ext.server.ui.frame import HEADERS, MissingError, View, Visit

_FORMATS: Final = ("csv", "json", "jl", "xml")
#: Maximum number of columns of a CSV file.
_COLUMNS: Final = 1000
_LOG_FIELDS: Final = ["time", "level", "message"]


def download(kind: str) -> View:
    """Return the view of all records of a kind as a file in the path's format."""

    async def view(visit: Visit) -> Response:
        key, name = visit.key, visit.request.path_params["format"]
        if name not in _FORMATS:
            raise MissingError
        query = {"format": name, "saveas": f"{kind}-{key.project}-{key.spider}-{key.job}.{name}"}
        if name == "csv":
            names = _LOG_FIELDS if kind == "logs" else await _fields(getattr(visit.store, kind), key)
            query |= {"fields": ",".join(names[:_COLUMNS]), "include_headers": "1"}
        return await _answer(visit, f"/{kind}/{key}", query)

    return view


async def _fields(store: RecordStore, key: JobKey) -> list[str]:
    counts = (await store.stats(key)).counts
    # The ``fields`` parameter cannot name a field with a comma.
    return [field for field in sorted(counts, key=lambda name: (-counts[name], name)) if "," not in field] or ["_key"]


async def download_records(visit: Visit, which: Collection, prefix: str) -> Response:
    """Return the records of a collection with their keys as a JSON lines file, optionally only those with a prefix."""
    query = {"meta": "_key", "format": "jl", "saveas": f"{which.name}.jl"} | ({"prefix": prefix} if prefix else {})
    path = f"/collections/{which.project}/{which.type.value}/{which.name}"
    return await _answer(visit, path, query)


async def _answer(visit: Visit, path: str, query: Mapping[str, str]) -> Response:
    """Call the platform on behalf of this visitor."""
    scope = {**visit.request.scope, "raw_path": path.encode(), "query_string": urlencode(query).encode()}
    call = Call(scope, visit.request.receive, visit.store, {})
    call.grant = visit.grant
    call.for_people = True
    call.need(visit.project)
    answer = await visit.services.router.answer(call)
    answer.headers.update(HEADERS)
    return answer

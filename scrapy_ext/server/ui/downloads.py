"""Downloads of all records, made by the platform API's handlers for a visitor with a session instead of a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.conditions import EVERYWHERE
from scrapy_ext.api.platform.records import RequestRecord
from scrapy_ext.formats import Schema
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.store.collections.selections import Collection
from scrapy_ext.server.ui.frame import HEADERS, MissingError, View, Visit

_FORMATS: Final = ("csv", "xlsx", "json", "jl", "xml", "parquet")
#: Formats with columns.
_TABLES: Final = ("csv", "xlsx", "parquet")
_LOG_FIELDS: Final = ("time", "level", "message")


def download(kind: str) -> View:
    """Return the view of all records of a kind as a file in the path's format."""

    async def view(visit: Visit) -> Response:
        key, name = visit.key, _format(visit)
        query = {"format": name, "saveas": f"{kind}-{key.project}-{key.spider}-{key.job}.{name}"}
        if kind == "items":
            query |= _conditions(visit)
        columns = None
        if kind == "logs" and name in _TABLES:
            columns = Schema.of(_LOG_FIELDS)
        elif kind == "requests" and name in _TABLES:
            columns = Schema.of(RequestRecord.__struct_fields__)
        elif name == "csv":
            # The columns are in the stats, so that the file begins at once. They are those of the records up to now.
            stats = await getattr(visit.store, kind).stats(key)
            columns = Schema.of_counts(stats.counts) if stats.counts else Schema.of(["_key"])
            query["count"] = str(stats.totals.input_values)
        return await _answer(visit, f"/{kind}/{key}", query, columns)

    return view


def _conditions(visit: Visit) -> dict[str, str]:
    """Return the conditions of the page of items, by which the file has the same items."""
    where, text = visit.request.query_params.get("where", "").strip(), visit.text("q")
    searched = {"filter": msgspec.json.encode([EVERYWHERE, "hastext", [text]]).decode()} if text else {}
    return ({"where": where} if where else {}) | searched


async def download_records(visit: Visit, which: Collection, prefix: str) -> Response:
    """Return the records of a collection with their keys as a file, optionally only those with a prefix."""
    name = _format(visit)
    query = {"meta": "_key", "format": name, "saveas": f"{which.name}.{name}"} | ({"prefix": prefix} if prefix else {})
    path = f"/collections/{which.project}/{which.type.value}/{which.name}"
    return await _answer(visit, path, query)


def _format(visit: Visit) -> str:
    name: str = visit.request.path_params["format"]
    if name not in _FORMATS:
        raise MissingError
    return name


async def _answer(visit: Visit, path: str, query: Mapping[str, str], columns: Schema | None = None) -> Response:
    """Call the platform on behalf of this visitor."""
    scope = {**visit.request.scope, "raw_path": path.encode(), "query_string": urlencode(query).encode()}
    call = Call(scope, visit.request.receive, visit.store, {})
    call.grant = visit.grant
    call.for_people = True
    call.columns = columns
    call.need(visit.project)
    answer = await visit.services.router.answer(call)
    answer.headers.update(HEADERS)
    return answer

"""Use of storage by a project, or by all (``/api/projects/<project>/usage`` and ``/api/usage``), and success of this
server's proxies (``/api/proxies``). The hosted platform does not have these paths.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.extraction.records import Proxies
from scrapy_ext.api.platform.usage import Database, Usage
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.net.pool import ProxyPool
from scrapy_ext.server.store import Store

ROUTES: Final = Routes()


async def database_of(store: Store) -> Database:
    space = await store.space()
    return Database(space.total, space.free, space.dead_rows)


@ROUTES.add(
    "GET /api/projects/{project}/usage",
    "Read the use of storage by a project, by kind, spider and age; with the database for a key of all projects.",
    schemas.value("Bytes as stored, jobs and records.", Usage),
)
async def _of_project(call: Call) -> Response:
    usage = await call.store.usage.of_project(call.project)
    if call.grant.all_projects:
        usage = msgspec.structs.replace(usage, database=await database_of(call.store))
    return json(usage)


@ROUTES.add(
    "GET /api/usage",
    "Read the use of storage by all projects.",
    schemas.value("Bytes as stored, jobs and records.", Usage),
    access=Access.SERVER,
)
async def _of_all(call: Call) -> Response:
    usage = await call.store.usage.of_all()
    return json(msgspec.structs.replace(usage, database=await database_of(call.store)))


_COUNT: Final = 100
_MOST: Final = 10_000


@ROUTES.add(
    "GET /api/proxies",
    "Read the success of this server's proxies, at all sites and at each, the most recently requested site first.",
    schemas.value("Requests by result, and cool-downs.", Proxies),
    parameters=(
        schemas.page_size(_MOST),
        schemas.Parameter("site", "only this host, on any port or on that of HOST:PORT", schemas.STRING),
    ),
    access=Access.SERVER,
)
async def _read(call: Call) -> Response:
    pool = call.service(ProxyPool)
    count = call.page_size(_COUNT, _MOST, "Name a site.")
    site = call.query.get("site")
    found = (each for each in pool.by_site() if site is None or _is_of(each.site or "", site.lower()))
    return json(Proxies(list(pool.totals()), list(islice(found, count))))


def _is_of(site: str, asked: str) -> bool:
    return asked in (site, site.rpartition(":")[0])

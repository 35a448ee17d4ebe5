"""``/api``, the app host: its calls by the resource that they are about."""

from __future__ import annotations

from starlette.responses import Response

from scrapy_ext.server.http.answers import Refusal, json, method_not_allowed
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.jobs.versions.environments import Environments
from scrapy_ext.server.platform.comments import comments
from scrapy_ext.server.platform.jobs import jobs
from scrapy_ext.server.platform.legacy import legacy_records
from scrapy_ext.server.platform.periodic import periodic
from scrapy_ext.server.platform.projects import listed
from scrapy_ext.server.platform.spiders import one_spider, spider_list
from scrapy_ext.server.platform.versions import Deploys
from scrapy_ext.server.platform.webhooks import webhooks


class App:
    """The resource. ``deploys`` takes code; without it, none is taken."""

    def __init__(self, deploys: Deploys | None) -> None:
        self._deploys = deploys

    async def __call__(self, call: Call) -> Response:
        """Answer a call."""
        match call.path, call.method:
            case ["scrapyd", "addversion.json"], "POST":
                return await self._code().add_version(call)
            case ["scrapyd", "addversion.json"], _:
                raise method_not_allowed("POST")
            case ["projects", _, "versions", *_], _:
                return await self._code().versions(call)
            case ["spiders", "list.json"], "GET":
                return await spider_list(call, self._environments)
            case ["run.json" | "schedule.json"], _:
                return await jobs(call, self._environments)
            case _:
                return await _app(call)

    @property
    def _environments(self) -> Environments | None:
        return self._deploys.deployments.environments if self._deploys is not None else None

    def _code(self) -> Deploys:
        if self._deploys is None:
            raise Refusal(403, "Forbidden. This server takes no code.")
        return self._deploys


async def _app(call: Call) -> Response:
    match call.path, call.method:
        case ["scrapyd", "listprojects.json"], "GET":
            return await listed(call)
        case ["v2", "users", "me"], "GET":
            return json({"username": call.who})
        case ((["scrapyd", "listprojects.json"] | ["spiders", "list.json"] | ["v2", "users", "me"]), _):
            raise method_not_allowed("GET")
        case ["comments", *_], _:
            return await comments(call)
        case ["items.jl" | "log.jl"], _:
            return await legacy_records(call)
        case ["projects", _, "periodicjobs", *_], _:
            return await periodic(call)
        case ["projects", _, "webhooks", *_], _:
            return await webhooks(call)
        case ["v2", "projects", _, "spiders", _, *_], _:
            return await one_spider(call)
        case _:
            return await jobs(call)

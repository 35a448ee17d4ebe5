"""``/api``, the app host: its calls by the resource that they are about."""

from __future__ import annotations

from starlette.responses import Response

from scrapy_ext.server.platform.answers import json, method_not_allowed
from scrapy_ext.server.platform.calls import Call
from scrapy_ext.server.platform.comments import comments
from scrapy_ext.server.platform.jobs import jobs
from scrapy_ext.server.platform.legacy import legacy_records
from scrapy_ext.server.platform.periodic import periodic
from scrapy_ext.server.platform.projects import listed
from scrapy_ext.server.platform.spiders import one_spider, spider_list
from scrapy_ext.server.platform.webhooks import webhooks


async def app(call: Call) -> Response:
    """Answer a call."""
    match call.path, call.method:
        case ["scrapyd", "listprojects.json"], "GET":
            return await listed(call)
        case ["spiders", "list.json"], "GET":
            return await spider_list(call)
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

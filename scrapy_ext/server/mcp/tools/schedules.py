"""Tools about schedules, which run spiders at times."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import fields_of
from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.platform.periodic import NewSchedule, PeriodicJob, PeriodicPage
from scrapy_ext.server.mcp.results import Result, numbered, offset_of, records_result
from scrapy_ext.server.mcp.services import ApiCall, Need, Services, decoded, pairs, path_of
from scrapy_ext.server.mcp.tool import Arguments, Listing, Project, Tools, with_fields_of
from scrapy_ext.server.mcp.tools.jobs import Spider, SpiderArguments, Tags, check_arguments

TOOLS: Final = Tools()


class ListSchedules(Listing, frozen=True, kw_only=True):
    project: Project


@TOOLS.add(
    "list_schedules",
    "List schedules",
    "List the schedules of a project. cron has five fields in UTC: minute, hour, day of month, month, day of week "
    "(0 is Sunday). One that is disabled does not run.",
    ListSchedules,
    idempotent=True,
)
async def _list_schedules(services: Services, arguments: ListSchedules) -> Result:
    start = offset_of(arguments.cursor)
    query = pairs(("count", arguments.limit), ("offset", start))
    page = decoded(await services.call(ApiCall(path=_path(arguments.project), query=query)), PeriodicPage)
    more = start + len(page.results) < page.count
    return records_result(numbered(page.results, start), arguments.max_bytes, {"total": page.count}, more=more)


class AddSchedule(Arguments, frozen=True, kw_only=True):
    project: Project
    spider: Spider
    arguments: SpiderArguments = msgspec.field(default_factory=dict)
    tags: Tags = msgspec.field(default_factory=list)


#: Fields of a schedule that the arguments above stand for.
_OWN: Final = frozenset({"tasks", "addtags"})


@TOOLS.add(
    "add_schedule",
    "Add a schedule",
    "Add a schedule that runs a spider at the times of a cron expression, and return its number.",
    with_fields_of(NewSchedule, AddSchedule, without=_OWN),
    Need.WRITE,
    open_world=True,
)
async def _add_schedule(services: Services, arguments: AddSchedule) -> Result:
    check_arguments(arguments.arguments)
    fields = {
        **{name: getattr(arguments, name) for name in fields_of(NewSchedule) if name not in _OWN},
        "tasks": [{"name": arguments.spider, "spider_args": arguments.arguments}],
        "addtags": arguments.tags,
    }
    Cron.parse_new(fields["cron"])
    call = ApiCall(method="POST", path=_path(arguments.project), body=msgspec.json.encode(fields))
    return Result({"schedule": decoded(await services.call(call), PeriodicJob).id})


class RemoveSchedule(Arguments, frozen=True, kw_only=True):
    project: Project
    schedule: Annotated[int, Meta(ge=0, le=MAX_NUMBER, description="Number (id) of the schedule.")]


@TOOLS.add(
    "remove_schedule",
    "Remove a schedule",
    "Remove a schedule. Jobs that it has run stay.",
    RemoveSchedule,
    Need.WRITE,
    destructive=True,
    idempotent=True,
)
async def _remove_schedule(services: Services, arguments: RemoveSchedule) -> Result:
    await services.call(ApiCall(method="DELETE", path=_path(arguments.project, arguments.schedule)))
    return Result({"schedule": arguments.schedule, "removed": True})


def _path(project: int, *rest: int) -> str:
    return path_of("api", "projects", project, "periodicjobs", *rest)

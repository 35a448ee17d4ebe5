"""Tools about projects and their spiders."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.projects import Project as Shown
from scrapy_ext.server.mcp.results import Result, numbered, offset_of, records_result
from scrapy_ext.server.mcp.services import ApiCall, ApiError, Services, decoded, pairs
from scrapy_ext.server.mcp.tool import Listing, Project, Tools

TOOLS: Final = Tools()


_NO_PROJECTS: Final = (
    "No project of this key has data or a name yet. A project needs no creation: use the number that its code is "
    "deployed to, or that the user names; by default 1. It is listed once it has a job, code or other data."
)


class _ProjectList(msgspec.Struct):
    projects: list[int]


class ListProjects(Listing, frozen=True, kw_only=True):
    pass


@TOOLS.add(
    "list_projects",
    "List projects",
    "List the projects that the key may read: number (id), and name if there is one. Other tools take the number. A "
    "project is not created: it is listed once it has data or a name, or if the key is limited to it.",
    ListProjects,
    idempotent=True,
)
async def _list_projects(services: Services, arguments: ListProjects) -> Result:
    found = await _projects(services)
    if not found:
        return records_result((), arguments.max_bytes, {"total": 0, "note": _NO_PROJECTS})
    return _page(found, arguments)


async def _projects(services: Services) -> list[Shown]:
    try:
        return decoded(await services.call(ApiCall(path="/api/projects", query=(("limited", "1"),))), list[Shown])
    except ApiError as error:
        if error.status != 404:
            raise
    # The hosted platform has numbers alone.
    numbers = decoded(await services.call(ApiCall(path="/api/scrapyd/listprojects.json")), _ProjectList).projects
    return [Shown(number) for number in numbers]


class _SpiderList(msgspec.Struct):
    spiders: list[dict[str, Any]]


class ListSpiders(Listing, frozen=True, kw_only=True):
    project: Project


@TOOLS.add(
    "list_spiders",
    "List spiders",
    "List the spiders of a project: those of its current version, or without one those that jobs and schedules name. "
    "id is the name that run_spider takes. If the code is known, summary says what the spider does, and arguments has "
    "its arguments: name, required, default and annotation (type) as Python source, help.",
    ListSpiders,
    idempotent=True,
)
async def _list_spiders(services: Services, arguments: ListSpiders) -> Result:
    query = pairs(("project", arguments.project), ("described", "1"))
    answer = await services.call(ApiCall(path="/api/spiders/list.json", query=query))
    return _page(decoded(answer, _SpiderList).spiders, arguments)


def _page(values: list[Any], arguments: Listing) -> Result:
    """Return a page of a listing that the platform returns as a whole."""
    start = offset_of(arguments.cursor)
    shown = values[start : start + arguments.limit]
    more = start + len(shown) < len(values)
    return records_result(numbered(shown, start), arguments.max_bytes, {"total": len(values)}, more=more)

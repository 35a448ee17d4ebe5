"""Tools of a platform without the calls that are this package's own: names of projects, and verdicts on jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scrapy_ext.server.mcp.services import ApiAnswer, ApiCall, ApiError
from scrapy_ext.server.mcp.tools import jobs, projects

JOBS = (
    b'{"status": "ok", "count": 1, "total": 1, "jobs": [{"id": "3/1/1", "spider": "books", "state": "running", '
    b'"priority": 2, "tags": [], "updated_time": "2026-11-28T10:00:00", "responses_received": 1, "items_scraped": 1, '
    b'"logs": 1, "errors_count": 0}]}'
)


class HostedPlatform:
    """A platform with the calls below alone; others fail with a status."""

    def __init__(self, status: int) -> None:
        self.status = status

    async def call(self, call: ApiCall) -> ApiAnswer:
        if call.path == "/api/scrapyd/listprojects.json":
            return ApiAnswer(b'{"status": "ok", "projects": [3, 7]}', is_whole=True)
        if call.path == "/api/jobs/list.json":
            assert dict(call.query)["project"] == "3"
            return ApiAnswer(JOBS, is_whole=True)
        if call.path == "/api/spiders/list.json":
            assert dict(call.query) == {"project": "3", "described": "1"}
            return ApiAnswer(b'{"status": "ok", "spiders": [{"id": "books", "tags": []}]}', is_whole=True)
        raise ApiError("Not found.", self.status)

    async def extract(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(fields)


async def test_a_platform_without_names_has_numbers() -> None:
    tool = next(each for each in projects.TOOLS if each.name == "list_projects")
    result = await tool.call(HostedPlatform(404), {})
    assert result.data == '{"id":3,"name":null}\n{"id":7,"name":null}'
    with pytest.raises(ApiError):
        await tool.call(HostedPlatform(503), {})


async def test_a_platform_without_descriptions_of_spiders_has_names() -> None:
    tool = next(each for each in projects.TOOLS if each.name == "list_spiders")
    assert (await tool.call(HostedPlatform(404), {"project": 3})).data == '{"id":"books","tags":[]}'


class EndingPlatform(HostedPlatform):
    """A platform that answers one call, and then shuts down."""

    refused = 0

    async def call(self, call: ApiCall) -> ApiAnswer:
        self.refused += self.status == 503
        answer = await super().call(call)
        if call.path == "/api/jobs/list.json":
            self.status = 503
        return answer


async def test_a_wait_ends_when_the_platform_shuts_down() -> None:
    tool = next(each for each in jobs.TOOLS if each.name == "wait_for_job")
    platform = EndingPlatform(404)
    result = await tool.call(platform, {"job": "3/1/1", "seconds": 10})
    assert platform.refused == 1
    assert (result.is_error, result.facts["finished"]) == (False, False)
    assert "Call this again" in result.facts["note"]


async def test_a_platform_without_verdicts_lists_its_jobs_all_the_same() -> None:
    tools = {each.name: each for each in jobs.TOOLS}
    result = await tools["list_jobs"].call(HostedPlatform(404), {"project": 3})
    assert '"3/1/1"' in str(result.data)
    assert "running" in str(
        (await tools["wait_for_job"].call(HostedPlatform(404), {"job": "3/1/1", "seconds": 0})).data
    )
    for platform, arguments in ((HostedPlatform(503), {}), (HostedPlatform(404), {"needs_attention": True})):
        with pytest.raises(ApiError):
            await tools["list_jobs"].call(platform, {"project": 3, **arguments})

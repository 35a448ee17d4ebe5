"""The list of projects, of a platform that has no names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scrapy_ext.server.mcp.services import ApiAnswer, ApiCall, ApiError
from scrapy_ext.server.mcp.tools.projects import TOOLS


class HostedPlatform:
    """A platform without ``/api/projects``, whose other answers fail with a status."""

    def __init__(self, status: int) -> None:
        self.status = status

    async def call(self, call: ApiCall) -> ApiAnswer:
        if call.path == "/api/scrapyd/listprojects.json":
            return ApiAnswer(b'{"status": "ok", "projects": [3, 7]}', is_whole=True)
        raise ApiError("Not found.", self.status)

    async def extract(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(fields)


async def test_a_platform_without_names_has_numbers() -> None:
    tool = next(each for each in TOOLS if each.name == "list_projects")
    result = await tool.call(HostedPlatform(404), {})
    assert result.data == '{"id":3,"name":null}\n{"id":7,"name":null}'
    with pytest.raises(ApiError):
        await tool.call(HostedPlatform(503), {})

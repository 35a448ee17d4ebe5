"""The tools: a module for each topic."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.server.mcp.tool import Tool
from scrapy_ext.server.mcp.tools import collections, jobs, pages, projects, records, schedules, statistics

TOOLS: Final[tuple[Tool[Any], ...]] = (
    *pages.TOOLS,
    *projects.TOOLS,
    *jobs.TOOLS,
    *records.TOOLS,
    *statistics.TOOLS,
    *collections.TOOLS,
    *schedules.TOOLS,
)
BY_NAME: Final = {tool.name: tool for tool in TOOLS}

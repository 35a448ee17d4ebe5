"""The tools: a module for each topic."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.server.mcp.tool import Tool
from scrapy_ext.server.mcp.tools import jobs, pages, projects, records, schedules

TOOLS: Final[tuple[Tool[Any], ...]] = (
    *pages.TOOLS,
    *projects.TOOLS,
    *jobs.TOOLS,
    *records.TOOLS,
    *schedules.TOOLS,
)
BY_NAME: Final = {tool.name: tool for tool in TOOLS}

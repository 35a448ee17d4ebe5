"""The routes of the server, from all of its parts; the addresses of pages are in ``ui``."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server import platform, scrapyd
from scrapy_ext.server.extraction import EXTRACT
from scrapy_ext.server.http import health, openapi
from scrapy_ext.server.http.routes import Route
from scrapy_ext.server.mcp import endpoint

ROUTES: Final[tuple[Route, ...]] = (
    *platform.ROUTES,
    *scrapyd.ROUTES,
    EXTRACT,
    *endpoint.ROUTES,
    *health.ROUTES,
    *openapi.ROUTES,
)

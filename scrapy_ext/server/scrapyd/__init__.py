"""The API of Scrapyd, so that its clients work with this server: scrapyd-client, ScrapydWeb and others.

``naming`` finds projects and jobs by the names that these clients use. ``versions`` and ``jobs`` have the calls, and
``envelope`` what these have in common. ``pages`` has the page of jobs and the files of logs and items.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.http.routes import Route
from scrapy_ext.server.scrapyd import jobs, pages, versions

ROUTES: Final[tuple[Route, ...]] = (*versions.ROUTES, *jobs.ROUTES, *pages.ROUTES)

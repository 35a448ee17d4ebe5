"""The API of Scrapyd, so that its clients work with this server: scrapyd-client, ScrapydWeb and others.

``naming`` finds projects and jobs by the names that these clients use, ``webservice`` has the calls, ``pages`` the page
of jobs and the files of logs and items.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.http.routes import Route
from scrapy_ext.server.scrapyd import pages, webservice

ROUTES: Final[tuple[Route, ...]] = (*webservice.ROUTES, *pages.ROUTES)

"""``/ui/<project>/<spider>/<job>/requests``: what a job has asked for."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.server.ui.frame import Page, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context, records_page

_PER_PAGE: Final = 50


async def _show(visit: Visit) -> Response:
    records, paging = await records_page(visit, visit.store.requests, visit.key, _PER_PAGE)
    return visit.rendered("requests.html", **await job_context(visit, "requests"), records=records, paging=paging)


PAGES: Final = (Page(PATH + "/requests", "jobs", _show),)

"""``/ui/<project>/<spider>/<job>/log``: what a job has logged."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.server.ui.frame import Page, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context, records_page

_PER_PAGE: Final = 200


async def _show(visit: Visit) -> Response:
    records, paging = await records_page(visit, visit.store.logs, visit.key, _PER_PAGE)
    return visit.rendered("log.html", **await job_context(visit, "log"), records=records, paging=paging)


PAGES: Final = (Page(PATH + "/log", "jobs", _show),)

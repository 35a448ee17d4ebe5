"""``/ui/<project>/<spider>/<job>/stats``: the stats of a job's crawl."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.server.ui.frame import Page, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context

#: Stats of one page; who looks for others uses the search.
_MOST: Final = 2000


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "stats")
    stats: dict[str, Any] = {}
    for group in ("scrapystats", "frameworkstats"):
        found = context["job"].metadata.get(group)
        stats |= found if isinstance(found, dict) else {}
    text = visit.text("q")
    chosen = sorted(pair for pair in stats.items() if text.lower() in pair[0].lower())
    return visit.rendered("stats.html", **context, text=text, stats=chosen[:_MOST], found=len(chosen), all=len(stats))


PAGES: Final = (Page(PATH + "/stats", "jobs", _show),)

"""``/ui/<project>/<spider>/<job>/stats``: the stats of a job's crawl."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context

#: Times: Scrapy's datetimes, which the platform stores as milliseconds.
_TIMES: Final = ("start_time", "finish_time")
#: Maximum number of stats on one page; the search finds others.
_MOST: Final = 2000


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "stats")
    stats: dict[str, Any] = {}
    for group in ("scrapystats", CRAWL_STATS):
        found = context["job"].metadata.get(group)
        stats |= found if isinstance(found, dict) else {}
    text = visit.text("q")
    chosen = sorted(name for name in stats if text.lower() in name.lower())
    shown = [(name, _shown(name, stats[name])) for name in chosen[:_MOST]]
    return visit.rendered("stats.html", **context, text=text, stats=shown, found=len(chosen), all=len(stats))


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return shapes.cell(value)
    return f"{shapes.when(value)} UTC" if name in _TIMES else shapes.number(value)


PAGES: Final = (UiPage(PATH + "/stats", "jobs", _show),)

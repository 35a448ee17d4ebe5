"""``/ui/<project>/<spider>/<job>/requests``: the requests of a job with their responses' status and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.ui import charts, shapes, timeline
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, records_page, search_page

_PER_PAGE: Final = 50
#: Maximum number of records whose statuses are counted here.
_COUNTED: Final = 2000
_STATUS_STAT: Final = "downloader/response_status_count/"


class _Status(msgspec.Struct):
    status: int


_status: Final = msgspec.json.Decoder(_Status).decode


async def _show(visit: Visit) -> Response:
    store, text = visit.store.requests, visit.text("q")
    context = await job_context(visit, "requests")
    if text:
        records, paging = await search_page(visit, store, text, _PER_PAGE)
    else:
        records, paging = await records_page(visit, store, visit.key, _PER_PAGE)
    statuses, counted = await _statuses(visit, context["job"].metadata, context["totals"]["requests"])
    title = "Responses by status" + (f", of the last {counted}" if counted < context["totals"]["requests"] else "")
    shown = [charts.Bar(str(status), number, _kind(status)) for status, number in sorted(statuses.items())]
    return visit.rendered(
        "requests.html",
        **context,
        records=records,
        paging=paging,
        text=text,
        charts=[
            charts.bars(title, shown, lambda value: shapes.number(round(value))),
            await timeline.responses(visit.store, visit.key),
        ],
    )


async def _statuses(visit: Visit, metadata: Mapping[str, Any], total: int) -> tuple[Mapping[int, int], int]:
    """Return responses by status, and the number of responses counted: all if they are few or the crawl's stats have
    them, else the last ``_COUNTED``."""
    stats = metadata.get(CRAWL_STATS)
    if total > _COUNTED and isinstance(stats, dict):
        counted = {
            int(name.removeprefix(_STATUS_STAT)): number
            for name, number in stats.items()
            if name.startswith(_STATUS_STAT) and name[-3:].isascii() and name[-3:].isdigit() and isinstance(number, int)
            if len(name) == len(_STATUS_STAT) + 3
        }
        if counted:
            return counted, total
    key, first = visit.key, max(total - _COUNTED, 0)
    found: Counter[int] = Counter()
    async for part in visit.store.requests.scan(Span(*key), (key.spider, key.job, first), _COUNTED):
        found.update(_status(line).status for line in part.lines)
    return found, min(total, _COUNTED)


def _kind(status: int) -> str:
    return "good" if 200 <= status < 300 else "odd" if status < 400 else "bad"


async def _download(visit: Visit) -> Response:
    return await download(visit, visit.store.requests)


PAGES: Final = (UiPage(PATH + "/requests", "jobs", _show), UiPage(PATH + "/requests.{format}", "jobs", _download))

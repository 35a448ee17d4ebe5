"""``/ui/<project>/<spider>/<job>/items``: what a job has scraped."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.frame import MissingError, Page, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context, records_page

_PER_PAGE: Final = 50
#: Columns of the table: the fields that most items have.
_COLUMNS: Final = 8


async def _show(visit: Visit) -> Response:
    stats = await visit.store.items.stats(visit.key)
    records, paging = await records_page(visit, visit.store.items, visit.key, _PER_PAGE)
    columns = shapes.columns(stats.counts, [record for _, record in records], _COLUMNS)
    context = await job_context(visit, "items")
    return visit.rendered("items.html", **context, columns=columns, records=records, paging=paging)


async def _one(visit: Visit) -> Response:
    number = visit.request.path_params["number"]
    found = await visit.store.items.at(visit.key, [number])
    if not found:
        raise MissingError
    decoded = msgspec.json.decode(found[0].lines[0])  # shows letters where the bytes may have escapes
    text = msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode()
    last = (await visit.store.items.stats(visit.key)).totals.input_values - 1
    context = await job_context(visit, "items")
    return visit.rendered("item.html", **context, number=number, last=last, text=text, stored=found[0].ts)


PAGES: Final = (Page(PATH + "/items", "jobs", _show), Page(PATH + "/items/{number:number}", "jobs", _one))

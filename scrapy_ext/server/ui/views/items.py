"""``/ui/<project>/<spider>/<job>/items``: the items of a job, as a searchable table and one by one."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, records_page, search_page

_PER_PAGE: Final = 50
#: Columns of the table: the most frequent fields, or all up to a limit.
_COLUMNS: Final = 8
_ALL_COLUMNS: Final = 60


async def _show(visit: Visit) -> Response:
    store, key, text = visit.store, visit.key, visit.text("q")
    stats = await store.items.stats(key)
    if text:
        records, paging = await search_page(visit, store.items, text, _PER_PAGE)
    else:
        records, paging = await records_page(visit, store.items, key, _PER_PAGE)
    shown = [record for _, record in records]
    most = _ALL_COLUMNS if visit.text("all") else _COLUMNS
    columns = [_column(name, stats.counts.get(name, 0), shown) for name in shapes.columns(stats.counts, shown, most)]
    return visit.rendered(
        "items.html",
        **await job_context(visit, "items"),
        columns=columns,
        more_columns=len(stats.counts) > len(columns),
        every=bool(visit.text("all")),
        records=records,
        paging=paging,
        text=text,
        names=[name for name in sorted(stats.counts, key=lambda name: -stats.counts[name]) if "," not in name][:200],
    )


def _column(name: str, occurrences: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a field with the number of items that have it, and the types of its shown values."""
    kinds = sorted({shapes.kind_of(record[name]) for record in records if name in record})
    return {"name": name, "count": occurrences, "kinds": kinds}


async def _one(visit: Visit) -> Response:
    number = visit.request.path_params["number"]
    found = await visit.store.items.at(visit.key, [number])
    if not found:
        raise MissingError
    # Decoding shows letters where the bytes may have escapes.
    decoded = msgspec.json.decode(found[0].lines[0])
    text = msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode()
    indexes = await visit.store.items.indexes(visit.key)
    context = await job_context(visit, "items")
    return visit.rendered(
        "item.html", **context, number=number, indexes=indexes, text=text, stored=found[0].ts, fields=decoded
    )


async def _download(visit: Visit) -> Response:
    return await download(visit, visit.store.items)


PAGES: Final = (
    UiPage(PATH + "/items", "jobs", _show),
    UiPage(PATH + "/items/{number:number}", "jobs", _one),
    UiPage(PATH + "/items.{format}", "jobs", _download),
)

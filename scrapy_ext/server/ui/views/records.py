"""``/ui/<project>/<spider>/<job>/items`` and ``/requests``: searchable tables of a job's records, and single items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.api.platform.users import Action
from scrapy_ext.server.store.records.records import RecordStore
from scrapy_ext.server.store.records.removal import RecordOwner, removal_error
from scrapy_ext.server.ui import charts, shapes, timeline
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, parts_of, records_page, search_page

_PER_PAGE: Final = 50
#: Columns of the table: the most frequent fields, or all up to a limit.
_COLUMNS: Final = 8
_ALL_COLUMNS: Final = 60
#: Maximum number of records whose statuses are counted here.
_COUNTED: Final = 2000
_STATUS_STAT: Final = "downloader/response_status_count/"


class _Status(msgspec.Struct):
    status: int


_status: Final = msgspec.json.Decoder(_Status).decode


async def _page(visit: Visit, store: RecordStore, text: str) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
    if text:
        return await search_page(visit, store, text, _PER_PAGE)
    return await records_page(visit, store, visit.key, _PER_PAGE)


async def _items(visit: Visit) -> Response:
    store, key, text = visit.store, visit.key, visit.text("q")
    stats = await store.items.stats(key)
    records, paging = await _page(visit, store.items, text)
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


async def _item(visit: Visit) -> Response:
    number = visit.request.path_params["number"]
    found = await visit.store.items.at(visit.key, [number])
    if not found:
        if (removal := await visit.store.items.removal(visit.key)) is not None:
            raise removal_error(RecordOwner(visit.key.project, "items", visit.key.spider, visit.key.job), removal)
        raise MissingError
    # Decoding shows letters where the bytes may have escapes.
    decoded = msgspec.json.decode(found[0].lines[0])
    text = msgspec.json.format(msgspec.json.encode(decoded), indent=2).decode()
    indexes = await visit.store.items.indexes(visit.key)
    context = await job_context(visit, "items")
    return visit.rendered(
        "item.html", **context, number=number, indexes=indexes, text=text, stored=found[0].ts, fields=decoded
    )


async def _requests(visit: Visit) -> Response:
    store, text = visit.store.requests, visit.text("q")
    context = await job_context(visit, "requests")
    records, paging = await _page(visit, store, text)
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
    first = max(total - _COUNTED, 0)
    found: Counter[int] = Counter()
    async for part in parts_of(visit.store.requests, visit.key, first, _COUNTED):
        found.update(_status(line).status for line in part.lines)
    return found, min(total, _COUNTED)


def _kind(status: int) -> str:
    return "good" if 200 <= status < 300 else "odd" if status < 400 else "bad"


PAGES: Final = (
    UiPage(PATH + "/items", "jobs", _items, action=Action.RUN),
    UiPage(PATH + "/items/{number:number}", "jobs", _item),
    UiPage(PATH + "/items.{format}", "jobs", download("items")),
    UiPage(PATH + "/requests", "jobs", _requests, action=Action.RUN),
    UiPage(PATH + "/requests.{format}", "jobs", download("requests")),
)

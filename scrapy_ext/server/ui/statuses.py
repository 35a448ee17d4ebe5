"""Responses of a job by their HTTP status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from markupsafe import Markup

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.ui import charts, shapes
from scrapy_ext.server.ui.job_records import parts_of

#: Maximum number of records whose statuses are counted here.
_COUNTED: Final = 2000
_STATUS_STAT: Final = "downloader/response_status_count/"


class _Status(msgspec.Struct):
    status: int


_status: Final = msgspec.json.Decoder(_Status).decode


async def statuses_chart(store: Store, key: JobKey, metadata: Mapping[str, Any], total: int) -> Markup:
    """Draw the responses of a job with ``total`` request records by status; "" without any."""
    statuses, counted = await _statuses(store, key, metadata, total)
    title = "Responses by status" + (f", of the last {counted}" if counted < total else "")
    bars = [charts.Bar(str(status), number, _kind(status)) for status, number in sorted(statuses.items())]
    return charts.bars(title, bars, lambda value: shapes.number(round(value)))


async def _statuses(
    store: Store, key: JobKey, metadata: Mapping[str, Any], total: int
) -> tuple[Mapping[int, int], int]:
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
    async for part in parts_of(store.requests, key, first, _COUNTED):
        found.update(_status(line).status for line in part.lines)
    return found, min(total, _COUNTED)


def _kind(status: int) -> str:
    return "good" if 200 <= status < 300 else "odd" if status < 400 else "bad"

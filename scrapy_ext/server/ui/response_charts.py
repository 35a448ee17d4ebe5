"""Charts of a job's responses: how many by HTTP status, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from markupsafe import Markup

from scrapy_ext.api.platform.jobs import stats_of
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.record_search import parts_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.ui import charts, shapes

#: Maximum number of records whose statuses and durations are counted here.
COUNTED: Final = 2000
_STATUS_STAT: Final = "downloader/response_status_count/"
#: Upper bounds of the bars of durations, in milliseconds.
_DURATIONS: Final = (100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)


class MeasuredResponse(msgspec.Struct):
    """The members of a request record that the charts are of; ``duration`` in milliseconds."""

    status: int
    duration: int


_measured: Final = msgspec.json.Decoder(MeasuredResponse).decode


async def last_responses(store: Store, key: JobKey, total: int) -> list[MeasuredResponse]:
    """Return the last responses of a job with ``total`` request records."""
    parts = parts_of(store.requests, key, max(total - COUNTED, 0), COUNTED)
    return [_measured(line) async for part in parts for line in part.lines]


def statuses_chart(last: Sequence[MeasuredResponse], metadata: Mapping[str, Any], total: int, requests: str) -> Markup:
    """Draw responses by status: all if the crawl's stats have them, else the last ones; "" without any.

    ``requests``: path of the page with the requests of each status.
    """
    counted = _counted(metadata) if len(last) < total else {}
    by_status = counted or Counter(each.status for each in last)
    title = "Responses by status" + ("" if counted else _some(last, total))
    found = [
        charts.Bar(str(each), by_status[each], _kind(each), f"{requests}?status={each}") for each in sorted(by_status)
    ]
    return charts.bars(title, found, _count)


def durations_chart(last: Sequence[MeasuredResponse], total: int) -> Markup:
    """Draw the last responses by the time that they took; "" without any.

    That time begins when a request is in the queue of the downloader, so that it is longer than the latency that the
    crawl's stats have.
    """
    durations = [each.duration for each in last]
    title = f"Time in the downloader and its queue{_some(last, total)}"
    return charts.bars(title, _bars_of(durations), _count, _middle(durations))


def _some(last: Sequence[MeasuredResponse], total: int) -> str:
    return f", of the last {len(last)}" if len(last) < total else ""


def _counted(metadata: Mapping[str, Any]) -> Mapping[int, int]:
    """Return all responses by status, as the crawl's stats have them."""
    return {
        int(name.removeprefix(_STATUS_STAT)): number
        for name, number in stats_of(metadata).items()
        if name.startswith(_STATUS_STAT) and name[-3:].isascii() and name[-3:].isdigit() and isinstance(number, int)
        if len(name) == len(_STATUS_STAT) + 3
    }


def _bars_of(durations: Sequence[int]) -> list[charts.Bar]:
    """Return the number of durations up to each bound, without the empty bars at both ends."""
    numbers = [0] * (len(_DURATIONS) + 1)
    for duration in durations:
        numbers[bisect_left(_DURATIONS, duration)] += 1
    places = [place for place, number in enumerate(numbers) if number]
    if not places:
        return []
    labels = [f"≤ {shapes.duration(most)}" for most in _DURATIONS] + [f"> {shapes.duration(_DURATIONS[-1])}"]
    return [charts.Bar(labels[place], numbers[place]) for place in range(places[0], places[-1] + 1)]


def _middle(durations: Sequence[int]) -> str:
    """Return the median and the 95th percentile in words."""
    if not durations:
        return ""
    ranked = sorted(durations)
    median, high = (shapes.duration(ranked[len(ranked) * share // 100]) for share in (50, 95))
    return f"median {median}, 95 % within {high}"


def _count(value: float) -> str:
    return shapes.number(round(value))


def _kind(status: int) -> str:
    return "good" if 200 <= status < 300 else "odd" if status < 400 else "bad"

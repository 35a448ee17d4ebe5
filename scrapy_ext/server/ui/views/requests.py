"""``/ui/<project>/<spider>/<job>/requests``: the requests of a job, filtered, with charts, and single ones with the
pages that led to them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.records.removal import RecordOwner, removal_error
from scrapy_ext.server.ui import charts, shapes, timeline
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, records_page
from scrapy_ext.server.ui.record_search import Wanted, parts_of, records_of, search_records, with_text

_PER_PAGE: Final = 50
#: Maximum number of records whose statuses and durations are counted here.
_COUNTED: Final = 2000
_STATUS_STAT: Final = "downloader/response_status_count/"
#: Choices of the form: ranges of status codes by name, and least durations in milliseconds.
_STATUSES: Final = {
    "2xx": range(200, 300),
    "3xx": range(300, 400),
    "4xx": range(400, 500),
    "5xx": range(500, 600),
    "failed": range(400, 1000),
}
_SLOW: Final = (1000, 5000, 30_000)
#: Upper bounds of the bars of durations, in milliseconds.
_DURATIONS: Final = (100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)
#: Maximum pages that are listed between a seed and a request.
_MOST_ANCESTORS: Final = 50


class _Request(msgspec.Struct):
    """The members of a request record that are looked at."""

    url: str
    status: int
    duration: int
    parent: int | None = None


class _Measured(msgspec.Struct):
    """The members that the charts are of."""

    status: int
    duration: int


_read: Final[Callable[[bytes], _Request]] = decoder(_Request)
_measured: Final = msgspec.json.Decoder(_Measured).decode


class _Filter(NamedTuple):
    """The parameters of the page, by which requests are chosen."""

    text: str
    status: str
    host: str
    slow: int
    parent: int | None

    def __bool__(self) -> bool:
        return bool(self.text or self.status or self.host or self.slow or self.parent is not None)

    def wanted(self) -> Wanted:
        """Return the predicate of the chosen requests."""
        statuses = _STATUSES.get(self.status) or ((int(self.status),) if self.status else None)
        contains = with_text(self.text) if self.text else None

        def chooses(line: bytes) -> bool:
            request = _read(line)
            return (
                (statuses is None or request.status in statuses)
                and request.duration >= self.slow
                and (self.parent is None or request.parent == self.parent)
                and (not self.host or _is_of_host(request.url, self.host))
                and (contains is None or contains(line))
            )

        return chooses


def _filter(visit: Visit) -> _Filter:
    status, parent = visit.text("status"), visit.number("parent", -1)
    known = status in _STATUSES or (len(status) == 3 and status.isascii() and status.isdigit())
    host = visit.text("host").lower().strip(".")
    return _Filter(
        visit.text("q"), status if known else "", host, visit.number("slow"), parent if parent >= 0 else None
    )


def _is_of_host(url: str, host: str) -> bool:
    """Return whether a URL is of a host or one below it."""
    if host not in url.lower():
        return False
    try:
        own = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return own == host or own.endswith(f".{host}")


async def _requests(visit: Visit) -> Response:
    store, chosen = visit.store.requests, _filter(visit)
    context = await job_context(visit, "requests")
    found, paging = None, None
    if chosen:
        found = await search_records(store, visit.key, visit.number("start"), chosen.wanted(), _PER_PAGE)
        records = records_of(found.records)
    else:
        records, paging = await records_page(visit, store, visit.key, _PER_PAGE)
    return visit.rendered(
        "requests.html",
        **context,
        records=records,
        paging=paging,
        found=found,
        chosen=chosen,
        statuses=list(_STATUSES),
        durations=_SLOW,
        charts=await _charts(visit.store, visit.key, context["job"].metadata, context["totals"]["requests"]),
    )


# ── charts ──


async def _charts(store: Store, key: JobKey, metadata: Mapping[str, Any], total: int) -> list[Any]:
    last = await _last(store, key, total)
    some = f", of the last {len(last)}" if len(last) < total else ""
    statuses = _counted_statuses(metadata) if some else None
    by_status = statuses or Counter(each.status for each in last)
    durations = [each.duration for each in last]
    title = "Responses by status" + ("" if statuses else some)
    shown = [charts.Bar(str(status), number, _kind(status)) for status, number in sorted(by_status.items())]
    return [
        charts.bars(title, shown, _count),
        charts.bars(f"Time to respond{some}{_middle(durations)}", _bars_of(durations), _count),
        await timeline.responses(store, key),
    ]


async def _last(store: Store, key: JobKey, total: int) -> list[_Measured]:
    """Return the last ``_COUNTED`` requests."""
    parts = parts_of(store.requests, key, max(total - _COUNTED, 0), _COUNTED)
    return [_measured(line) async for part in parts for line in part.lines]


def _counted_statuses(metadata: Mapping[str, Any]) -> Mapping[int, int]:
    """Return all responses by status, as the crawl's stats have them."""
    stats = metadata.get(CRAWL_STATS)
    return {
        int(name.removeprefix(_STATUS_STAT)): number
        for name, number in (stats.items() if isinstance(stats, dict) else ())
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
    return f": median {median}, 95 % within {high}"


def _count(value: float) -> str:
    return shapes.number(round(value))


def _kind(status: int) -> str:
    return "good" if 200 <= status < 300 else "odd" if status < 400 else "bad"


# ── one request ──


class _Ancestors(NamedTuple):
    """The requests that led to a request, from the seed on. ``further``: the index of the first that was not read."""

    requests: list[tuple[int, dict[str, Any]]]
    further: int | None


async def _request(visit: Visit) -> Response:
    store, number = visit.store.requests, visit.request.path_params["number"]
    record = await _at(visit, number)
    if record is None:
        if (removal := await store.removal(visit.key)) is not None:
            raise removal_error(RecordOwner(visit.key.project, "requests", visit.key.spider, visit.key.job), removal)
        raise MissingError
    return visit.rendered(
        "request.html",
        **await job_context(visit, "requests"),
        number=number,
        record=record,
        indexes=await store.indexes(visit.key),
        ancestors=await _ancestors(visit, number, record),
    )


async def _ancestors(visit: Visit, number: int, record: Mapping[str, Any]) -> _Ancestors:
    found: list[tuple[int, dict[str, Any]]] = []
    seen, parent = {number}, record.get("parent")
    # Records of any writer may name each other in a circle.
    while isinstance(parent, int) and parent >= 0 and parent not in seen:
        if len(found) == _MOST_ANCESTORS:
            return _Ancestors(found[::-1], parent)
        before = await _at(visit, parent)
        if before is None:
            break
        found.append((parent, before))
        seen.add(parent)
        parent = before.get("parent")
    return _Ancestors(found[::-1], None)


async def _at(visit: Visit, number: int) -> dict[str, Any] | None:
    found = await visit.store.requests.at(visit.key, [number])
    return msgspec.json.decode(found[0].lines[0]) if found else None


PAGES: Final = (
    UiPage(PATH + "/requests", "jobs", _requests),
    UiPage(PATH + "/requests/{number:number}", "jobs", _request),
    UiPage(PATH + "/requests.{format}", "jobs", download("requests")),
)

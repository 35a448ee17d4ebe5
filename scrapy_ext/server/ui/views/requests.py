"""``/ui/<project>/<spider>/<job>/requests``: the requests of a job, filtered, with charts, and single ones with the
pages that led to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.users import Action
from scrapy_ext.server.record_search import Wanted, records_of, search_records, with_text
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.records.removal import RecordOwner, removal_error
from scrapy_ext.server.ui import timeline
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, records_page
from scrapy_ext.server.ui.response_charts import durations_chart, last_responses, statuses_chart

_PER_PAGE: Final = 50
#: Choices of the form: ranges of status codes by name, and least durations in milliseconds.
_STATUSES: Final = {
    "2xx": range(200, 300),
    "3xx": range(300, 400),
    "4xx": range(400, 500),
    "5xx": range(500, 600),
    "failed": range(400, 1000),
}
_SLOW: Final = (1000, 5000, 30_000)
#: Maximum pages that are listed between a seed and a request.
_MOST_ANCESTORS: Final = 50


class _Request(msgspec.Struct):
    """The members of a request record that are looked at."""

    url: str
    status: int
    duration: int
    parent: int | None = None


_read: Final[Callable[[bytes], _Request]] = decoder(_Request)


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
        charts=await _charts(visit.store, context["job"], context["totals"]["requests"]),
    )


# ── charts ──


async def _charts(store: Store, job: StoredJob, total: int) -> list[Markup]:
    last = await last_responses(store, job.key, total)
    return [
        statuses_chart(last, job.metadata, total, f"/ui/{job.key}/requests"),
        durations_chart(last, total),
        await timeline.throughput(store, job, await timeline.samples_of(store, job.key)),
    ]


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
    UiPage(PATH + "/requests", "jobs", _requests, action=Action.RUN),
    UiPage(PATH + "/requests/{number:number}", "jobs", _request),
    UiPage(PATH + "/requests.{format}", "jobs", download("requests")),
)

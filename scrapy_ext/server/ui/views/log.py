"""``/ui/<project>/<spider>/<job>/log``: the log of a job, filtered by level and worker, and live while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import is_number
from scrapy_ext.api.platform.records import LEVELS
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.server.record_search import Wanted, logged, parts_of, records_of, search_records
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import HEADERS, MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, records_page
from scrapy_ext.server.ui.job_workers import worker_number
from scrapy_ext.server.ui.live import Live, ServerSentEvent

#: Lines of a page, and so few that a page of errors with their frames stays under 60 KB.
_PER_PAGE: Final = 100
_ERROR: Final = 40
#: Lines that a live page begins with, lines searched for them, and lines of one poll.
_TAIL: Final = 100
_TAIL_SEARCHED: Final = 2000
_PER_POLL: Final = 1000


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "log")
    end = (await visit.store.logs.indexes(visit.key)).stop
    level, text, worker = _level(visit), visit.text("q"), worker_number(visit.text("worker"))
    counts = (await visit.store.logs.stats(visit.key)).counts
    running = context["job"].state in (JobState.PENDING, JobState.RUNNING) and context["known"]
    live = running and not text and "start" not in visit.request.query_params
    if live:
        records, paging = await _tail(visit, level, worker, end)
    elif level or text or worker is not None:
        start, wanted = visit.number("start"), logged(level, text, worker)
        found = await search_records(visit.store.logs, visit.key, start, wanted, _PER_PAGE)
        records = records_of(found.records)
        paging = shapes.searched(start, found.next, end, ended=found.ended)
    else:
        records, paging = await records_page(visit, visit.store.logs, visit.key, _PER_PAGE)
    return visit.rendered(
        "log.html",
        **context,
        records=records,
        neighbours=_neighbours(records),
        paging=paging,
        text=text,
        level=level,
        worker=worker,
        of_workers=JOB_WORKERS in context["job"].metadata,
        levels=[(each, shapes.level(each), _from(counts, each)) for each in LEVELS],
        errors=_from(counts, 40),
        live=live,
        running=running,
        after=end,
    )


def _neighbours(records: Sequence[tuple[int, dict[str, Any]]]) -> dict[int, tuple[int | None, int | None]]:
    """Return the numbers of the errors before and after each error of a page."""
    errors = [number for number, record in records if isinstance(record["level"], int) and record["level"] >= _ERROR]
    around: list[int | None] = [None, *errors, None]
    return {number: (around[place], around[place + 2]) for place, number in enumerate(errors)}


def _level(visit: Visit) -> int:
    level = visit.number("level")
    return level if level in LEVELS else 0


def _from(counts: dict[str, int], level: int) -> int:
    """Return the number of lines of at least this level."""
    return sum(number for name, number in counts.items() if is_number(name) and int(name) >= level)


async def _tail(
    visit: Visit, level: int, worker: int | None, total: int
) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
    start = max(total - (_TAIL_SEARCHED if level or worker is not None else _TAIL), 0)
    wanted = logged(level, worker=worker)
    found = await search_records(visit.store.logs, visit.key, start, wanted, _TAIL_SEARCHED)
    records = [(number, record) for number, record in records_of(found.records) if number < total][-_TAIL:]
    first = records[0][0] if records else start
    return records, shapes.Paging(first, total - 1, total, 0 if start else None, None, None, None)


async def _first_error(visit: Visit) -> Response:
    """Redirect to the first error that a bounded search finds."""
    start = visit.number("start")
    found = await search_records(visit.store.logs, visit.key, start, logged(40), 1)
    path = f"/ui/{visit.key}/log"
    if not found.records:
        return visit.redirect(path, level=40, start=start if found.ended else found.next)
    number = found.records[0][0]
    answer = visit.redirect(path, start=max(number - 20, 0))
    answer.headers["location"] += f"#l{number}"
    return answer


async def _live(visit: Visit) -> Response:
    """Stream the lines after ``after``."""
    last = visit.request.headers.get("last-event-id", "")
    after = int(last) if is_number(last) else visit.number("after")
    wanted = logged(_level(visit), worker=worker_number(visit.text("worker")))
    return Live(_polls(visit, after, wanted), visit.ending, visit.streams, HEADERS)


async def _polls(visit: Visit, at: int, wanted: Wanted) -> AsyncIterator[list[ServerSentEvent]]:
    key, store = visit.key, visit.store
    while True:
        job = await store.jobs.get(key)
        total = (await store.logs.indexes(key)).stop
        events: list[ServerSentEvent] = []
        if total > at:
            left_out = max(total - at - _PER_POLL, 0)
            at += left_out
            lines: list[list[Any]] = []
            async for part in parts_of(store.logs, key, at, total - at):
                lines += [_line(number, line) for number, line in enumerate(part.lines, part.start) if wanted(line)]
            at = total
            events.append(ServerSentEvent("lines", {"total": total, "leftOut": left_out, "lines": lines}, at))
        yield events
        if job is None or (not events and job.state not in (JobState.PENDING, JobState.RUNNING)):
            yield [ServerSentEvent("end", job.state.value if job else "", at)]
            return


def _line(number: int, line: bytes) -> list[Any]:
    record = msgspec.json.decode(line)
    level = record["level"]
    text, is_shortened = shapes.folded(record["message"])
    return [number, shapes.when(record["time"]), level, shapes.level(level), shapes.visible(text), is_shortened]


async def _one_line(visit: Visit) -> Response:
    """Render one line whole, with all frames of its traceback."""
    number = visit.request.path_params["number"]
    found = await visit.store.logs.at(visit.key, [number])
    if not found:
        raise MissingError
    record = msgspec.json.decode(found[0].lines[0])
    return visit.rendered("log_line.html", **await job_context(visit, "log"), number=number, record=record)


PAGES: Final = (
    UiPage(PATH + "/log", "jobs", _show, action=Action.RUN),
    UiPage(PATH + "/log/{number:number}", "jobs", _one_line),
    UiPage(PATH + "/log/first-error", "jobs", _first_error),
    UiPage(PATH + "/log/live", "jobs", _live),
    UiPage(PATH + "/log.{format}", "jobs", download("logs")),
)

"""``/ui/<project>/<spider>/<job>/log``: what a job has logged, from a level on, and live while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import is_number
from scrapy_ext.api.platform.logs import LEVELS
from scrapy_ext.server.store.records.records import Span
from scrapy_ext.server.ui import shapes
from scrapy_ext.server.ui.downloads import download
from scrapy_ext.server.ui.frame import HEADERS, UiPage, Visit
from scrapy_ext.server.ui.job_context import PATH, job_context, records_page
from scrapy_ext.server.ui.live import Event, Live
from scrapy_ext.server.ui.search import Found, logged, look_through

_PER_PAGE: Final = 200
#: Lines that a page begins with when it goes on live, and those of one look.
_TAIL: Final = 200
_LOOK_BACK: Final = 2000
_AT_A_LOOK: Final = 1000


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "log")
    end = (await visit.store.logs.indexes(visit.key)).stop
    level, text = _level(visit), visit.text("q")
    counts = (await visit.store.logs.stats(visit.key)).counts
    running = context["job"].state in (JobState.PENDING, JobState.RUNNING) and context["known"]
    live = running and not text and "start" not in visit.request.query_params
    if live:
        records, paging = await _tail(visit, level, end)
    elif level or text:
        start = visit.number("start")
        found = await look_through(visit.store.logs, visit.key, start, logged(level, text), _PER_PAGE)
        records = _decoded(found)
        paging = shapes.searched(start, found.next, end, ended=found.ended)
    else:
        records, paging = await records_page(visit, visit.store.logs, visit.key, _PER_PAGE)
    return visit.rendered(
        "log.html",
        **context,
        records=records,
        paging=paging,
        text=text,
        level=level,
        levels=[(each, shapes.level(each), _from(counts, each)) for each in LEVELS],
        errors=_from(counts, 40),
        live=live,
        running=running,
        after=end,
    )


def _level(visit: Visit) -> int:
    level = visit.number("level")
    return level if level in LEVELS else 0


def _from(counts: dict[str, int], level: int) -> int:
    """Lines of at least this level."""
    return sum(number for name, number in counts.items() if is_number(name) and int(name) >= level)


def _decoded(found: Found) -> list[tuple[int, dict[str, Any]]]:
    return [(number, msgspec.json.decode(line)) for number, line in found.records]


async def _tail(visit: Visit, level: int, total: int) -> tuple[list[tuple[int, dict[str, Any]]], shapes.Paging]:
    """The last lines."""
    start = max(total - (_LOOK_BACK if level else _TAIL), 0)
    found = await look_through(visit.store.logs, visit.key, start, logged(level), _LOOK_BACK)
    records = [(number, record) for number, record in _decoded(found) if number < total][-_TAIL:]
    first = records[0][0] if records else start
    return records, shapes.Paging(first, total - 1, total, 0 if start else None, None, None, None)


async def _first_error(visit: Visit) -> Response:
    """To the first line that is an error, as far as was looked for it."""
    start = visit.number("start")
    found = await look_through(visit.store.logs, visit.key, start, logged(40), 1)
    path = f"/ui/{visit.key}/log"
    if not found.records:
        return visit.onward(path, level=40, start=start if found.ended else found.next)
    number = found.records[0][0]
    answer = visit.onward(path, start=max(number - 20, 0))
    answer.headers["location"] += f"#l{number}"
    return answer


async def _live(visit: Visit) -> Response:
    """The lines that come after ``after``."""
    last = visit.request.headers.get("last-event-id", "")
    after = int(last) if is_number(last) else visit.number("after")
    return Live(_looks(visit, after, _level(visit)), visit.ending, visit.streams, HEADERS)


async def _looks(visit: Visit, at: int, level: int) -> AsyncIterator[list[Event]]:
    key, store = visit.key, visit.store
    wanted = logged(level)
    while True:
        job = await store.jobs.get(key)
        total = (await store.logs.indexes(key)).stop
        events: list[Event] = []
        if total > at:
            left_out = max(total - at - _AT_A_LOOK, 0)
            at += left_out
            lines: list[list[Any]] = []
            async for part in store.logs.scan(Span(*key), (key.spider, key.job, at), total - at):
                lines += [_line(number, line) for number, line in enumerate(part.lines, part.start) if wanted(line)]
            at = total
            events.append(Event("lines", {"total": total, "leftOut": left_out, "lines": lines}, at))
        yield events
        if job is None or (not events and job.state not in (JobState.PENDING, JobState.RUNNING)):
            yield [Event("end", job.state.value if job else "", at)]
            return


def _line(number: int, line: bytes) -> list[Any]:
    record = msgspec.json.decode(line)
    level = record["level"]
    text = shapes.visible(shapes.clipped(record["message"]))
    return [number, shapes.when(record["time"]), level, shapes.level(level), text]


async def _download(visit: Visit) -> Response:
    return await download(visit, visit.store.logs)


PAGES: Final = (
    UiPage(PATH + "/log", "jobs", _show),
    UiPage(PATH + "/log/first-error", "jobs", _first_error),
    UiPage(PATH + "/log/live", "jobs", _live),
    UiPage(PATH + "/log.{format}", "jobs", _download),
)

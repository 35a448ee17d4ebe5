"""``/ui/<project>/spiders``: the spiders of a project; below it a page for each, with its last runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.users import Action
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import Counts
from scrapy_ext.server.store.spiders import Spider
from scrapy_ext.server.ui import spider_runs
from scrapy_ext.server.ui.frame import Link, MissingError, UiPage, Visit
from scrapy_ext.server.ui.shapes import Summary

_PATH: Final = "/ui/{project:number}/spiders"
_PER_PAGE: Final = 25
#: Runs of the strip in the list.
_STRIP: Final = 20


class _Row(NamedTuple):
    spider: Spider
    jobs: Mapping[str, int]
    strip: list[Summary]
    medians: Mapping[str, str]


async def _list(visit: Visit) -> Response:
    search, offset = visit.text("q"), min(visit.number("offset"), 10**9)
    known = [each for each in await visit.store.spiders.listed(visit.project) if search.lower() in each.name.lower()]
    known.sort(key=lambda spider: spider.name.casefold())
    return visit.rendered(
        "spiders.html",
        rows=[await _row(visit, spider) for spider in known[offset : offset + _PER_PAGE]],
        total=len(known),
        offset=offset,
        size=_PER_PAGE,
        search=search,
        now=visit.store.clock(),
    )


async def _row(visit: Visit, spider: Spider) -> _Row:
    runs = await spider_runs.last_runs(visit.store, visit.project, spider.number, _STRIP)
    strip = spider_runs.strip(runs, visit.store.clock())
    return _Row(spider, await _states(visit, spider.number), strip, spider_runs.medians(runs))


async def _states(visit: Visit, spider: int) -> Mapping[str, int]:
    by_state = await visit.store.jobs.count_by_state(visit.project, JobFilter(spider_id=spider, states=SHOWN_STATES))
    return {state.value: by_state[state] for state in SHOWN_STATES}


async def _one(visit: Visit) -> Response:
    spider = await visit.store.spiders.get(visit.project, visit.request.path_params["spider"])
    if spider is None:
        raise MissingError
    runs = await spider_runs.last_runs(visit.store, visit.project, spider.number)
    active = JobFilter(spider_id=spider.number, states=(JobState.RUNNING, JobState.PENDING))
    going = await visit.store.jobs.window(visit.project, active, counts=Counts._fields, size=_STRIP)
    return visit.rendered(
        "spider.html",
        spider=spider,
        jobs=await _states(visit, spider.number),
        strip=spider_runs.strip(runs, visit.store.clock()),
        going=spider_runs.strip(going.jobs, visit.store.clock()),
        medians=spider_runs.medians(runs),
        figures=spider_runs.FIGURES,
        charts=spider_runs.figure_charts(runs),
        now=visit.store.clock(),
    )


PAGES: Final = (
    UiPage(_PATH, "spiders", _list, action=Action.RUN),
    UiPage(_PATH + "/{spider:number}", "spiders", _one, action=Action.RUN),
)
LINKS: Final = (Link("spiders", "Spiders", "/ui/{project}/spiders"),)

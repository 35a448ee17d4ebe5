"""``/ui/<project>/spiders/<spider>``: a spider with its last runs. The overview lists the spiders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.jobs import SHOWN_STATES, JobState
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.versions import SpiderInfo
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import Counts
from scrapy_ext.server.ui import spider_runs
from scrapy_ext.server.ui.frame import MissingError, UiPage, Visit

_PATH: Final = "/ui/{project:number}/spiders"
#: Finished runs on one page of their list.
_PER_PAGE: Final = 20
#: Running and pending jobs that are listed.
_ACTIVE: Final = 20


async def _list(visit: Visit) -> Response:
    """Redirect to the overview, which lists the spiders."""
    return visit.redirect(f"/ui/{visit.project}", q=visit.text("q"))


async def _states(visit: Visit, spider: int) -> Mapping[str, int]:
    by_state = await visit.store.jobs.count_by_state(visit.project, JobFilter(spider_id=spider, states=SHOWN_STATES))
    return {state.value: by_state[state] for state in SHOWN_STATES}


async def _one(visit: Visit) -> Response:
    spider = await visit.store.spiders.get(visit.project, visit.request.path_params["spider"])
    if spider is None:
        raise MissingError
    runs = await spider_runs.last_runs(visit.store, visit.project, spider.number)
    last = await visit.store.verdicts.of_job(runs[0].key) if runs else None
    earlier = await spider_runs.earlier_runs(visit.store, runs[0].key, last) if runs else []
    active = JobFilter(spider_id=spider.number, states=(JobState.RUNNING, JobState.PENDING))
    going = await visit.store.jobs.window(visit.project, active, counts=Counts._fields, size=_ACTIVE)
    offset = min(visit.number("offset"), max(len(runs) - 1, 0))
    return visit.rendered(
        "spider.html",
        offset=offset,
        size=_PER_PAGE,
        spider=spider,
        jobs=await _states(visit, spider.number),
        strip=spider_runs.strip(runs, visit.store.clock()),
        going=spider_runs.strip(going.jobs, visit.store.clock()),
        cells=spider_runs.cells,
        medians=spider_runs.medians(earlier),
        earlier=earlier,
        health=await visit.store.verdicts.of_spider(visit.project, spider.number),
        errors=await visit.store.verdicts.errors_of(visit.project, spider.number),
        deployed=await _deployed(visit, spider.name),
        figures=spider_runs.FIGURES,
        charts=spider_runs.figure_charts(runs, earlier),
        now=visit.store.clock(),
    )


async def _deployed(visit: Visit, name: str) -> SpiderInfo | None:
    """Return the spider of the current version with a name."""
    return next((each for each in await visit.store.versions.spiders(visit.project) if each.name == name), None)


PAGES: Final = (
    UiPage(_PATH, "overview", _list, action=Action.RUN),
    UiPage(_PATH + "/{spider:number}", "overview", _one, action=Action.RUN),
)

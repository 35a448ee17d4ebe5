"""``/ui/<project>``: the spiders of a project, those that need somebody first, above them what runs and waits.

The page reads one row a spider, whatever the number of jobs (``store.verdicts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.verdicts import ATTENTION, COMPARED, LEAST, Verdict
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.monitor_queue import MOST_UNJUDGED
from scrapy_ext.server.store.verdicts import Run, SpiderChoice, SpiderHealth
from scrapy_ext.server.ui import charts, shapes
from scrapy_ext.server.ui.frame import Link, UiPage, Visit
from scrapy_ext.server.ui.pending_reason import capacity_of, waiting

_PATH: Final = "/ui/{project:number}"
_PER_PAGE: Final = 50
#: Pending jobs whose reasons for waiting are shown.
_WAITING: Final = 20
#: Choices of the tabs by the value of ``show``.
_CHOICES: Final[Mapping[str, tuple[Verdict, ...]]] = {
    "attention": ATTENTION,
    "red": (Verdict.RED,),
    "amber": (Verdict.AMBER,),
    "green": (Verdict.GREEN,),
    "none": (Verdict.NONE,),
}


class _Row(NamedTuple):
    spider: int
    name: str
    verdict: str
    #: Why it needs somebody, in one line, and the job with it; its number, if it is not the last one.
    reason: str
    job: str | None
    earlier: int | None
    more: int
    error: str
    strip: Markup
    spark: Markup
    median: str
    last: Run | None
    next: int | None
    running: int
    pending: int


async def _show(visit: Visit) -> Response:
    store, project = visit.store, visit.project
    show, text, offset = visit.text("show"), visit.text("q"), min(visit.number("offset"), 10**9)
    total, found = await store.verdicts.worst(project, _PER_PAGE, offset, SpiderChoice(_CHOICES.get(show, ()), text))
    active, planned = await store.jobs.active(project), await store.periodic.next_runs(project)
    counted = (await store.verdicts.counted(project)).get(project, dict.fromkeys(Verdict, 0))
    known = {each.text: counted[each] for each in sorted(Verdict, reverse=True)}
    return visit.rendered(
        "overview.html",
        rows=[_row(visit, each, active.get(each.spider, {}), planned.get(each.name)) for each in found],
        total=total,
        offset=offset,
        size=_PER_PAGE,
        show=show if show in _CHOICES else "",
        text=text,
        counts=known,
        attention=sum(counted[each] for each in ATTENTION),
        unjudged=await store.verdicts.unjudged(project),
        most_unjudged=MOST_UNJUDGED,
        states=await store.jobs.states(project),
        waiting=await _waiting(visit),
        nodes=await store.nodes.listed() if visit.grant.all_projects else [],
        stored=sum(each.bytes for each in (await store.projects.holdings(project)).values()),
        compared=(COMPARED, LEAST),
        now=store.clock(),
    )


def _row(visit: Visit, spider: SpiderHealth, active: Mapping[JobState, int], planned: int | None) -> _Row:
    health, project = spider.health, visit.project
    runs = _drawn(project, spider.spider, tuple(health.runs[::-1]))
    first = health.reasons[0] if health.reasons else None
    number = None if first is None else first.job
    return _Row(
        spider=spider.spider,
        name=spider.name,
        verdict=spider.verdict.text,
        reason=first.reason.sentence if first else "",
        job=str(JobKey(project, spider.spider, number)) if number is not None else None,
        earlier=number if health.runs and number != health.runs[0].job else None,
        more=max(len(health.reasons) - 1, 0),
        error=health.error,
        **runs._asdict(),
        median="–" if health.median_items is None else shapes.number(round(health.median_items)),
        last=health.runs[0] if health.runs else None,
        next=planned,
        running=active.get(JobState.RUNNING, 0),
        pending=active.get(JobState.PENDING, 0),
    )


class _Drawn(NamedTuple):
    """The last runs of a spider as a strip, and their items as a line."""

    strip: Markup
    spark: Markup


@lru_cache(maxsize=1000)
def _drawn(project: int, spider: int, runs: tuple[Run, ...]) -> _Drawn:
    """Draw runs, the oldest first. An open page is refreshed every few seconds, and runs change rarely."""
    items = [run.items for run in runs if run.verdict is not Verdict.NONE]
    return _Drawn(
        charts.strip([_cell(project, spider, run) for run in runs]),
        charts.sparkline("Items of the last runs", items, lambda value: shapes.number(round(value))),
    )


def _cell(project: int, spider: int, run: Run) -> charts.Bar:
    items = f"{shapes.number(run.items)} {shapes.plural(run.items, 'item')}"
    errors = f", {shapes.number(run.error_lines)} {shapes.plural(run.error_lines, 'error')}" if run.error_lines else ""
    text = f"{run.close_reason or 'finished'}, {items}{errors}, {shapes.duration(run.took)}"
    label = f"job {run.job}: {text}, {shapes.minute(run.finished)} UTC"
    return charts.Bar(label, 0, run.verdict.text, f"/ui/{project}/{spider}/{run.job}")


async def _waiting(visit: Visit) -> list[tuple[str, int]]:
    """Return why the next pending jobs wait, with the number of those that do."""
    which = JobFilter(states=(JobState.PENDING,))
    jobs = await visit.store.jobs.listed(visit.project, which, JobPage(_WAITING, oldest_first=True))
    if not jobs:
        return []
    capacity = await capacity_of(visit.store, visit.project)
    reasons = [waiting(job.metadata, capacity) or "about to start" for job in jobs]
    return [(reason, reasons.count(reason)) for reason in dict.fromkeys(reasons)]


PAGES: Final = (UiPage(_PATH, "overview", _show, action=Action.RUN),)
LINKS: Final = (Link("overview", "Overview", "/ui/{project}"),)

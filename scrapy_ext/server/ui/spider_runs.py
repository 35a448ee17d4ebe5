"""The last runs of a spider: their figures, medians, and the change of a job against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from scrapy_ext.api.platform.comparison import median
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.outcomes import Outcome, outcome_of
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import Counts, StoredJob, arguments_of
from scrapy_ext.server.ui import charts, shapes
from scrapy_ext.server.ui.shapes import Summary, elapsed_of, reason_of

#: Runs of a spider that its page shows.
RUNS: Final = 100
#: Runs that the median of a job's overview is about, and the number below which there is none.
_COMPARED: Final = 20
_LEAST: Final = 2


class Figure(NamedTuple):
    """A number of each run, in the given unit. ``is_bad``: more of it is worse."""

    name: str
    title: str
    value: Callable[[StoredJob], float | None]
    unit: Callable[[float], str]
    is_bad: bool = False


def _whole(value: float) -> str:
    return shapes.number(round(value))


FIGURES: Final = (
    Figure("items", "Items", lambda job: job.counts.items, _whole),
    Figure("requests", "Requests", lambda job: job.counts.requests, _whole),
    Figure("errors", "Errors", lambda job: job.counts.errors, _whole, is_bad=True),
    Figure("took", "Duration", lambda job: elapsed_of(job, 0), lambda value: shapes.duration(round(value))),
)


class Comparison(NamedTuple):
    """The median of a figure, and the change of a job against it: ``+12 %``, "" for none."""

    median: str
    change: str
    is_worse: bool


async def last_runs(store: Store, project: int, spider: int, count: int = RUNS) -> list[StoredJob]:
    """Return the last finished runs of a spider with the numbers of their records, newest first."""
    which = JobFilter(spider_id=spider, states=(JobState.FINISHED,))
    return (await store.jobs.window(project, which, counts=Counts._fields, size=count)).jobs


def medians(runs: Sequence[StoredJob]) -> dict[str, str]:
    """Return the median of each figure over the runs that finished well, or over all if none did."""
    good = [run for run in runs if outcome_of(reason_of(run)) is Outcome.OK] or runs
    return {each.name: "–" if (found := _median(each, good)) is None else each.unit(found) for each in FIGURES}


def _median(figure: Figure, runs: Sequence[StoredJob]) -> float | None:
    return median([value for run in runs if (value := figure.value(run)) is not None])


class Earlier(NamedTuple):
    """Earlier good runs of a job's spider; ``same``: those with the job's arguments alone."""

    runs: list[StoredJob]
    same: bool


async def earlier_runs(store: Store, job: StoredJob) -> Earlier:
    """Return the runs that a finished job is compared with: those with its arguments if there are some, else all."""
    which = JobFilter(spider_id=job.key.spider, states=(JobState.FINISHED,), endts=job.changed + 1)
    found = await store.jobs.window(job.key.project, which, counts=Counts._fields, size=3 * _COMPARED)
    runs = [run for run in found.jobs if run.key != job.key and outcome_of(reason_of(run)) is Outcome.OK]
    alike = [run for run in runs if arguments_of(run.metadata) == arguments_of(job.metadata)]
    same = len(alike) >= _LEAST
    return Earlier((alike if same else runs)[:_COMPARED], same)


def compared(job: StoredJob, earlier: Sequence[StoredJob]) -> Mapping[str, Comparison]:
    """Return the change of each figure of a job against the median of earlier runs; nothing for too few runs."""
    if len(earlier) < _LEAST:
        return {}
    found = {}
    for figure in FIGURES:
        value, middle = figure.value(job), _median(figure, earlier)
        if value is None or middle is None:
            continue
        found[figure.name] = Comparison(figure.unit(middle), change_of(middle, value), figure.is_bad and value > middle)
    return found


def change_of(before: float, after: float) -> str:
    """Return a change in per cent: ``+12 %``, ``−3 %``; "" when there is none, ``new`` when there was nothing."""
    if before == after:
        return ""
    if not before:
        return "new"
    percent = round(100 * (after - before) / before)
    if percent > 999:
        return f"{after / before:.0f} times"
    sign = "+" if after > before else "\N{MINUS SIGN}"
    return f"{sign}{abs(percent)} %" if percent else f"{sign}under 1 %"


def strip(runs: Sequence[StoredJob], now: int) -> list[Summary]:
    """Return the runs for a strip, the oldest first."""
    return [shapes.summary(run, now) for run in reversed(runs)]


def figure_charts(runs: Sequence[StoredJob]) -> list[Markup]:
    """Draw items, duration and errors over the runs, the oldest first."""
    ordered = list(reversed(runs))
    return [
        charts.columns(
            f"{figure.title} of the last {len(ordered)} runs",
            [
                charts.Bar(f"{run.key}, {shapes.minute(run.changed)} UTC", figure.value(run) or 0, _class(run))
                for run in ordered
            ],
            figure.unit,
            (shapes.when(ordered[0].changed)[:10], shapes.when(ordered[-1].changed)[:10]),
        )
        for figure in FIGURES
        if figure.name != "requests" and len(ordered) > 1
    ]


def _class(run: StoredJob) -> str:
    outcome = outcome_of(reason_of(run))
    return "" if outcome is Outcome.OK else "bad" if outcome is Outcome.FAILED else "odd"

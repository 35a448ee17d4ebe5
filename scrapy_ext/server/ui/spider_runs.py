"""The last runs of a spider: their figures, medians, and the change of a job against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from scrapy_ext.api.platform.comparison import median
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.verdicts import UNJUDGED, Verdict
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.queries import JobFilter
from scrapy_ext.server.store.jobs.rows import Counts, StoredJob, arguments_of, verdict_of_job
from scrapy_ext.server.store.verdicts import JobVerdict
from scrapy_ext.server.ui import charts, shapes
from scrapy_ext.server.ui.job_summary import Summary, elapsed_of, summary

#: Runs of a spider that its page shows.
RUNS: Final = 100


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


def medians(earlier: Sequence[StoredJob]) -> dict[str, str]:
    """Return the median of each figure over the runs that a job is compared with."""
    return {each.name: "–" if (found := _median(each, earlier)) is None else each.unit(found) for each in FIGURES}


def _median(figure: Figure, runs: Sequence[StoredJob]) -> float | None:
    return median([value for run in runs if (value := figure.value(run)) is not None])


async def run_before(store: Store, job: StoredJob) -> StoredJob | None:
    """Return the last finished run of a spider before a job: that with its arguments, else that with any."""
    end = job.changed + 1 if job.state is JobState.FINISHED else None
    which = JobFilter(spider_id=job.key.spider, states=(JobState.FINISHED,), endts=end)
    found = (await store.jobs.window(job.key.project, which, size=RUNS)).jobs
    runs = [run for run in found if run.key != job.key]
    alike = (run for run in runs if arguments_of(run.metadata) == arguments_of(job.metadata))
    return next(alike, next(iter(runs), None))


async def earlier_runs(store: Store, key: JobKey, verdict: JobVerdict | None) -> list[StoredJob]:
    """Return the runs that a job is compared with, as its verdict does it; none for too few of them."""
    keys = () if verdict is None else await store.verdicts.compared_with(key, verdict)
    if not keys:
        return []
    return (await store.jobs.window(key.project, JobFilter(keys=tuple(keys)), counts=Counts._fields)).jobs


def compared(job: StoredJob, earlier: Sequence[StoredJob]) -> Mapping[str, Comparison]:
    """Return the change of each figure of a job against the median of earlier runs."""
    found = {}
    for figure in FIGURES:
        value, middle = figure.value(job), _median(figure, earlier)
        if value is None or middle is None:
            continue
        found[figure.name] = Comparison(
            figure.unit(middle), shapes.change(middle, value), figure.is_bad and value > middle
        )
    return found


def cells(runs: Sequence[Summary], now: int) -> Markup:
    """Draw the runs of a strip."""
    return charts.strip([charts.Bar(_told(run, now), 0, run.verdict, f"/ui/{run.key}") for run in runs])


def _told(run: Summary, now: int) -> str:
    items = f"{shapes.number(run.counts.items)} {shapes.plural(run.counts.items, 'item')}"
    took, ended = shapes.duration(run.elapsed), shapes.ago(run.changed, now)
    doubt = ", no verdict yet" if run.verdict == UNJUDGED else ""
    return f"{run.key}: {shapes.cell(run.outcome or 'finished')}, {items}, {took}, {ended}{doubt}"


def strip(runs: Sequence[StoredJob], now: int) -> list[Summary]:
    """Return the runs for a strip, the oldest first."""
    return [summary(run, now) for run in reversed(runs)]


def figure_charts(runs: Sequence[StoredJob], earlier: Sequence[StoredJob]) -> list[Markup]:
    """Draw items, duration and errors over the runs, the oldest first, with the medians of those compared with."""
    ordered = list(reversed(runs))
    return [
        charts.columns(
            f"{figure.title} of the last {len(ordered)} runs",
            [
                charts.Bar(
                    f"{run.key}, {shapes.minute(run.changed)} UTC",
                    figure.value(run) or 0,
                    _class(run),
                    f"/ui/{run.key}",
                )
                for run in ordered
            ],
            figure.unit,
            _ends(ordered[0].changed, ordered[-1].changed),
            _median(figure, earlier),
        )
        for figure in FIGURES
        if figure.name != "requests" and len(ordered) > 1
    ]


def _ends(first: int, last: int) -> tuple[str, str]:
    """Return the dates of the first and the last run, of one day with the time."""
    texts = (shapes.minute(first), shapes.minute(last))
    return texts if texts[0][:10] == texts[1][:10] else (texts[0][:10], texts[1][:10])


def _class(run: StoredJob) -> str:
    verdict = verdict_of_job(run)
    return "" if verdict in (Verdict.GREEN, None) else "bad" if verdict is Verdict.RED else "odd"

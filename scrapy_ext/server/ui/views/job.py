"""``/ui/<project>/<spider>/<job>``: the overview of a job, with a form for its tags; below it, ``/stats``."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from scrapy_ext.api.platform.alerts import AlertTarget
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.error_groups import ErrorGroup
from scrapy_ext.api.platform.jobs import CRAWL_STATS, HOSTED_STATS, RUNS, JobState, runs_of
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import refused
from scrapy_ext.server.monitors.evaluating import log_errors
from scrapy_ext.server.store.jobs.rows import Counts, StoredJob, arguments_of, tags_of
from scrapy_ext.server.store.verdicts import JobVerdict
from scrapy_ext.server.ui import shapes, timeline
from scrapy_ext.server.ui.frame import UiPage, Visit
from scrapy_ext.server.ui.job_records import JOB_PARTS, PATH, job_context
from scrapy_ext.server.ui.job_workers import workers_of_job
from scrapy_ext.server.ui.response_charts import last_responses, statuses_chart
from scrapy_ext.server.ui.run_form import tags_of_text
from scrapy_ext.server.ui.spider_runs import compared, earlier_runs

#: Metadata with a place of its own on this page or another.
_PLACED: Final = frozenset(
    ("tags", "spider", "project", "state", "frontier", "waits_since", CRAWL_STATS, HOSTED_STATS, RUNS)
)
#: Fields of a run's row.
_OF_RUN: Final = ("start_time", "finish_time", "items", "responses", "close_reason")
#: Maximum number of item fields listed.
_FIELDS: Final = 100
#: Maximum number of stats on one page; the search finds others.
_MOST_STATS: Final = 2000


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "overview")
    job, store = context["job"], visit.store
    stats = await store.items.stats(visit.key)
    errors = (await store.logs.stats(visit.key)).counts
    # Nothing of a pending job has happened yet.
    pending = job.state is JobState.PENDING
    charts = [] if pending else await _charts(visit, context)
    verdict = await store.verdicts.of_job(visit.key)
    earlier = await earlier_runs(store, visit.key, verdict)
    counted = job._replace(counts=Counts(context["totals"]["items"], context["totals"]["requests"], 0, _wrong(errors)))
    return visit.rendered(
        "job.html",
        **context,
        pending=pending,
        fields=sorted(stats.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_FIELDS],
        total=stats.totals.input_values,
        item_bytes=stats.totals.input_bytes,
        metadata=_plain(job.metadata),
        groups=_groups(job.metadata),
        runs=_runs(job.metadata),
        fed=_fed(visit, job),
        charts=charts,
        workers=await workers_of_job(store, job),
        errors=errors,
        verdict=verdict,
        error_groups=await _error_groups(visit, verdict, _wrong(errors)),
        earlier=earlier,
        compared=compared(counted, earlier),
        monitors=await store.monitors.of_job(visit.key),
        alerted=await _alerted(visit, job) if verdict and verdict.reasons else None,
        now=store.clock(),
    )


class _Alerted(NamedTuple):
    """Names of the monitors that cover the jobs of a spider with these arguments, and of the targets of alerts.

    ``unreached``: those targets whose last message was not accepted.
    """

    monitors: list[str]
    targets: list[str]
    unreached: list[AlertTarget]


async def _alerted(visit: Visit, job: StoredJob) -> _Alerted:
    """Return who is alerted when such a job fails again, by which monitors."""
    tags, args = tags_of(job.metadata), arguments_of(job.metadata)[0]
    monitors = await visit.store.monitors.of_project(visit.project)
    targets = [each for each in await visit.store.alerts.listed(visit.project) if not each.disabled]
    return _Alerted(
        [each.label for each in monitors if each.covers(job.spider, tags, args)],
        [each.name for each in targets],
        [each for each in targets if each.failing_since is not None],
    )


async def _charts(visit: Visit, context: Mapping[str, Any]) -> list[Markup]:
    job, store, total = context["job"], visit.store, context["totals"]["requests"]
    samples = await timeline.samples_of(store, visit.key)
    return [
        await timeline.throughput(store, job, samples),
        timeline.memory(samples),
        timeline.workers(samples),
        statuses_chart(await last_responses(store, visit.key, total), job.metadata, total, f"/ui/{visit.key}/requests"),
    ]


def _wrong(errors: Mapping[str, int]) -> int:
    return errors.get("40", 0) + errors.get("50", 0)


async def _error_groups(visit: Visit, verdict: JobVerdict | None, errors: int) -> Sequence[ErrorGroup]:
    """Return the errors of the log in groups: those stored with the verdict, or of a running job those so far."""
    if not errors:
        return []
    return verdict.errors if verdict is not None else await log_errors(visit.store, visit.key)


class _Fed(NamedTuple):
    """Frontier into which requests for a job are pushed, the path of its page, and the ID of a push."""

    frontier: str
    path: str
    push: str


def _fed(visit: Visit, job: StoredJob) -> _Fed | None:
    """Return the frontier of a crawl that waits for requests, None for any other job."""
    frontier = job.metadata.get("frontier")
    if job.state is not JobState.RUNNING or not visit.may_manage or not isinstance(frontier, str):
        return None
    return _Fed(frontier, f"/ui/{visit.project}/frontiers/{quote(frontier, safe='')}", secrets.token_hex(8))


def _plain(metadata: Mapping[str, Any]) -> list[tuple[str, Any]]:
    plain = {name: value for name, value in metadata.items() if not isinstance(value, dict) and name not in _PLACED}
    return list(shapes.hidden(plain).items())


def _groups(metadata: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the groups of names and values: arguments, settings and others. Values of the environment are hidden."""
    groups = {
        name: shapes.hidden(value)
        for name, value in metadata.items()
        if isinstance(value, dict) and value and name not in _PLACED
    }
    if "environment" in groups:
        groups["environment"] = dict.fromkeys(groups["environment"], shapes.HIDDEN)
    return list(groups.items())


def _runs(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of a job that was resumed; [] for any other."""
    runs = runs_of(metadata)
    if len(runs) < 2:
        return []
    return [{**dict.fromkeys(_OF_RUN), **row, "took": _took(row), "is_lost": is_lost} for row, is_lost in runs]


def _took(row: Mapping[str, Any]) -> int | None:
    first, last = row.get("start_time"), row.get("finish_time")
    return max(last - first, 0) if isinstance(first, int) and isinstance(last, int) else None


async def _head(visit: Visit) -> Response:
    """Render the heading and the tabs alone, which a page of a part refreshes while the part is read."""
    part = visit.text("part")
    return visit.rendered("job_base.html", **await job_context(visit, part if part in JOB_PARTS else "overview"))


async def _tag(visit: Visit) -> Response:
    """Add tags, or remove one."""
    add, remove = tags_of_text(visit.form.get("add") or ""), visit.form.all("remove")
    if not add and not remove:
        raise refused("add", "must have a tag", "Type one tag, or several separated by commas.")
    await visit.store.jobs.tag([visit.key], add, remove)
    await visit.note(ChangeEvents.TAGS_CHANGED, job=str(visit.key), add=list(add), remove=list(remove))
    return visit.redirect(f"/ui/{visit.key}", "tagged")


async def _stats(visit: Visit) -> Response:
    context = await job_context(visit, "stats")
    stats: dict[str, Any] = {}
    for group in (HOSTED_STATS, CRAWL_STATS):
        found = context["job"].metadata.get(group)
        stats |= found if isinstance(found, dict) else {}
    text = visit.text("q")
    chosen = sorted(name for name in stats if text.lower() in name.lower())
    shown = [(name, shapes.stat(name, stats[name])) for name in chosen[:_MOST_STATS]]
    return visit.rendered("stats.html", **context, text=text, stats=shown, found=len(chosen), all=len(stats))


PAGES: Final = (
    UiPage(PATH, "jobs", _show, action=Action.RUN),
    UiPage(PATH + "/head", "jobs", _head, action=Action.RUN),
    UiPage(PATH + "/tags", "jobs", None, _tag, Action.TAG),
    UiPage(PATH + "/stats", "jobs", _stats, action=Action.RUN),
)

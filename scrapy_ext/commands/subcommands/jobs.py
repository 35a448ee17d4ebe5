"""``scrapy platform jobs``, ``job`` and ``stats``: the list of jobs, and one job with its stats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.masking import hidden
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.comparison import changes
from scrapy_ext.api.platform.jobs import (
    CRAWL_STATS,
    GIVEN,
    HOSTED_STATS,
    RUNS,
    JobList,
    JobState,
    JudgedJobs,
    runs_of,
    stats_of,
)
from scrapy_ext.api.platform.verdicts import UNJUDGED
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.platform.workers import WorkerRow
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.commands.options import JOB, argument, paging_options
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.selection import job_named, selected_job
from scrapy_ext.commands.subcommand import CommandError, View, note_shown, platform_command
from scrapy_ext.commands.text import clock_with_zone, counted, length, shown, with_workers

#: Jobs read in one request.
_PAGE: Final = 500
_JOBS: Final = (
    Column.field("id", "job"),
    Column("spider", lambda job: with_workers(str(job.get("spider") or ""), job)),
    Column("state", lambda job: str(job.get("close_reason") or job.get("state") or "")),
    Column("verdict", lambda job: str(job.get("verdict") or "")),
    Column.field("items_scraped", "items", right=True),
    Column.field("responses_received", "responses", right=True),
    Column.field("errors_count", "errors", right=True),
    Column("took", lambda job: length(job.get("elapsed")), right=True),
    Column("started (UTC)", lambda job: str(job.get("started_time") or "")[:16].replace("T", " ")),
    Column("tags", lambda job: ", ".join(map(str, job.get("tags") or ()))),
)
_FIELDS: Final = (Column.field("field"), Column("value", lambda row: str(row["value"]), wrap=True))
#: Counts of the job list, and the run time (ms).
_COUNTS: Final = ("items_scraped", "responses_received", "errors_count", "logs", "elapsed")


async def _list(view: View) -> None:
    options = view.options
    first = await _page(view, options.start, view.output.count(options))
    number = await view.output.records(_records(view, first), _JOBS)
    what = "jobs that need attention in" if view.options.needs_attention else "jobs of"
    await note_shown(view, f"{what} project {view.project}", number, first.total)
    if isinstance(first, JudgedJobs) and first.unjudged:
        await view.output.note(f"{counted(first.unjudged, 'finished job')} not judged yet (verdict: {UNJUDGED})")


async def _page(view: View, offset: int, count: int | None) -> JobList | JudgedJobs:
    """Return a page of jobs, without verdicts from a platform that gives none."""
    options, jobs = view.options, view.client.jobs
    size = _PAGE if count is None else min(_PAGE, count)
    chosen = {"spider": options.spider, "state": options.state, "has_tag": options.tag, "count": size, "offset": offset}
    try:
        return await jobs.judged(view.project, needs_attention=options.needs_attention, **chosen)
    except NotFound:
        if options.needs_attention:
            raise CommandError("this platform gives no verdicts on jobs; leave out --needs-attention") from None
        return await jobs.list(view.project, **chosen)


async def _records(view: View, first: JobList | JudgedJobs) -> AsyncIterator[dict[str, Any]]:
    left, offset, page = view.output.count(view.options), view.options.start, first
    while page.jobs:
        for job in page.jobs:
            yield msgspec.to_builtins(job)
        offset += len(page.jobs)
        left = None if left is None else left - len(page.jobs)
        if left == 0 or offset >= page.total:
            return
        page = await _page(view, offset, left)


async def _show(view: View) -> None:
    key = await selected_job(view)
    metadata = await view.client.jobs.metadata(key)
    jobs = (await view.client.jobs.list(key.project, job=[key])).jobs
    counts = {name: value for name in _COUNTS if jobs and (value := getattr(jobs[0], name)) is not None}
    workers = await _workers(view, key, metadata)
    if view.output.form == "json":
        listed = {"workers": msgspec.to_builtins(workers)} if workers else {}
        await view.show([{"key": str(key), **counts, **metadata, **listed}])
        return
    await view.output.note(f"job {key}")
    rows = [_row(name, length(value) if name == "elapsed" else value) for name, value in counts.items()]
    of_workers = [_row(f"workers.{each.worker}", _worker(each)) for each in workers]
    await view.show([*rows, *of_workers, *_metadata_rows(metadata)], _FIELDS)


async def _workers(view: View, key: JobKey, metadata: Mapping[str, Any]) -> list[WorkerRow]:
    """Return the workers of a running job with several."""
    if JOB_WORKERS not in metadata or metadata.get("state") != JobState.RUNNING.value:
        return []
    try:
        return await view.client.workers.list(key.project, key)
    except NotFound:  # the hosted platform has no such call
        return []


def _worker(row: WorkerRow) -> str:
    counts = row.counts
    where = f"attempt {row.attempt}" + (f" on node {row.node}" if row.node else "")
    busy = "" if row.busy is None else f", busy for {row.busy:.0%} of its time"
    return f"{where}: {counts.items} items, {counts.responses} responses{busy}"


def _metadata_rows(metadata: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the fields, the runs if there are several, then the stats of the crawl one by one."""
    runs = runs_of(metadata)
    fields = {name: value for name, value in metadata.items() if name not in (CRAWL_STATS, HOSTED_STATS, RUNS)}
    fields = {
        name: hidden(value) if name in GIVEN and isinstance(value, dict) else value for name, value in fields.items()
    }
    if len(runs) > 1:
        fields |= {f"runs.{number}": _run(row, is_lost=is_lost) for number, (row, is_lost) in enumerate(runs, 1)}
    for group in (fields, stats_of(metadata)):
        for name, value in sorted(group.items()):
            yield _row(name, value)


def _run(row: Mapping[str, Any], *, is_lost: bool) -> str:
    """Return the row of a run as text: when it began, its counts and its outcome."""
    began = clock_with_zone(row.get("start_time")) or "-"
    counts = ", ".join(f"{shown(row.get(name))} {name}" for name in ("items", "responses"))
    if is_lost:
        return f"{began}: {counts}, lost: no report since {clock_with_zone(row.get('finish_time')) or '-'}"
    return f"{began}: {counts}, {shown(row.get('close_reason') or 'no close reason')}"


def _row(name: str, value: object) -> dict[str, str]:
    return {"field": name, "value": (clock_with_zone(value) if name.endswith("_time") else "") or shown(value)}


async def _show_stats(view: View) -> None:
    first, prefix = await selected_job(view), view.options.prefix
    stats = await _stats(view, first)
    if view.options.other is None:
        rows = [{"stat": name, "value": stats[name]} for name in sorted(stats) if name.startswith(prefix)]
        columns = (Column.field("stat"), Column("value", _stat_value, right=True))
        await view.show(rows, columns, f"{counted(len(rows), 'stat')} of job {first}")
        return
    second = await job_named(view, view.options.other)
    others = await _stats(view, second)
    rows = [
        {"stat": each.name, str(first): each.before, str(second): each.after}
        | ({} if each.difference is None else {"change": each.difference})
        for each in changes(stats, others)
        if each.name.startswith(prefix)
    ]
    of_two = (
        Column.field("stat"),
        *(Column.field(str(key), right=True) for key in (first, second)),
        Column("change", lambda row: f"{row['change']:+.6g}" if row.get("change") else "", right=True),
    )
    await view.show(rows, of_two)


def _stat_value(row: Mapping[str, Any]) -> str:
    """Return a stat as text. The platform stores Scrapy's times in milliseconds."""
    is_time = row["stat"] in ("start_time", "finish_time")
    return (is_time and clock_with_zone(row["value"])) or shown(row["value"])


async def _stats(view: View, key: JobKey) -> Mapping[str, Any]:
    stats = stats_of(await view.client.jobs.metadata(key))
    if not stats:
        raise CommandError(
            f"job {key} has no stats yet; wait for them: a crawl stores them while it runs, and at its end"
        )
    return stats


SUBCOMMANDS: Final = (
    platform_command(
        "jobs",
        _list,
        (
            ("scrapy platform jobs", "the newest jobs"),
            ("scrapy platform jobs --state running --spider news", "the running jobs of a spider"),
            (
                "scrapy platform jobs --needs-attention --count 10",
                "the last that failed, or have errors or few items",
            ),
            ("scrapy platform jobs --json | jq .items_scraped", "for programs: one JSON object per line"),
        ),
        argument(
            "--state",
            action="append",
            choices=[state.value for state in JobState],
            help="only jobs in this state (may be repeated)",
        ),
        argument("--spider", metavar="NAME", help="only jobs of this spider"),
        argument("--tag", metavar="TAG", help="only jobs with this tag"),
        argument("--needs-attention", action="store_true", help="only finished jobs with the verdict red or amber"),
        paging_options("jobs"),
    ),
    platform_command(
        "job",
        _show,
        (
            ("scrapy platform job", "the newest job: its counts, metadata and stats"),
            ("scrapy platform job 1/2/3", "a job by its key"),
            ("scrapy platform job 3 --json", "a job by its number, as JSON"),
        ),
        JOB,
    ),
    platform_command(
        "stats",
        _show_stats,
        (
            ("scrapy platform stats", "the stats of the newest job"),
            ("scrapy platform stats 1/2/3 1/2/4", "the stats of two jobs side by side, with their difference"),
            ("scrapy platform stats 1/2/3 --prefix downloader/", "the stats of one component"),
        ),
        JOB,
        argument("other", nargs="?", metavar="OTHER", help="a second job to compare with"),
        argument("--prefix", default="", metavar="TEXT", help="only stats whose name begins with TEXT"),
    ),
)

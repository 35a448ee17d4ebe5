"""``scrapy platform jobs``, ``job`` and ``stats``: the list of jobs, and one job with its stats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.jobs import CRAWL_STATS, JobList, JobState
from scrapy_ext.commands.options import JOB, argument, paging_options, view_options
from scrapy_ext.commands.selection import job_named, selected_job
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, note_shown, with_platform
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock_with_zone, counted, length, shown

#: Jobs read in one request.
_PAGE: Final = 500
_JOBS: Final = (
    Column.field("id", "job"),
    Column.field("spider"),
    Column("state", lambda job: str(job.get("close_reason") or job.get("state") or "")),
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
    await note_shown(view, f"jobs of project {view.project}", number, first.total)


async def _page(view: View, offset: int, count: int | None) -> JobList:
    options = view.options
    size = _PAGE if count is None else min(_PAGE, count)
    return await view.client.jobs.list(
        view.project, spider=options.spider, state=options.state, has_tag=options.tag, count=size, offset=offset
    )


async def _records(view: View, first: JobList) -> AsyncIterator[dict[str, Any]]:
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
    if view.output.form == "json":
        await view.output.records(each_of([{"key": str(key), **counts, **metadata}]))
        return
    await view.output.note(f"job {key}")
    rows = [_row(name, length(value) if name == "elapsed" else value) for name, value in counts.items()]
    await view.output.records(each_of([*rows, *_metadata_rows(metadata)]), _FIELDS)


def _metadata_rows(metadata: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the fields, then the stats of the crawl one by one."""
    stats = metadata.get(CRAWL_STATS)
    fields = {name: value for name, value in metadata.items() if name != CRAWL_STATS}
    for group in (fields, stats if isinstance(stats, dict) else {}):
        for name, value in sorted(group.items()):
            yield _row(name, value)


def _row(name: str, value: Any) -> dict[str, str]:
    return {"field": name, "value": (clock_with_zone(value) if name.endswith("_time") else "") or shown(value)}


async def _show_stats(view: View) -> None:
    first, prefix = await selected_job(view), view.options.prefix
    stats = await _stats(view, first)
    if view.options.other is None:
        rows = [{"stat": name, "value": stats[name]} for name in sorted(stats) if name.startswith(prefix)]
        columns = (Column.field("stat"), Column("value", _stat_value, right=True))
        await view.output.records(each_of(rows), columns)
        await view.output.note(f"{counted(len(rows), 'stat')} of job {first}")
        return
    second = await job_named(view, view.options.other)
    others = await _stats(view, second)
    rows = [
        {"stat": name, str(first): stats.get(name), str(second): others.get(name), **_change(name, stats, others)}
        for name in sorted({*stats, *others})
        if name.startswith(prefix)
    ]
    of_two = (
        Column.field("stat"),
        *(Column.field(str(key), right=True) for key in (first, second)),
        Column("change", lambda row: f"{row['change']:+.6g}" if row.get("change") else "", right=True),
    )
    await view.output.records(each_of(rows), of_two)


def _stat_value(row: Mapping[str, Any]) -> str:
    """Return a stat as text. The platform stores Scrapy's times in milliseconds."""
    is_time = row["stat"] in ("start_time", "finish_time")
    return (is_time and clock_with_zone(row["value"])) or shown(row["value"])


async def _stats(view: View, key: JobKey) -> Mapping[str, Any]:
    stats = (await view.client.jobs.metadata(key)).get(CRAWL_STATS)
    if not isinstance(stats, dict) or not stats:
        raise CommandError(f"job {key} has no stats yet; a crawl stores them while it runs, and at its end")
    return stats


def _change(name: str, stats: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, float]:
    """Return the difference of two numbers, nothing for other values. A missing stat counts as 0."""
    before, after = stats.get(name, 0), others.get(name, 0)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    return {"change": after - before} if numbers else {}


SUBCOMMANDS: Final = (
    Subcommand(
        name="jobs",
        examples=(
            ("scrapy platform jobs", "the newest jobs"),
            ("scrapy platform jobs --state running --spider news", "the running jobs of a spider"),
            ("scrapy platform jobs --json | jq .items_scraped", "for programs: one JSON object per line"),
        ),
        arguments=(
            argument(
                "--state",
                action="append",
                choices=[state.value for state in JobState],
                help="only jobs in this state (may be repeated)",
            ),
            argument("--spider", metavar="NAME", help="only jobs of this spider"),
            argument("--tag", metavar="TAG", help="only jobs with this tag"),
            paging_options("jobs"),
            view_options(),
        ),
        run=with_platform(_list),
    ),
    Subcommand(
        name="job",
        examples=(
            ("scrapy platform job", "the newest job: its counts, metadata and stats"),
            ("scrapy platform job 1/2/3", "a job by its key"),
            ("scrapy platform job 3 --json", "a job by its number, as JSON"),
        ),
        arguments=(JOB, view_options()),
        run=with_platform(_show),
    ),
    Subcommand(
        name="stats",
        examples=(
            ("scrapy platform stats", "the stats of the newest job"),
            ("scrapy platform stats 1/2/3 1/2/4", "the stats of two jobs side by side, with their difference"),
            ("scrapy platform stats 1/2/3 --prefix downloader/", "the stats of one component"),
        ),
        arguments=(
            JOB,
            argument("other", nargs="?", metavar="OTHER", help="a second job to compare with"),
            argument("--prefix", default="", metavar="TEXT", help="only stats whose name begins with TEXT"),
            view_options(),
        ),
        run=with_platform(_show_stats),
    ),
)

"""Tools about the figures of jobs: fields of items, and the comparison of two jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from scrapy_ext.api.platform.comparison import Change, changes
from scrapy_ext.api.platform.jobs import JudgedJob, stats_of
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.records import Stats
from scrapy_ext.server.mcp.results import Result, object_result
from scrapy_ext.server.mcp.services import ApiCall, Services, decoded, path_of
from scrapy_ext.server.mcp.tool import Bounded, Tools
from scrapy_ext.server.mcp.tools.jobs import OfJob, listed_job

TOOLS: Final = Tools()

_FIGURES: Final = (
    "spider", "state", "close_reason", "verdict", "elapsed", "items_scraped", "responses_received", "errors_count",
)  # fmt: skip
_ARGUMENTS: Final = "spider_args"
_JOB_PATTERN: Final = r"^[0-9]{1,19}/[0-9]{1,19}/[0-9]{1,19}$"


@TOOLS.add(
    "get_item_stats",
    "Count the fields of items",
    "Return the number of items of a job and their bytes (totals), and the number of items that have each field "
    "(counts). The stats of the crawl are in get_job.",
    OfJob,
    idempotent=True,
)
async def _get_item_stats(services: Services, arguments: OfJob) -> Result:
    key = JobKey.parse(arguments.job)
    await listed_job(services, key)
    return object_result(await _item_stats(services, key), arguments.cursor, arguments.max_bytes)


async def _item_stats(services: Services, key: JobKey) -> Stats:
    return decoded(await services.call(ApiCall(path=path_of("items", *key, "stats"))), Stats)


class CompareJobs(Bounded, frozen=True, kw_only=True):
    before: Annotated[str, Meta(pattern=_JOB_PATTERN, description="Key of the earlier job: PROJECT/SPIDER/NUMBER.")]
    after: Annotated[str, Meta(pattern=_JOB_PATTERN, description="Key of the later job.")]


@TOOLS.add(
    "compare_jobs",
    "Compare two jobs",
    "Compare two jobs: their figures; whether their arguments are equal; the stats of the crawl that differ; and the "
    "fields whose share of the items (per cent) differs. before and after are of the two jobs, null without a value.",
    CompareJobs,
    idempotent=True,
)
async def _compare_jobs(services: Services, arguments: CompareJobs) -> Result:
    keys = [JobKey.parse(arguments.before), JobKey.parse(arguments.after)]
    figures = [_figures(await listed_job(services, key)) for key in keys]
    metadata = [decoded(await services.call(ApiCall(path=path_of("jobs", *key))), dict[str, Any]) for key in keys]
    shares = [_shares(await _item_stats(services, key)) for key in keys]
    compared = {
        "figures": {change.name: _values(change) for change in changes(*figures)},
        "equal_arguments": metadata[0].get(_ARGUMENTS) == metadata[1].get(_ARGUMENTS),
        "stats": _differing(*(stats_of(each) for each in metadata)),
        "fields": _differing(*shares),
    }
    return object_result(compared, arguments.cursor, arguments.max_bytes)


def _figures(job: JudgedJob) -> dict[str, Any]:
    return {name: getattr(job, name, None) for name in _FIGURES}


def _shares(stats: Stats) -> dict[str, float]:
    total = stats.totals.input_values
    return {name: round(100 * count / total, 2) for name, count in stats.counts.items()} if total else {}


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {change.name: _values(change) for change in changes(before, after) if not change.is_same}


def _values(change: Change) -> dict[str, Any]:
    return {"before": change.before, "after": change.after}

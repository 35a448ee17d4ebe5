"""Tools about jobs: list, follow, run and stop them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from scrapy_ext.api.masking import hidden
from scrapy_ext.api.platform.jobs import (
    GIVEN,
    MAX_NAME,
    MAX_PRIORITY,
    MIN_PRIORITY,
    RUN_PARAMETERS,
    JobState,
    JudgedJob,
    JudgedJobs,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.mcp.results import Result, numbered, object_result, offset_of, records_result
from scrapy_ext.server.mcp.services import (
    FORM,
    JSON_LINES,
    ApiCall,
    ApiError,
    Need,
    Services,
    decoded,
    decoded_json,
    lines_of,
    pairs,
    path_of,
)
from scrapy_ext.server.mcp.tool import Arguments, Bounded, Job, Listing, Project, Tools

TOOLS: Final = Tools()

#: Errors of a job's log in its details, and characters of each.
_ERRORS: Final = 10
_ERROR_CHARACTERS: Final = 2000
#: Characters of them from the beginning; the others are from the end.
_ERROR_BEGINNING: Final = 500
#: Levels of log records as in Python's ``logging``.
_ERROR_LEVEL: Final = 40
#: Seconds between two polls of a job: the first, and the longest.
_FIRST_POLL: Final = 0.25
_LONGEST_POLL: Final = 2.0
#: Seconds of a wait.
LONGEST_WAIT: Final = 60

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Spider = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, description="Name of a spider of the project.")]
SpiderArguments = Annotated[
    dict[str, str], Meta(max_length=100, description='Arguments of the spider, such as {"category": "books"}.')
]
Tags = Annotated[list[Name], Meta(max_length=20, description="Tags of the job.")]


class ListJobs(Listing, frozen=True, kw_only=True):
    project: Project
    spider: Annotated[str, Meta(max_length=MAX_NAME, description="Only jobs of this spider.")] | None = None
    state: Annotated[Literal["pending", "running", "finished"] | None, Meta(description="Only jobs in this state.")] = (
        None
    )
    tag: Annotated[str, Meta(max_length=MAX_NAME, description="Only jobs with this tag.")] | None = None
    needs_attention: Annotated[bool, Meta(description="Only finished jobs with the verdict red or amber.")] = False


@TOOLS.add(
    "list_jobs",
    "List jobs",
    "List the jobs of a project, the newest first: id (key of the job), spider, state, close_reason (why it ended), "
    "numbers of items, responses and errors. A finished job has a verdict (red: it failed; amber: it has errors or few "
    "items; green; none: it was cancelled; unjudged: not known yet), its reasons, and its most frequent error. elapsed "
    "is in milliseconds; times are UTC.",
    ListJobs,
    idempotent=True,
)
async def _list_jobs(services: Services, arguments: ListJobs) -> Result:
    start = offset_of(arguments.cursor)
    query = pairs(
        ("spider", arguments.spider),
        ("state", arguments.state),
        ("has_tag", arguments.tag),
        ("count", arguments.limit),
        ("offset", start),
    )
    found = await _judged(services, arguments.project, query, needs_attention=arguments.needs_attention)
    more = start + len(found.jobs) < found.total
    return records_result(numbered(found.jobs, start), arguments.max_bytes, {"total": found.total}, more=more)


async def _judged(
    services: Services, project: int, query: tuple[tuple[str, str], ...], *, needs_attention: bool = False
) -> JudgedJobs:
    """Return jobs with their verdicts; from a platform that gives none, without."""
    chosen = (("needs_attention", "1"),) if needs_attention else ()
    try:
        answer = await services.call(
            ApiCall(path=path_of("api", "projects", project, "verdicts"), query=query + chosen)
        )
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND or needs_attention:
            raise
        listed = (("project", str(project)), *query)
        answer = await services.call(ApiCall(path="/api/jobs/list.json", query=listed))
    return decoded(answer, JudgedJobs)


class OfJob(Bounded, frozen=True, kw_only=True):
    job: Job


@TOOLS.add(
    "get_job",
    "Show a job",
    "Return the state of a job with its metadata, the stats of its crawl, and the first errors of its log. Durations "
    "are in milliseconds, times in milliseconds since 1970 or UTC.",
    OfJob,
    idempotent=True,
)
async def _get_job(services: Services, arguments: OfJob) -> Result:
    key = JobKey.parse(arguments.job)
    listed = await listed_job(services, key)
    metadata = decoded(await services.call(ApiCall(path=path_of("jobs", *key))), dict[str, Any])
    errors = await _errors(services, key) if listed.errors_count else []
    shown = {
        name: hidden(value) if name in GIVEN and isinstance(value, dict) else value for name, value in metadata.items()
    }
    details = {"job": listed, "metadata": shown, "errors": errors}
    facts = {"errors_count": listed.errors_count, "errors_shown": len(errors)}
    return object_result(details, arguments.cursor, arguments.max_bytes, facts)


async def _errors(services: Services, key: JobKey) -> list[dict[str, Any]]:
    query = pairs(("filter", f'["level",">=",[{_ERROR_LEVEL}]]'), ("count", _ERRORS))
    answer = await services.call(ApiCall(path=path_of("logs", *key), query=query, accept=JSON_LINES))
    errors: list[dict[str, Any]] = [decoded_json(line, dict[str, Any]) for line in lines_of(answer)]
    for error in errors:
        message = error.get("message")
        if isinstance(message, str) and len(message) > _ERROR_CHARACTERS:
            left = len(message) - _ERROR_CHARACTERS
            # The first line says what was processed, the last ones of a traceback which error it was, and where.
            error["message"] = f"{message[:_ERROR_BEGINNING]}\n[…]\n{message[_ERROR_BEGINNING - _ERROR_CHARACTERS :]}"
            error["cut"] = f"{left} characters at […] of the message are left out; list_log has them"
    return errors


async def listed_job(services: Services, key: JobKey) -> JudgedJob:
    """Return the state and numbers of a job; raises :class:`ApiError` (404)."""
    found = await _judged(services, key.project, pairs(("job", str(key))))
    if not found.jobs:
        raise ApiError(f"There is no job {key}. Use list_jobs to find one.", 404)
    return found.jobs[0]


class WaitForJob(Arguments, frozen=True, kw_only=True):
    job: Job
    seconds: Annotated[int, Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait at most; 0 returns at once.")] = 30


@TOOLS.add(
    "wait_for_job",
    "Wait for a job",
    "Wait until a job has finished, for a limited time, and return its state and numbers so far. Call it again while "
    "the fact finished is false.",
    WaitForJob,
    idempotent=True,
)
async def _wait_for_job(services: Services, arguments: WaitForJob) -> Result:
    key, end = JobKey.parse(arguments.job), time.monotonic() + arguments.seconds
    found = await listed_job(services, key)
    poll = _FIRST_POLL
    facts: dict[str, str] = {}
    while not _is_over(found) and (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(poll, left))
        poll = min(2 * poll, _LONGEST_POLL)
        try:
            found = await listed_job(services, key)
        except ApiError as error:
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                # A server that is shutting down waits for this call, and never answers another poll.
                facts["note"] = "The platform is busy or shutting down. Call this again in some seconds."
                break
            if error.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise
    return object_result(found, None, _WAIT_BYTES, {"finished": _is_over(found), **facts})


#: Bytes of the state of one job.
_WAIT_BYTES: Final = 16 * 1024


def _is_over(job: JudgedJob) -> bool:
    return job.state in (JobState.FINISHED.value, JobState.DELETED.value)


class RunSpider(Arguments, frozen=True, kw_only=True):
    project: Project
    spider: Spider
    arguments: SpiderArguments = msgspec.field(default_factory=dict)
    tags: Tags = msgspec.field(default_factory=list)
    priority: (
        Annotated[int, Meta(ge=MIN_PRIORITY, le=MAX_PRIORITY, description="0 (last) to 4 (first); 2 by default.")]
        | None
    ) = None
    max_items: Annotated[int, Meta(ge=1, description="End the crawl after so many items.")] | None = None
    max_seconds: Annotated[int, Meta(ge=1, description="End the crawl after so many seconds.")] | None = None


@TOOLS.add(
    "run_spider",
    "Run a spider",
    "Schedule a job of a spider and return its key. It starts when a node is free; follow it with wait_for_job.",
    RunSpider,
    Need.RUN,
    open_world=True,
)
async def _run_spider(services: Services, arguments: RunSpider) -> Result:
    check_arguments(arguments.arguments)
    limits = {"CLOSESPIDER_ITEMCOUNT": arguments.max_items, "CLOSESPIDER_TIMEOUT": arguments.max_seconds}
    settings = {name: value for name, value in limits.items() if value is not None}
    answer = await _send(
        services,
        "/api/run.json",
        ("project", arguments.project),
        ("spider", arguments.spider),
        ("priority", arguments.priority),
        ("add_tag", arguments.tags),
        ("job_settings", msgspec.json.encode(settings).decode() if settings else None),
        *arguments.arguments.items(),
    )
    return Result({"job": str(JobKey.parse(str(answer.get("jobid"))))})


def check_arguments(arguments: Mapping[str, str]) -> None:
    """Raise ``ContractError`` for spider arguments with names that the platform uses itself."""
    if taken := [name for name in arguments if name in RUN_PARAMETERS]:
        raise ContractError(
            Violation(f"arguments.{name}", "cannot be the name of a spider argument", "Rename it.") for name in taken
        )


class StopJob(Arguments, frozen=True, kw_only=True):
    job: Job


@TOOLS.add(
    "stop_job",
    "Stop a job",
    "Stop a pending or running job. A running crawl ends in an orderly way and keeps what it has stored: follow it "
    "with wait_for_job. The fact stopping is false for a job that has finished.",
    StopJob,
    Need.RUN,
    destructive=True,
    idempotent=True,
)
async def _stop_job(services: Services, arguments: StopJob) -> Result:
    key = JobKey.parse(arguments.job)
    if _is_over(await listed_job(services, key)):
        return Result({"job": str(key), "stopping": False, "finished": True})
    await _send(services, "/api/jobs/stop.json", ("project", key.project), ("job", str(key)))
    return Result({"job": str(key), "stopping": True})


async def _send(services: Services, path: str, *fields: tuple[str, str | int | Iterable[str] | None]) -> dict[str, Any]:
    body = urlencode(pairs(*fields)).encode()
    answer = decoded(await services.call(ApiCall(method="POST", path=path, body=body, kind=FORM)), dict[str, Any])
    if answer.get("status", "ok") != "ok":
        raise ApiError(str(answer.get("message", answer["status"])), 400)
    return answer

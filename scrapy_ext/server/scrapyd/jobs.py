"""Calls of Scrapyd's API about jobs: ``schedule.json``, ``listjobs.json``, ``cancel.json`` and the others."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from functools import partial
from typing import Any, Final

from scrapy_ext.api.masking import hidden
from scrapy_ext.api.platform.jobs import (
    CHOSEN_ID_TAG,
    CHOSEN_ID_VARIABLE,
    DEFAULT_PRIORITY,
    MAX_PRIORITY,
    MIN_PRIORITY,
    SHOWN_STATES,
    JobState,
)
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import Form, check_job, check_name
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.runnable import check_local_spider
from scrapy_ext.server.platform.jobs import WORKERS
from scrapy_ext.server.platform.versions import environments_of
from scrapy_ext.server.scrapyd.envelope import ANY_PROJECT, Fields, asked, form_of, posted, service
from scrapy_ext.server.scrapyd.naming import JOB_ID, Projects, id_of, jobs_of
from scrapy_ext.server.scrapyd.versions import check_version
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob

ROUTES: Final = Routes(tag="scrapyd")
_service = partial(service, ROUTES)

#: Maximum jobs of each state in an answer; of finished ones, Scrapyd keeps as many by default.
MOST_ACTIVE: Final = 1000
MOST_FINISHED: Final = 100
#: Fields of ``schedule.json`` that are no arguments of the spider.
_FIELDS: Final = ("project", "spider", "_version", "jobid", "priority", "setting", JOB_WORKERS, "apikey")


@_service("GET /daemonstatus.json", "Count pending, running and finished jobs.")
async def _daemon_status(call: Call) -> Fields:
    call.may_read(0)
    counts = await call.store.jobs.states_of_all()
    return {
        state.value: sum(of[state] for project, of in counts.items() if call.may_read(project))
        for state in SHOWN_STATES
    }


@_service(
    "POST /schedule.json",
    "Schedule a job. Other fields are arguments of the spider.",
    body=form_of(
        "spider",
        spider=schemas.NAME,
        _version=schemas.STRING,
        jobid=schemas.STRING,
        priority={"type": "number"},
        setting=schemas.STRINGS,
        job_workers=WORKERS,
    ),
    action=Action.RUN,
)
async def _schedule(call: Call) -> Fields:
    form, _, project = await posted(call, "spider")
    spider, version = form.get("spider") or "", form.get("_version")
    check_name("spider", spider)
    metadata = _metadata(form)
    if version is not None:
        await check_version(call, project, version)
        metadata["version"] = version
    await _check_spider(call, project, spider, version)
    check_job(spider, metadata)
    # Scrapyd runs the same spider with the same arguments as often as it is asked to.
    (added,) = await call.store.jobs.add(project, [NewJob(spider, JobState.PENDING, metadata)], call.who)
    assert not isinstance(added, DuplicateJobError)  # noqa: S101 - it has no key that could be taken
    call.wrote(1)
    return {"jobid": metadata["environment"][CHOSEN_ID_VARIABLE]}


def _metadata(form: Form) -> Fields:
    job_id = form.get("jobid") or uuid.uuid4().hex
    if not JOB_ID.fullmatch(job_id):
        raise refused("jobid", "must be 1 to 120 letters, digits or characters of ._:+-", "Choose another ID.")
    metadata: Fields = {
        "spider_type": "manual",
        "priority": _priority(form.get("priority")),
        "tags": [CHOSEN_ID_TAG + job_id],
        # Not an argument: spiders need not take it, and runs with the same arguments stay comparable.
        "environment": {CHOSEN_ID_VARIABLE: job_id},
    }
    # Of a repeated argument, Scrapyd passes the first.
    if arguments := {name: value for name, value in reversed(form.fields) if name not in _FIELDS}:
        metadata["spider_args"] = dict(reversed(arguments.items()))
    if workers := form.get(JOB_WORKERS):
        metadata[JOB_WORKERS] = workers
    if settings := [each.partition("=") for each in form.all("setting")]:
        for name, equals, _ in settings:
            if not (name and equals):
                raise refused("setting", f"must be NAME=VALUE, got {name[:60]!r}", "Write setting=DOWNLOAD_DELAY=2.")
        metadata["job_settings"] = {name: value for name, _, value in settings}
    return metadata


def _priority(text: str | None) -> int:
    """Return the priority here, 0 to 4, of one of Scrapyd, any number with 0 as the default."""
    try:
        number = float(text or 0)
        return max(MIN_PRIORITY, min(MAX_PRIORITY, round(DEFAULT_PRIORITY + number)))
    except (ValueError, OverflowError):
        raise refused("priority", f"must be a number, got {(text or '')[:60]!r}", "Send 0, or 1 for earlier.") from None


async def _check_spider(call: Call, project: int, spider: str, version: str | None) -> None:
    names = await call.store.versions.refuses(project, spider, version)
    if names is not None:
        raise refused("spider", f"{spider[:60]!r} was not found", "GET /listspiders.json lists the spiders.")
    if (environments := environments_of(call)) is not None:
        await check_local_spider(call.store, environments, project, spider)


@_service(
    "GET /status.json",
    "Read the state of a job.",
    schemas.Parameter("job", "its ID", schemas.STRING, required=True),
    ANY_PROJECT,
)
async def _status(call: Call) -> Fields:
    job_id, projects = asked(call, "job"), await Projects.of(call)
    name = call.query.get("project")
    for project in projects.numbers if name is None else [projects.find(call, name)]:
        if found := await jobs_of(call, project, job_id):
            return {"currstate": found[0].state.value}
    return {"currstate": None}


@_service("GET /listjobs.json", "List pending, running and the last finished jobs.", ANY_PROJECT)
async def _list_jobs(call: Call) -> Fields:
    projects, name = await Projects.of(call), call.query.get("project")
    wanted = projects.numbers if name is None else [projects.find(call, name)]
    return {
        state.value: [_listed(projects.name(job.key.project), job) for job in await listed(call, wanted, state)]
        for state in SHOWN_STATES
    }


async def listed(call: Call, projects: list[int], state: JobState) -> list[StoredJob]:
    """Return the last jobs of projects in a state: pending and running ones by their start, finished ones the newest
    first; with the numbers of their records."""
    most = MOST_FINISHED if state is JobState.FINISHED else MOST_ACTIVE
    found: list[StoredJob] = []
    counts = await call.store.jobs.states_of_all() if len(projects) > 1 else None
    for project in projects:
        if counts is not None and not (project in counts and counts[project][state]):
            continue  # of a thousand projects, most have no active job
        found += await call.store.jobs.listed(project, JobFilter(states=(state,)), JobPage(most), counts=True)
    found.sort(key=lambda job: job.changed, reverse=state is JobState.FINISHED)
    return found[:most]


def _listed(project: str, job: StoredJob) -> Fields:
    fields: Fields = {"id": id_of(job), "project": project, "spider": job.spider}
    metadata = job.metadata
    if job.state is JobState.PENDING:
        return {
            **fields,
            "version": metadata.get("version"),
            "settings": _masked(metadata.get("job_settings")),
            "args": _masked(metadata.get("spider_args")),
        }
    # The process of a job may be on another machine.
    fields |= {"pid": None} if job.state is JobState.RUNNING else {"end_time": time_of(job, "finished_time")}
    return {**fields, "start_time": time_of(job, "running_time"), **files_of(project, job)}


def _masked(values: object) -> Any:
    return hidden(values) if isinstance(values, dict) else values or {}


def time_of(job: StoredJob, name: str) -> str:
    """Return a time of a job in the form of Scrapyd; "" for none."""
    return utc_time(job.metadata.get(name))


def utc_time(value: object) -> str:
    """Return a time (ms) in UTC without fractions of a second; "" for a value that is none, as clients may write."""
    if not isinstance(value, int | float):
        return ""
    try:
        return datetime.fromtimestamp(value // 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return ""


def files_of(project: str, job: StoredJob) -> dict[str, str | None]:
    """Return the addresses of the log and the items of a job, None for what it does not have."""
    stem = f"{project}/{job.spider}/{id_of(job)}"
    return {
        "log_url": f"/logs/{stem}.log" if job.counts.logs else None,
        "items_url": f"/items/{stem}.jl" if job.counts.items else None,
    }


@_service(
    "POST /cancel.json",
    "Cancel a job.",
    body=form_of("job", job=schemas.STRING, signal=schemas.STRING),
    action=Action.RUN,
)
async def _cancel(call: Call) -> Fields:
    form, _, project = await posted(call, "job")
    found = await jobs_of(call, project, form.get("job") or "")
    active = [job for job in found if job.state in (JobState.PENDING, JobState.RUNNING)]
    states = await call.store.jobs.cancel(project, [job.key for job in active], call.who)
    before = next((state.value for state in states if state is not None), None)
    return {"prevstate": before}

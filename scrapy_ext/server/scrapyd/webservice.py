"""The calls of Scrapyd's API: ``schedule.json``, ``listjobs.json``, ``addversion.json`` and the others.

As in Scrapyd, an answer has ``node_name`` and ``status``, and a call that cannot be done is answered with 200,
``"status": "error"`` and a ``message``. Keys are those of the platform. Times are UTC.
"""

from __future__ import annotations

import functools
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timezone
from typing import Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from scrapy_ext.api.masking import hidden
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.jobs import (
    CHOSEN_ID_TAG,
    CHOSEN_ID_VARIABLE,
    DEFAULT_PRIORITY,
    MAX_PRIORITY,
    MIN_PRIORITY,
    SCRIPT,
    SHOWN_STATES,
    JobState,
)
from scrapy_ext.api.platform.keys import is_number
from scrapy_ext.api.platform.projects import name_of_project
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.versions import VersionState
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.deploying import Deploys, Upload, received
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import JSON, Refusal, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import Form, check_job, check_name
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.runnable import check_local_spider
from scrapy_ext.server.platform.jobs import WORKERS
from scrapy_ext.server.platform.spiders import spiders_of
from scrapy_ext.server.platform.versions import SILENCE, environments_of, take
from scrapy_ext.server.scrapyd.naming import JOB_ID, Projects, id_of, jobs_of
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob
from scrapy_ext.server.store.version_rows import StoredVersion
from scrapy_ext.server.store.versions import InUseError

#: Maximum jobs of each state in an answer; of finished ones, Scrapyd keeps as many by default.
MOST_ACTIVE: Final = 1000
MOST_FINISHED: Final = 100
#: Fields of ``schedule.json`` that are no arguments of the spider.
_FIELDS: Final = ("project", "spider", "_version", "jobid", "priority", "setting", JOB_WORKERS, "apikey")
#: Statuses of refusals that Scrapyd answers with 200.
_AS_ERROR: Final = (400, 404, 409, 410, 413, 422)
_NODE: Final = socket.gethostname()

Fields = dict[str, Any]

ROUTES: Final = Routes(tag="scrapyd")

_PROJECT: Final = schemas.Parameter("project", "name or number of the project", schemas.STRING, required=True)
_ANY_PROJECT: Final = schemas.Parameter("project", "only this project: its name or number", schemas.STRING)
_VERSION: Final = schemas.Parameter("_version", "the version; default: the current one", schemas.STRING)
_ENVELOPE: Final[schemas.Schema] = {"node_name": schemas.STRING, "status": {"enum": ["ok", "error"]}}


def _service(
    call: str,
    summary: str,
    *parameters: schemas.Parameter,
    body: schemas.Body | None = None,
    action: Action | None = None,
    event: str = "",
) -> Callable[[Callable[[Call], Awaitable[Fields]]], Callable[[Call], Awaitable[Response]]]:
    """Declare a call whose handler returns the fields of the answer beside the envelope."""
    shape = schemas.record({**_ENVELOPE, "message": schemas.STRING}, "node_name", "status")

    def declare(handler: Callable[[Call], Awaitable[Fields]]) -> Callable[[Call], Awaitable[Response]]:
        @functools.wraps(handler)
        async def answer(call: Call) -> Response:
            try:
                return json(_ok(await handler(call)))
            except (ContractError, Refusal) as error:
                return _failed(call, error)

        declared = ROUTES.add(
            call,
            f"{summary} As in Scrapyd's API.",
            schemas.value("The result.", shape),
            parameters=parameters,
            body=body,
            action=action,
            event=event,
        )
        return declared(answer)

    return declare


def _ok(fields: Fields) -> Fields:
    return {"node_name": _NODE, "status": "ok", **fields}


def _failed(call: Call, error: ContractError | Refusal) -> Response:
    """Return the answer to a call that cannot be done; raise what concerns the key or the server."""
    # Of several versions, some may have been removed before the one that stays.
    call.has_failed = not call.noted.get("versions")
    if error.status not in _AS_ERROR:
        raise error
    message = "; ".join(map(str, error.violations)) if isinstance(error, ContractError) else error.message
    return json({"node_name": _NODE, "status": "error", "message": message})


def _form(*required: str, **fields: schemas.Schema) -> schemas.Body:
    return schemas.Body(schemas.FORM, schemas.record({"project": schemas.STRING, **fields}, "project", *required))


async def _posted(call: Call, *required: str) -> tuple[Form, Projects, int]:
    """Return the form of a call, the projects, and the project that it names."""
    form = Form([*await call.form(), *call.query.items()])
    for name in ("project", *required):
        if form.get(name) is None:
            raise _missing(name)
    projects = await Projects.of(call)
    return form, projects, projects.find(call, form.get("project") or "")


def _asked(call: Call, name: str) -> str:
    text = call.query.get(name)
    if text is None:
        raise _missing(name)
    return text


def _missing(name: str) -> ContractError:
    return refused(name, "is required", "Send this parameter.")


# ── the server and its projects ──


@_service("GET /daemonstatus.json", "Count pending, running and finished jobs.")
async def _daemon_status(call: Call) -> Fields:
    call.may_read(0)
    counts = await call.store.jobs.states_of_all()
    return {
        state.value: sum(of[state] for project, of in counts.items() if call.may_read(project))
        for state in SHOWN_STATES
    }


@_service("GET /listprojects.json", "List the projects with a version or with jobs.")
async def _list_projects(call: Call) -> Fields:
    projects = await Projects.of(call)
    counts = await call.store.jobs.states_of_all()
    return {
        "projects": sorted(
            [
                projects.name(each)
                for each in projects.numbers
                if (each in counts and any(counts[each][state] for state in SHOWN_STATES))
                or await call.store.versions.current(each) is not None
            ]
        )
    }


@_service("GET /listversions.json", "List the versions of a project, the newest last.", _PROJECT)
async def _list_versions(call: Call) -> Fields:
    project = (await Projects.of(call)).find(call, _asked(call, "project"))
    return {"versions": [each.version for each in reversed(await _ready(call, project))]}


async def _ready(call: Call, project: int) -> list[Any]:
    """Return the runnable versions of a project, the newest first."""
    return [each for each in await call.store.versions.listed(project) if each.state is VersionState.READY]


@_service("GET /listspiders.json", "List the spiders of a version.", _PROJECT, _VERSION)
async def _list_spiders(call: Call) -> Fields:
    project = (await Projects.of(call)).find(call, _asked(call, "project"))
    if (version := call.query.get("_version")) is None:
        return {"spiders": sorted(await spiders_of(call, project))}
    await _check_version(call, project, version)
    return {"spiders": await _spiders_of_version(call, project, version)}


async def _spiders_of_version(call: Call, project: int, version: str) -> list[str]:
    found = await call.store.versions.spiders(project, version)
    return [each.name for each in found if not each.name.startswith(SCRIPT)]


async def _check_version(call: Call, project: int, version: str) -> None:
    if version not in {each.version for each in await _ready(call, project)}:
        raise refused("version", f"{version[:60]!r} was not found", "GET /listversions.json lists the versions.")


# ── jobs ──


@_service(
    "POST /schedule.json",
    "Schedule a job. Other fields are arguments of the spider.",
    body=_form(
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
    form, _, project = await _posted(call, "spider")
    spider, version = form.get("spider") or "", form.get("_version")
    check_name("spider", spider)
    metadata = _metadata(form)
    if version is not None:
        await _check_version(call, project, version)
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
    _ANY_PROJECT,
)
async def _status(call: Call) -> Fields:
    job_id, projects = _asked(call, "job"), await Projects.of(call)
    name = call.query.get("project")
    for project in projects.numbers if name is None else [projects.find(call, name)]:
        if found := await jobs_of(call, project, job_id):
            return {"currstate": found[0].state.value}
    return {"currstate": None}


@_service("GET /listjobs.json", "List pending, running and the last finished jobs.", _ANY_PROJECT)
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
    body=_form("job", job=schemas.STRING, signal=schemas.STRING),
    action=Action.RUN,
)
async def _cancel(call: Call) -> Fields:
    form, _, project = await _posted(call, "job")
    found = await jobs_of(call, project, form.get("job") or "")
    active = [job for job in found if job.state in (JobState.PENDING, JobState.RUNNING)]
    states = await call.store.jobs.cancel(project, [job.key for job in active], call.who)
    before = next((state.value for state in states if state is not None), None)
    return {"prevstate": before}


# ── versions ──


@ROUTES.add(
    "POST /addversion.json",
    "Deploy an egg, and wait until it is checked. Creates the project with its first version. As in Scrapyd's API.",
    schemas.value(
        "The result.",
        schemas.record({**_ENVELOPE, "spiders": schemas.COUNTER, "warning": schemas.STRING}, "node_name", "status"),
    ),
    body=schemas.Body(
        schemas.MULTIPART,
        schemas.record(
            {"project": schemas.STRING, "version": schemas.STRING, "egg": {"type": "string", "format": "binary"}},
            "project",
            "version",
            "egg",
        ),
    ),
    event=ChangeEvents.VERSION_DEPLOYED,
)
async def _add_version(call: Call) -> Response:
    try:
        call.service(Deploys).check(call.grant, call.who)
        upload = await received(call.request, call.query)
        with upload.file:
            project, name, version = await _deployed(call, upload)
    except (ContractError, Refusal) as error:
        return _failed(call, error)
    return StreamingResponse(_checked(call, project, name, version), media_type=JSON)


async def _deployed(call: Call, upload: Upload) -> tuple[int, str, StoredVersion]:
    name = upload.fields.get("project")
    if name is None:
        raise _missing("project")
    if "version" not in upload.fields:
        raise _missing("version")
    project = await _project_of(call, name)
    return project, name, await take(call, project, upload)


async def _project_of(call: Call, name: str) -> int:
    """Return the project that a deploy names, which is created unless it exists."""
    projects = await Projects.of(call)
    try:
        return projects.find(call, name)
    except ContractError:
        if is_number(name):  # the key may use it, and it has no data yet
            return int(name)
        if not call.grant.all_projects:
            raise
    project = await call.store.projects.claim(name_of_project(name, "project"))
    call.need(project)
    return project


async def _checked(call: Call, project: int, name: str, version: StoredVersion) -> AsyncIterator[bytes]:
    """Yield spaces, which JSON allows, so that the client does not give up, and then the result of the check."""
    deploy, sent = version.shown.deploy_id, time.monotonic()
    async for _ in call.service(Deploys).deployments.follow(project, deploy):
        if time.monotonic() - sent > SILENCE:
            sent = time.monotonic()
            yield b" "
    found = await call.store.versions.get(project, deploy)
    if found is None or found.shown.state is not VersionState.READY:
        failed = found is not None and found.shown.state is VersionState.FAILED
        message = found.shown.message if found is not None and failed else "The check was interrupted. Deploy again."
        answer = {"node_name": _NODE, "status": "error", "message": message}
    else:
        spiders = await _spiders_of_version(call, project, found.shown.version)
        warning = {"warning": found.shown.message} if found.shown.message else {}
        answer = _ok({"project": name, "version": found.shown.version, "spiders": len(spiders), **warning})
    yield msgspec.json.encode(answer) + b"\n"


@_service(
    "POST /delversion.json",
    "Delete a version. An older one becomes current in place of the current one.",
    body=_form("version", version=schemas.STRING),
    event=ChangeEvents.VERSION_REMOVED,
)
async def _delete_version(call: Call) -> Fields:
    form, _, project = await _posted(call, "version")
    version = form.get("version") or ""
    call.noted["version"] = version
    await _check_version(call, project, version)
    await _remove(call, project, version, await _ready(call, project))
    return {}


@_service(
    "POST /delproject.json",
    "Delete the versions of a project. Its jobs and their data stay.",
    body=_form(),
    event=ChangeEvents.VERSION_REMOVED,
)
async def _delete_project(call: Call) -> Fields:
    _, _, project = await _posted(call)
    versions = await _ready(call, project)
    if not versions:
        raise refused("project", "has no version", "Deploy one, or delete its jobs.")
    removed = call.noted["versions"] = []
    while versions:
        oldest = versions.pop()
        await _remove(call, project, oldest.version, versions)
        removed.append(oldest.version)
    return {}


async def _remove(call: Call, project: int, version: str, others: list[Any]) -> None:
    newest = next((each.version for each in others if each.version != version), None)
    try:
        if newest is not None and await call.store.versions.current(project) == version:
            await call.store.versions.make_current(project, newest)
        await call.store.versions.remove(project, version)
    except InUseError as error:
        raise Refusal(409, f"Version {version} stays: {error}.") from None
    call.store.deleted.set()

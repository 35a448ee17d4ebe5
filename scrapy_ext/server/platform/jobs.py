"""``/api/run.json`` and ``/api/jobs``: start, list, tag, stop and delete jobs (platform-api.md, Jobs).

Older clients also use ``schedule.json``, an alias of ``run.json``, and ``jobs/count.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from scrapy_ext.api.masking import hidden
from scrapy_ext.api.platform import jobs
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.formats import CONTENT_TYPES, Format
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.worker_bounds import BOUNDS_HELP, BOUNDS_PATTERN, JOB_WORKERS, bounds_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.auth.credentials import key_in
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.answers import json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import result_of
from scrapy_ext.server.http.forms import Form, check_name, check_tags, own_key, parse_state, run_metadata
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.jobs.versions.runnable import check_new_job
from scrapy_ext.server.platform.versions import environments_of
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob, run_key
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, importing_from, ran_for, tags_of, workers_of

T = TypeVar("T")

#: Maximum and default number of jobs of an answer.
MAX_LIST: Final = 1000

ROUTES: Final = Routes()

JOB_FILTERS: Final = (
    schemas.Parameter("spider", "only jobs of the spider with this name", schemas.STRING),
    schemas.Parameter("state", "only jobs in one of these states", schemas.array(schemas.STATE)),
    schemas.Parameter("has_tag", "only jobs with one of these tags", schemas.STRINGS),
    schemas.Parameter("lacks_tag", "only jobs with none of these tags", schemas.STRINGS),
    schemas.Parameter("startts", "changed at this time (ms) or later", schemas.COUNTER),
    schemas.Parameter("endts", "changed before this time (ms)", schemas.COUNTER),
)
_CHOOSING: Final = (
    schemas.Parameter("project", "the project", schemas.NUMBER, required=True),
    schemas.Parameter("job", "only these jobs", schemas.array(schemas.JOB_KEY)),
    *JOB_FILTERS,
)
_LISTING: Final = (
    *_CHOOSING,
    schemas.Parameter("count", "at most so many", schemas.COUNTER),
    schemas.Parameter("offset", "leave out so many", schemas.COUNTER),
)
_OK: Final[schemas.Schema] = schemas.record({"status": {"const": "ok"}, "count": schemas.COUNTER}, "status")
_TOTAL: Final[schemas.Schema] = schemas.whole(status={"const": "ok"}, total=schemas.COUNTER)
_ADDED: Final[schemas.Schema] = schemas.record({"status": {"const": "ok"}, "jobid": schemas.JOB_KEY}, "jobid")
_TAGS: Final[schemas.Schema] = schemas.array(schemas.NAME)
_JOBS: Final[schemas.Schema] = schemas.array(schemas.JOB_KEY, least=1)


def _form(*required: str, **fields: object) -> schemas.Body:
    return schemas.Body(schemas.FORM, schemas.record({"project": schemas.NUMBER, **fields}, *required))


#: Schema of ``job_workers``.
WORKERS: Final[schemas.Schema] = {"type": "string", "pattern": BOUNDS_PATTERN, "description": BOUNDS_HELP}
_RUN: Final = _form(
    "project",
    spider=schemas.NAME,
    jobq_id=schemas.NUMBER,
    add_tag=_TAGS,
    priority={"type": "integer", "minimum": jobs.MIN_PRIORITY, "maximum": jobs.MAX_PRIORITY},
    units={"type": "integer", "minimum": jobs.MIN_UNITS, "maximum": jobs.MAX_UNITS},
    job_workers=WORKERS,
    job_settings={"type": "string", "description": "a JSON object"},
    meta={"type": "string", "description": "a JSON object"},
    environment={"type": "string", "description": "a JSON object"},
    cmd_args=schemas.STRING,
)


@ROUTES.add(
    "POST /api/run.json",
    "Schedule a job. Other fields are arguments of the spider.",
    schemas.value("The job.", _ADDED),
    body=_RUN,
    action=Action.RUN,
)
@ROUTES.add(
    "POST /api/schedule.json", "The same as run.json.", schemas.value("The job.", _ADDED), body=_RUN, action=Action.RUN
)
async def _run(call: Call) -> Response:
    # The key of the caller, which some clients also send in the form, is no argument: those are stored in the clear.
    key = key_in(call.header(b"authorization") or "") or call.query.get("apikey", "")
    form = Form([field for field in await call.form() if field != ("apikey", key)])
    project = form.key_number("project")
    spider = await _spider_of(call, project, form)
    check_name("spider", spider)
    metadata, state = run_metadata(form)
    if state is jobs.JobState.PENDING:
        await check_new_job(call.store, environments_of(call), project, spider, metadata)
    job = NewJob(spider, state, metadata, run_key(spider, metadata))
    (added,) = await call.store.jobs.add(project, [job], call.who)
    if isinstance(added, DuplicateJobError):
        # Unlike other refusals with 400: clients match these words.
        return json({"status": "error", "message": f"{spider} already scheduled"}, 400)
    call.wrote(1)
    return json({"status": "ok", "jobid": str(added)})


async def _spider_of(call: Call, project: int, form: Form) -> str:
    """Return the name of the spider that ``spider``, ``jobq_id`` or both of them name."""
    name = form.get("spider")
    if not form.get("jobq_id"):
        if not name:
            raise refused("spider", "is required unless jobq_id is given", "Send the spider's name.")
        return name
    number = form.key_number("jobq_id")
    spider = await call.store.spiders.get(project, number)
    if spider is None:
        raise refused("jobq_id", f"{number} is no spider of project {project}", "Send the spider's name.")
    if name and name != spider.name:
        raise refused("jobq_id", f"{number} is the spider {spider.name}, and spider is {name}", "Send one of the two.")
    return spider.name


def job_filter(call: Call, default_states: tuple[jobs.JobState, ...] = ()) -> JobFilter:
    """Return the filters that the app API and the job queue share."""
    return JobFilter(
        spider=call.query.get("spider"),
        states=tuple(parse_state(text) for text in call.all("state")) or default_states,
        has_tags=tuple(call.all("has_tag")),
        lacks_tags=tuple(call.all("lacks_tag")),
        startts=call.number("startts"),
        endts=call.number("endts"),
    )


def _selection(call: Call) -> tuple[int, JobFilter]:
    """Return the project of a call, and the filter of its jobs."""
    project = call.asked_project()
    keys = tuple(own_key(text, project, "job") for text in call.all("job"))
    return project, job_filter(call, tuple(jobs.JobState) if keys else jobs.SHOWN_STATES)._replace(keys=keys)


@ROUTES.add(
    "GET /api/jobs/count.json",
    "Count jobs, without deleted ones unless states or jobs are given.",
    schemas.value("The number.", _TOTAL),
    parameters=_CHOOSING,
)
async def _count(call: Call) -> Response:
    project, which = _selection(call)
    return json({"status": "ok", "total": await call.store.jobs.count(project, which)})


@ROUTES.add(
    "GET /api/jobs/list.json",
    "List jobs, the newest first.",
    schemas.value("The jobs.", jobs.JobList),
    parameters=_LISTING,
)
@ROUTES.add(
    "GET /api/jobs/list.jl",
    "List jobs as lines: first the other fields of list.json, then one job per line.",
    schemas.AnswerShape("The jobs.", {schemas.JSON_LINES: schemas.Many(schemas.OBJECT)}),
    parameters=_LISTING,
)
async def _list(call: Call) -> Response:
    project, which = _selection(call)
    page = JobPage(min(call.number("count", MAX_LIST) or 0, MAX_LIST), call.number("offset", 0) or 0)
    total = await call.store.jobs.count(project, which)
    found = await call.store.jobs.listed(project, which, page, counts=True)
    answer = jobs.JobList("ok", len(found), total, [listed_job(job, call.store.clock()) for job in found])
    if call.path[-1] == "list.json":
        return json(answer)
    head = {"status": answer.status, "count": answer.count, "total": answer.total}
    body = b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *answer.jobs))
    return Response(body, media_type=f"{CONTENT_TYPES[Format.JSON_LINES]}; charset=UTF-8")


def listed_job(job: StoredJob, now: int) -> jobs.Job:
    metadata = job.metadata
    started = metadata.get("running_time")
    importing = importing_from(job) is not None
    responses = jobs.stats_of(metadata).get("downloader/response_count")
    return jobs.Job(
        id=str(job.key),
        spider=job.spider,
        spider_type=_text(metadata.get("spider_type")) or "manual",
        state=job.state.value,
        close_reason=_text(metadata.get("close_reason")),
        priority=_whole(metadata.get("priority"), jobs.DEFAULT_PRIORITY),
        tags=tags_of(metadata),
        version=_text(metadata.get("version")),
        started_time=iso_time(started) if isinstance(started, int) else None,
        updated_time=iso_time(job.updated),
        elapsed=None if importing else ran_for(job, now),
        responses_received=_whole(responses, job.counts.requests),
        items_scraped=job.counts.items,
        logs=job.counts.logs,
        errors_count=job.counts.errors,
        spider_args=hidden(metadata["spider_args"]) if isinstance(metadata.get("spider_args"), dict) else None,
        job_workers=bounds.text if (bounds := workers_of(metadata)) else None,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def iso_time(milliseconds: int) -> str:
    """Return a time in the form of the app host: UTC, without a zone."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError, OSError):  # clients may write any number
        return ""


@ROUTES.add(
    "POST /api/jobs/update.json",
    "Add tags to jobs and remove tags; change the number of workers of jobs that are pending, or run with several.",
    schemas.value("The number of jobs.", _OK),
    body=_form(
        "project", job=_JOBS, spider=schemas.NAME, add_tag=_TAGS, remove_tag=schemas.STRINGS, job_workers=WORKERS
    ),
    errors=(409,),
    action=Action.TAG,
    event=ChangeEvents.TAGS_CHANGED,
)
async def _update(call: Call) -> Response:
    form = Form(await call.form())
    keys, name = form.jobs(), form.get("spider")
    add, remove = check_tags("add_tag", form.all("add_tag")), form.all("remove_tag")
    tags = {"add": list(add), "remove": list(remove)}
    workers = form.get(JOB_WORKERS)
    changed = tags if workers is None else {**tags, JOB_WORKERS: workers}
    call.noted |= {"jobs": [str(key) for key in keys], **changed} if keys else {"spider": name, **changed}
    if workers is not None:
        await _set_workers(call, keys, workers)
    if keys:
        return json({"count": await call.store.jobs.tag(keys, add, remove), "status": "ok"})
    if not name:
        raise refused("job", "is required", "Name the jobs to update, or a spider for all of its jobs.")
    count, project = 0, form.key_number("project")
    spider = await call.store.spiders.find(project, name)
    if spider is not None:
        async for page in call.store.jobs.of_spider(project, spider):
            count += await call.store.jobs.tag(page, add, remove)
    return json({"count": count, "status": "ok"})


async def _set_workers(call: Call, keys: Sequence[JobKey], workers: str) -> None:
    bounds = bounds_of(workers, JOB_WORKERS)
    if not keys:
        raise refused(JOB_WORKERS, "is changed for jobs that are named", "Name the jobs.")
    for key in keys:
        await call.store.groups.set_bounds(key, bounds)


async def _named(call: Call, remedy: str) -> tuple[Form, list[JobKey]]:
    """Return the form of a call with the jobs that it names, at least one."""
    form = Form(await call.form())
    if not (keys := form.jobs()):
        raise refused("job", "is required", remedy)
    return form, keys


@ROUTES.add(
    "POST /api/jobs/delete.json",
    "Delete jobs.",
    schemas.value("The number of deleted jobs.", _OK),
    body=_form("project", "job", job=_JOBS),
)
async def _delete(call: Call) -> Response:
    form, keys = await _named(call, "Name the jobs to delete.")
    return json({"status": "ok", "count": await call.store.jobs.delete(form.key_number("project"), keys, call.who)})


@ROUTES.add(
    "POST /api/jobs/stop.json",
    "Stop jobs. A job that is being imported is refused: no process runs it.",
    schemas.value("The stop is requested.", _OK),
    body=_form("project", "job", job=_JOBS),
    errors=(409,),
    action=Action.RUN,
)
async def _stop(call: Call) -> Response:
    form, keys = await _named(call, "Name the job to stop.")
    states = await call.store.jobs.cancel(form.key_number("project"), keys, call.who)
    for key, state in zip(keys, states, strict=True):
        if state is None:
            raise not_found(f"There is no job {key}. Use one of /api/jobs/list.json.")
    return json({"status": "ok"})


# ── lines of jobs in the job queue, with the usual fields or with selected ones ──

#: Fields of every line; the other usual ones are those of :data:`JOBMETA`.
_ALWAYS: Final[schemas.Schema] = {
    "key": schemas.JOB_KEY,
    "ts": schemas.COUNTER,
    "state": schemas.STATE,
    "elapsed": schemas.COUNTER,
}
JOB_LINE: Final[schemas.Schema] = schemas.whole(**_ALWAYS)
JOBMETA: Final = schemas.Parameter(
    "jobmeta",
    "fields of the metadata, instead of spider, pending_time, running_time, finished_time, tags, close_reason, "
    "version, items, pages, logs and errors",
    schemas.STRINGS,
)


def usual(job: StoredJob, now: int) -> dict[str, Any]:
    times = {name: _of_type(int, job, name) for name in ("pending_time", "running_time", "finished_time")}
    entry = jobs.QueueEntry(
        key=str(job.key),
        ts=job.changed,
        state=job.state.value,
        spider=job.spider,
        elapsed=max(now - job.changed, 0) if importing_from(job) is None else 0,
        **times,
        tags=tags_of(job.metadata) or None,
        close_reason=_of_type(str, job, "close_reason"),
        version=_of_type(str, job, "version"),
        items=job.counts.items or None,
        pages=job.counts.requests or None,
        logs=job.counts.logs or None,
        errors=job.counts.errors or None,
    )
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return fields


def _of_type(kind: type[T], job: StoredJob, name: str) -> T | None:
    """Return a field of the metadata; None for a value of another type, since clients may write any."""
    value = job.metadata.get(name)
    return value if isinstance(value, kind) else None


def line(job: StoredJob, now: int, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a job: the usual ones, or ``wanted`` ones of its metadata and those of every line."""
    entry = usual(job, now)
    if not wanted:
        return entry
    asked = {name: _masked(name, value) for name, value in jobs.fields_named(job.metadata, wanted).items()}
    return {**asked, **{name: entry[name] for name in _ALWAYS}}


def _masked(name: str, value: object) -> Any:
    """Return a field of the metadata as lists show it; the metadata themselves have it whole."""
    return hidden(value) if name in jobs.GIVEN and isinstance(value, dict) else value


def wanted_of(call: Call) -> tuple[str, ...]:
    """Return the fields of ``jobmeta``, with the tags if jobs were selected by tag; none for the usual ones."""
    wanted = tuple(call.all("jobmeta"))
    by_tag = call.all("has_tag") or call.all("lacks_tag")
    return (*wanted, "tags") if wanted and by_tag else wanted


async def answer(call: Call, values: Iterable[Any]) -> Response:
    """Return an answer with one value per line."""
    return await result_of(call, [msgspec.json.encode(value) for value in values])

"""``/jobq``: the job queue (platform-api.md, Finished-job queue; otherwise as its real clients use it)."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from scrapy_ext.api.platform import jobs as job_api
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey, is_number
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.platform.workers import reason_text
from scrapy_ext.api.violations import refused
from scrapy_ext.server.auth.tokens import JobTokens
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import Refusal, empty, json, not_found, plain_text
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.forms import check_job, check_name, check_tags, own_key, parse_state
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.jobs.versions.runnable import check_spider
from scrapy_ext.server.platform.jobs import JOB_FILTERS, JOB_LINE, JOBMETA, answer, job_filter, line, wanted_of
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob, unique_key
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.states import ACTIVE, Change

_FINISHED: Final = (JobState.FINISHED,)
#: Default number of jobs per state in a summary.
_SUMMARY: Final = 5
#: Maximum lines of a push or update, and jobs of a cancel.
MAX_CHANGES: Final = 5000
_PROJECT_SETTING: Final = "botgroups"

ROUTES: Final = Routes()

_PUSHED: Final[schemas.Schema] = schemas.record(
    {
        "spider": schemas.NAME,
        "state": schemas.STATE,
        "tags": schemas.STRINGS,
        "unique": {"description": "of several jobs with the same value, one may be pending or running"},
    },
    "spider",
)
_OUTCOME: Final[schemas.Schema] = schemas.record(
    {
        "key": schemas.JOB_KEY,
        "auth": {"type": ["string", "null"]},
        "error": schemas.STRING,
        "request": schemas.OBJECT,
    }
)
_CHANGE: Final[schemas.Schema] = schemas.record(
    {
        "key": {"type": "string", "description": "a job, or <project>/<spider> for all jobs of a spider"},
        "state": schemas.STATE,
    },
    "key",
)
_CHANGED: Final[schemas.Schema] = schemas.whole(key=schemas.JOB_KEY, prevstate=schemas.STATE)
_STARTED: Final[schemas.Schema] = schemas.whole(key=schemas.JOB_KEY, auth=schemas.STRING)
_CANCELLED: Final[schemas.Schema] = schemas.whole(count=schemas.COUNTER)
_STATE_SUMMARY: Final[schemas.Schema] = schemas.whole(
    name=schemas.STATE, count=schemas.COUNTER, summary=schemas.array(JOB_LINE)
)
_KEYS: Final = schemas.Parameter("key", "these jobs", schemas.array(schemas.JOB_KEY, most=job_api.MAX_LIST))
_PAGE: Final = (
    schemas.Parameter("count", "at most so many", schemas.COUNTER),
    schemas.Parameter("start", "leave out so many", schemas.COUNTER),
)


@ROUTES.add(
    "POST /jobq/{project}/push",
    "Add jobs.",
    schemas.lines("The jobs, or the reasons of refusals.", _OUTCOME),
    parameters=schemas.SHAPING,
    body=schemas.json_lines(_PUSHED, f"At most {MAX_CHANGES} lines; further fields become metadata."),
    errors=(409,),
)
async def _push(call: Call) -> Response:
    project, tokens = call.project, call.service(JobTokens)
    records = await _few(call)
    for number, record in records:  # all are checked before the first is stored
        async with call.context.memory.turn():
            _check_push(record, f"line {number}")
    await _check_spiders(call, records)
    jobs = [_pushed(record) for _, record in records]
    outcomes = await call.store.jobs.add(project, jobs, call.who)
    outcome: list[job_api.PushedJob | job_api.RefusedPush] = []
    call.wrote(sum(isinstance(added, JobKey) for added in outcomes))
    for added, job, (_, record) in zip(outcomes, jobs, records, strict=True):
        if isinstance(added, DuplicateJobError):
            outcome.append(job_api.RefusedPush(record, str(added)))
        else:
            auth = await tokens.token(added) if job.state is JobState.RUNNING else None
            outcome.append(job_api.PushedJob(str(added), auth))
    return await answer(call, outcome)


@ROUTES.add(
    "POST /jobq/{project}/startjob",
    "Start the next pending job.",
    schemas.AnswerShape(
        "The job's metadata, its key and its token; empty text without a pending job.",
        {schemas.JSON: _STARTED, schemas.TEXT: schemas.STRING},
    ),
    body=schemas.Body(
        schemas.JSON,
        schemas.record({"botgroup": schemas.STRING}),
        "Written to the job's metadata; may be empty. With botgroup, the project's setting botgroups must list it.",
    ),
)
async def _start(call: Call) -> Response:
    """Start the next job. Clients detect by an empty answer that there is none."""
    fields = await json_bodies.fields_of(call.request, '{} or {"field": value}', empty={})
    if not await _in_group(call, fields.get("botgroup")):
        return empty()
    job = await call.store.jobs.start_next(call.project, fields, call.who)
    if job is None:
        return empty()
    worker = {"_shub_worker": call.who, **job.metadata}
    return json({**worker, "key": str(job.key), "auth": await call.service(JobTokens).token(job.key)})


@ROUTES.add(
    "GET /jobq/{project}/count",
    "Count jobs; finished ones, unless states are named.",
    schemas.AnswerShape("The number.", {schemas.TEXT: schemas.COUNTER}),
    parameters=JOB_FILTERS,
)
async def _count(call: Call) -> Response:
    count = await call.store.jobs.count(call.project, job_filter(call, _FINISHED))
    return plain_text(str(count))


async def _in_group(call: Call, group: object) -> bool:
    """Return true when the project's setting ``botgroups`` lists this group of workers."""
    if group is None:
        return True
    stored = await call.store.projects.setting(call.project, _PROJECT_SETTING)
    groups = json_bodies.value(stored) if stored is not None else []
    return isinstance(groups, list) and group in groups


async def _few(call: Call) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a body with their line numbers, at most as many as fit into a transaction."""
    return [(number, record) for number, _, record in await json_bodies.objects(call.request, most=MAX_CHANGES)]


def _check_push(record: dict[str, Any], place: str) -> None:
    spider = record.get("spider")
    if not isinstance(spider, str):
        raise refused(f"{place}: spider", "must be a name", "Name the spider.")
    check_name(f"{place}: spider", spider)
    state = parse_state(record.get("state", JobState.PENDING.value), f"{place}: state")
    tags = record.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise refused(f"{place}: tags", "must be an array of strings", 'Write "tags": ["a"].')
    check_tags(f"{place}: tags", tags)
    if state is JobState.PENDING:  # the client that pushes another one runs it itself
        check_job(spider, record, f"{place}: ")


async def _check_spiders(call: Call, records: list[tuple[int, dict[str, Any]]]) -> None:
    if await call.store.versions.current(call.project) is None:
        return
    seen: set[tuple[str, str]] = set()
    for number, record in records:
        if record.get("state", JobState.PENDING.value) != JobState.PENDING.value:
            continue  # the client that pushes it runs its own code
        spider, version = record["spider"], record.get("version")
        if (spider, str(version)) not in seen:
            seen.add((spider, str(version)))
            await check_spider(call.store, call.project, spider, version, f"line {number}: spider")


def _pushed(record: dict[str, Any]) -> NewJob:
    unique = record.get("unique")
    return NewJob(
        record["spider"],
        JobState(record.get("state", JobState.PENDING.value)),
        {
            "priority": job_api.DEFAULT_PRIORITY,
            "units": job_api.DEFAULT_UNITS,
            **{name: value for name, value in record.items() if name != "unique"},
        },
        None if unique is None else unique_key("push", unique),
    )


@ROUTES.add(
    "GET /jobq/{project}/list",
    "List jobs, the newest first; finished ones, unless states are named.",
    schemas.lines("The jobs.", JOB_LINE),
    parameters=(
        *JOB_FILTERS,
        *_PAGE,
        schemas.Parameter("stop", "list jobs before this one only", schemas.JOB_KEY),
        _KEYS,
        JOBMETA,
        *schemas.SHAPING,
    ),
)
async def _list(call: Call) -> Response:
    project, stop = call.project, call.query.get("stop")
    keys = tuple(own_key(text, project, "key") for text in call.all("key"))
    which = job_filter(call, tuple(JobState) if keys else _FINISHED)._replace(keys=keys)
    page = JobPage(
        min(call.number("count", job_api.MAX_LIST) or 0, job_api.MAX_LIST),
        call.number("start", 0) or 0,
        own_key(stop, project, "stop") if stop is not None else None,
    )
    wanted = wanted_of(call)
    jobs = await call.store.jobs.listed(project, which, page, counts=not wanted)
    now = call.store.clock()
    return await answer(call, (line(job, now, wanted) for job in jobs))


@ROUTES.add(
    "GET /jobq/{project}/jobsummary",
    "Read named jobs, in the order of the parameter.",
    schemas.lines("The jobs that exist.", JOB_LINE),
    parameters=(_KEYS, JOBMETA, *schemas.SHAPING),
)
async def _job_summary(call: Call) -> Response:
    project, wanted = call.project, wanted_of(call)
    keys = tuple(own_key(text, project, "key") for text in call.all("key"))
    if len(keys) > job_api.MAX_LIST:
        raise refused("key", f"may be given {job_api.MAX_LIST} times at most", "Ask for fewer jobs at a time.")
    if not keys:
        return await answer(call, ())
    page = JobPage(len(keys))
    found = await call.store.jobs.listed(project, JobFilter(keys=keys), page, counts=not wanted)
    jobs, now = {job.key: job for job in found}, call.store.clock()
    return await answer(call, (line(jobs[key], now, wanted) for key in keys if key in jobs))


_SUMMARIES: Final = schemas.lines("For each state, the number of jobs and the newest of them.", _STATE_SUMMARY)
_SUMMARY_OPTIONS: Final = (*_PAGE, JOBMETA, *schemas.SHAPING)


@ROUTES.add(
    "GET /jobq/{project}/summary[/{state}]", "The newest jobs of each state.", _SUMMARIES, parameters=_SUMMARY_OPTIONS
)
@ROUTES.add(
    "GET /jobq/{project}/{spider}/summary[/{state}]",
    "The newest jobs of a spider, of each state.",
    _SUMMARIES,
    parameters=_SUMMARY_OPTIONS,
)
async def _summary(call: Call) -> Response:
    states = [parse_state(call.part("state"))] if call.has_part("state") else job_api.SHOWN_STATES
    spider = call.part_number("spider") if call.has_part("spider") else None
    page = JobPage(min(call.number("count", _SUMMARY) or 0, job_api.MAX_LIST), call.number("start", 0) or 0)
    wanted, summaries = wanted_of(call), []
    for state in states:
        which = JobFilter(spider_id=spider, states=(state,))
        count = await call.store.jobs.count(call.project, which)
        jobs = await call.store.jobs.listed(call.project, which, page, counts=not wanted)
        now = call.store.clock()
        summary = [line(job, now, wanted) for job in jobs]
        summaries.append({"name": state.value, "count": count, "summary": summary})
    return await answer(call, summaries)


@ROUTES.add(
    "POST /jobq/{project}/update",
    "Change states and metadata of jobs.",
    schemas.lines("The previous state of each job that exists.", _CHANGED),
    parameters=schemas.SHAPING,
    body=schemas.json_lines(_CHANGE, f"At most {MAX_CHANGES} lines; further fields are written to the metadata."),
    errors=(409,),
    access=Access.PROCESS,
)
async def _update(call: Call) -> Response:
    """Apply lines that name a job first, then those that name all jobs of a spider."""
    project = call.project
    changes: list[Change] = []
    spiders: list[tuple[int, JobState | None, dict[str, Any]]] = []
    for number, record in await _few(call):
        place = f"line {number}"
        state = parse_state(record["state"], f"{place}: state") if "state" in record else None
        text = str(record.get("key", ""))
        if text.count("/") == 1:
            spiders.append((_own_spider(text, project, f"{place}: key"), state, record))
        else:
            changes.append(Change(own_key(text, project, f"{place}: key"), state, record))
    if call.attempt is not None:
        return await answer(call, await _by_process(call, call.attempt, changes))
    changed = await _changed(call, changes)
    for spider, state, record in spiders:
        async for keys in call.store.jobs.of_spider(project, spider):
            changed += await _changed(call, [Change(key, state, record) for key in keys])
    return await answer(call, changed)


async def _by_process(call: Call, attempt: Attempt, changes: list[Change]) -> list[dict[str, str]]:
    """Store the changes of a job's process to its own job. The state becomes finished when the process has ended."""
    for change in changes:
        if change.key != attempt.key:
            raise Refusal(403, "Forbidden. The token of a job's process is for that job; use an API key.")
        fields = dict(change.fields)
        reason = fields.pop("close_reason", None)
        if change.state is JobState.FINISHED:
            text = reason_text(reason if isinstance(reason, str) else None)
            await call.store.attempts.said(attempt, text or job_api.FINISHED)
        await call.store.jobs.merge(change.key, fields, attempt)
    return [{"prevstate": JobState.RUNNING.value, "key": str(change.key)} for change in changes]


async def _changed(call: Call, changes: list[Change]) -> list[dict[str, str]]:
    previous = await call.store.jobs.change(call.project, changes, call.who) if changes else []
    return [
        {"prevstate": state.value, "key": str(change.key)}
        for change, state in zip(changes, previous, strict=True)
        if state is not None
    ]


def _own_spider(text: str, project: int, field: str) -> int:
    """Return the spider of ``<project>/<spider>``."""
    own, _, spider = text.partition("/")
    if own != str(project) or not is_number(spider):
        raise refused(
            field,
            f"must be a job or a spider of project {project}, got {text[:60]!r}",
            f"Send {project}/1/2 or {project}/1.",
        )
    return int(spider)


@ROUTES.add(
    "POST /jobq/{project}/cancel",
    "Cancel named jobs, or a number of any.",
    schemas.value("The number of jobs that were pending or running.", _CANCELLED),
    parameters=(
        schemas.Parameter(
            "count",
            "cancel so many: first pending jobs, the last in the queue first, then running ones",
            {"type": "integer", "minimum": 0, "maximum": MAX_CHANGES},
        ),
    ),
    body=schemas.Body(
        schemas.JSON, schemas.array(schemas.whole(key=schemas.JOB_KEY), most=MAX_CHANGES), "Not read with a count."
    ),
    errors=(409,),
    action=Action.RUN,
)
async def _cancel(call: Call) -> Response:
    project, count = call.project, call.number("count")
    if count is not None:
        if count > MAX_CHANGES:
            raise refused("count", f"may be {MAX_CHANGES} at most, got {count}", "Cancel fewer at a time.")
        return json({"count": await call.store.jobs.cancel_some(project, count, call.who)})
    named = await json_bodies.document(call.request)
    if not isinstance(named, list) or not all(isinstance(each, dict) for each in named):
        raise refused("body", "must be a JSON array of objects with a key", 'Write [{"key": "1/2/3"}].')
    if len(named) > MAX_CHANGES:
        raise refused("body", f"may name {MAX_CHANGES} jobs at most, got {len(named)}", "Cancel fewer at a time.")
    keys = [own_key(str(each.get("key", "")), project, "key") for each in named]
    return json({"count": await _cancelled(call, list(dict.fromkeys(keys)))})


@ROUTES.add(
    "POST /jobq/{project}/{spider}/{job}/cancel",
    "Cancel a job.",
    schemas.value("1 if it was pending or running, else 0.", _CANCELLED),
    errors=(409,),
    action=Action.RUN,
)
async def _cancel_one(call: Call) -> Response:
    key = call.job
    if await call.store.jobs.get(key) is None:
        raise not_found(f"There is no job {key}. Use one of /jobq/{key.project}/list.")
    return json({"count": await _cancelled(call, [key])})


async def _cancelled(call: Call, keys: list[JobKey]) -> int:
    states = await call.store.jobs.cancel(call.project, keys, call.who)
    return sum(state in ACTIVE for state in states)

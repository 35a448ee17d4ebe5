"""``/api/run.json`` and ``/api/jobs``: starting, listing, tagging, stopping and deleting jobs (platform-api.md, Jobs).

Older clients also use ``schedule.json``, which is ``run.json``, and ``jobs/count.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.platform.formats import CONTENT_TYPES, Format
from scrapy_ext.api.platform.job_rules import violations_of_job
from scrapy_ext.api.platform.jobs import (
    CRAWL_STATS,
    DEFAULT_PRIORITY,
    DEFAULT_UNITS,
    MAX_NAME,
    MAX_PRIORITY,
    MAX_UNITS,
    MIN_PRIORITY,
    MIN_UNITS,
    RUN_PARAMETERS,
    SHOWN_STATES,
    Job,
    JobList,
    JobState,
    is_name,
)
from scrapy_ext.api.platform.keys import JobKey, number_of
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import NotFound, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.jobs.versions.environments import Environments
from scrapy_ext.server.platform.runnable import check_local_spider, check_spider
from scrapy_ext.server.store.jobs.jobs import DuplicateJobError, NewJob, run_key
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import StoredJob, tags_of

#: Jobs of one answer; also when the caller names no number.
MAX_LIST: Final = 1000


async def jobs(call: Call, environments: Environments | None = None) -> Response:
    """Answer a call to ``/api/run.json`` or ``/api/jobs/….json``."""
    match call.path, call.method:
        case ["run.json" | "schedule.json"], "POST":
            return await _run(call, Form(await call.form()), environments)
        case ["jobs", "count.json"], "GET":
            project, which = _selection(call)
            return json({"status": "ok", "total": await call.store.jobs.count(project, which)})
        case ["jobs", "list.json" | "list.jl"], "GET":
            return await _list(call)
        case ["jobs", "update.json" | "delete.json" | "stop.json" as action], "POST":
            form = Form(await call.form())
            return await {"update.json": _update, "delete.json": _delete, "stop.json": _stop}[action](call, form)
        case ["jobs", "list.json" | "list.jl" | "count.json"], _:
            raise method_not_allowed("GET")
        case ((["run.json" | "schedule.json"] | ["jobs", "update.json" | "delete.json" | "stop.json"]), _):
            raise method_not_allowed("POST")
        case _:
            raise NotFound


class Form:
    """Fields of a form body."""

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self.fields = fields

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field."""
        return tuple(value for each, value in self.fields if each == name)

    def get(self, name: str) -> str | None:
        """The last value of a field."""
        values = self.all(name)
        return values[-1] if values else None

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A field that is a whole number in a range; raises ``ContractError``."""
        text = self.get(name)
        number = default if text is None else number_of(text, name)
        if not low <= number <= high:
            raise refused(name, f"must be {low} to {high}, got {number}", "Correct the number.")
        return number

    def project(self) -> int:
        """The required project."""
        return self.key_number("project")

    def key_number(self, name: str) -> int:
        """A required field that is a number of a key; raises ``ContractError``."""
        text = self.get(name)
        if text is None:
            raise refused(name, "is required", f"Send the form field {name}.")
        return number_of(text, name)

    def object(self, name: str) -> dict[str, Any] | None:
        """A field that is a JSON object; raises ``ContractError``."""
        text = self.get(name)
        if not text:
            return None
        value = bodies.value(text.encode(), name)
        if not isinstance(value, dict):
            raise refused(name, "must be a JSON object", f'Write {name}={{"NAME": "value"}}.')
        return value

    def jobs(self) -> list[JobKey]:
        """The jobs that are named, all of the project; raises ``ContractError``."""
        project = self.project()
        return [own_key(text, project, "job") for text in self.all("job")]


async def _run(call: Call, form: Form, environments: Environments | None) -> Response:
    project = form.project()
    spider = form.get("spider") or await _spider_by_id(call, project, form)
    check_name("spider", spider)
    metadata, state = _run_metadata(form)
    if state is JobState.PENDING:
        check_job(spider, metadata)
        await check_spider(call.store, project, spider, metadata.get("version"))
        if environments is not None:
            await check_local_spider(call.store, environments, project, spider)
    job = NewJob(spider, state, metadata, run_key(spider, metadata))
    (added,) = await call.store.jobs.add(project, [job], call.who)
    if isinstance(added, DuplicateJobError):
        # Not as other refusals of a 400: clients have seen these words since there are clients.
        return json({"status": "error", "message": f"{spider} already scheduled"}, 400)
    call.wrote(1)
    return json({"status": "ok", "jobid": str(added)})


async def _spider_by_id(call: Call, project: int, form: Form) -> str:
    if form.get("jobq_id") is None:
        raise refused("spider", "is required unless jobq_id is given", "Send the spider's name.")
    number = form.key_number("jobq_id")
    spider = await call.store.spiders.get(project, number)
    if spider is None:
        raise refused("jobq_id", f"{number} is no spider of project {project}", "Send the spider's name.")
    return spider.name


def _run_metadata(form: Form) -> tuple[dict[str, Any], JobState]:
    metadata: dict[str, Any] = {
        "spider_type": "manual",
        "priority": form.number("priority", DEFAULT_PRIORITY, MIN_PRIORITY, MAX_PRIORITY),
        "units": form.number("units", DEFAULT_UNITS, MIN_UNITS, MAX_UNITS),
    }
    metadata["tags"] = list(dict.fromkeys(check_tags("add_tag", form.all("add_tag"))))
    if arguments := {name: value for name, value in form.fields if name not in RUN_PARAMETERS}:
        metadata["spider_args"] = arguments
    for name in ("job_settings", "environment"):
        if (value := form.object(name)) is not None:
            metadata[name] = value
    if cmd_args := form.get("cmd_args"):
        metadata["cmd_args"] = cmd_args
    extra = form.object("meta") or {}
    state = parse_state(extra.pop("state", JobState.PENDING.value), "meta.state")
    return {**metadata, **extra}, state


def own_key(text: str, project: int, field: str) -> JobKey:
    """A job of the project that the request is about; raises ``ContractError``."""
    key = JobKey.parse(text, field)
    if key.project != project:
        raise refused(field, f"{key} is not of project {project}", "Name jobs of one project.")
    return key


def parse_state(text: Any, field: str = "state") -> JobState:
    """Read a state; raises ``ContractError``."""
    try:
        return JobState(text)
    except ValueError:
        choices = ", ".join(state.value for state in JobState)
        raise refused(field, f"must be one of {choices}, got {str(text)[:60]!r}", "Use one of these.") from None


def check_name(field: str, name: str) -> None:
    """Refuses what can be no name of a spider, of a setting or of a field."""
    if not is_name(name):
        raise refused(field, f"must be 1 to {MAX_NAME} characters, none of them NUL", "Correct the name.")


def check_job(spider: str, metadata: Mapping[str, Any], place: str = "") -> None:
    """Refuses a job that could not run; ``place``: where it is in a body. Raises ``ContractError``."""
    if violations := list(violations_of_job(spider, metadata)):
        raise ContractError([msgspec.structs.replace(each, field=f"{place}{each.field}") for each in violations])


def check_tags(field: str, tags: Sequence[str]) -> tuple[str, ...]:
    """The tags; raises ``ContractError`` for what can be no tag."""
    for tag in tags:
        if not is_name(tag):
            raise refused(
                field, f"must be 1 to {MAX_NAME} characters, none of them NUL, got {tag[:60]!r}", "Choose another tag."
            )
    return tuple(tags)


def job_filter(call: Call, default_states: tuple[JobState, ...] = ()) -> JobFilter:
    """The filters that the app API and the job queue share."""
    return JobFilter(
        spider=call.query.get("spider"),
        states=tuple(parse_state(text) for text in call.all("state")) or default_states,
        has_tags=tuple(call.all("has_tag")),
        lacks_tags=tuple(call.all("lacks_tag")),
        startts=call.number("startts"),
        endts=call.number("endts"),
    )


def _selection(call: Call) -> tuple[int, JobFilter]:
    """The project, and which of its jobs a request is about."""
    project = call.asked_project()
    keys = tuple(own_key(text, project, "job") for text in call.all("job"))
    return project, job_filter(call, tuple(JobState) if keys else SHOWN_STATES)._replace(keys=keys)


async def _list(call: Call) -> Response:
    project, which = _selection(call)
    page = JobPage(min(call.number("count", MAX_LIST) or 0, MAX_LIST), call.number("offset", 0) or 0)
    total = await call.store.jobs.count(project, which)
    found = await call.store.jobs.listed(project, which, page, counts=True)
    answer = JobList("ok", len(found), total, [listed_job(job, call.store.clock()) for job in found])
    if call.path[-1] == "list.json":
        return json(answer)
    head = {"status": answer.status, "count": answer.count, "total": answer.total}
    body = b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *answer.jobs))
    return Response(body, media_type=f"{CONTENT_TYPES[Format.JSON_LINES]}; charset=UTF-8")


def listed_job(job: StoredJob, now: int) -> Job:
    """A job as the list shows it."""
    metadata = job.metadata
    started = metadata.get("running_time")
    ended = metadata.get("finished_time") or (now if job.state is JobState.RUNNING else None)
    framework = metadata.get(CRAWL_STATS)
    responses = framework.get("downloader/response_count") if isinstance(framework, dict) else None
    return Job(
        id=str(job.key),
        spider=job.spider,
        spider_type=_text(metadata.get("spider_type")) or "manual",
        state=job.state.value,
        close_reason=_text(metadata.get("close_reason")),
        priority=_whole(metadata.get("priority"), DEFAULT_PRIORITY),
        tags=tags_of(metadata),
        version=_text(metadata.get("version")),
        started_time=iso_time(started) if isinstance(started, int) else None,
        updated_time=iso_time(job.updated),
        elapsed=ended - started if isinstance(started, int) and isinstance(ended, int) else None,
        responses_received=_whole(responses, job.counts.requests),
        items_scraped=job.counts.items,
        logs=job.counts.logs,
        errors_count=job.counts.errors,
        spider_args=metadata["spider_args"] if isinstance(metadata.get("spider_args"), dict) else None,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def iso_time(milliseconds: int) -> str:
    """A time as the app host writes it: UTC, without a zone."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError, OSError):  # a client may have written any number
        return ""


async def _update(call: Call, form: Form) -> Response:
    keys, name = form.jobs(), form.get("spider")
    add, remove = check_tags("add_tag", form.all("add_tag")), form.all("remove_tag")
    if keys:
        return json({"count": await call.store.jobs.tag(keys, add, remove), "status": "ok"})
    if not name:
        raise refused("job", "is required", "Name the jobs to update, or a spider for all of its jobs.")
    count, project = 0, form.project()
    spider = await call.store.spiders.find(project, name)
    if spider is not None:
        async for page in call.store.jobs.of_spider(project, spider):
            count += await call.store.jobs.tag(page, add, remove)
    return json({"count": count, "status": "ok"})


async def _delete(call: Call, form: Form) -> Response:
    keys = form.jobs()
    if not keys:
        raise refused("job", "is required", "Name the jobs to delete.")
    return json({"status": "ok", "count": await call.store.jobs.delete(form.project(), keys, call.who)})


async def _stop(call: Call, form: Form) -> Response:
    keys = form.jobs()
    if not keys:
        raise refused("job", "is required", "Name the job to stop.")
    states = await call.store.jobs.cancel(form.project(), keys, call.who)
    for key, state in zip(keys, states, strict=True):
        if state is None:
            raise NotFound(f"There is no job {key}.")
    return json({"status": "ok"})

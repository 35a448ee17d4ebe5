"""``/api/…`` and ``/jobs``: jobs and their metadata."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobs import MAX_PRIORITY, MAX_UNITS, MIN_PRIORITY, MIN_UNITS, JobList
from scrapy_ext.server.openapi.words import (
    ANY,
    COUNT,
    COUNTER,
    DONE,
    FILTERS,
    FORM,
    JOB_KEY,
    JSON,
    JSON_LINES,
    META,
    NAME,
    NODATA,
    NUMBER,
    OBJECT,
    SHAPING,
    STATE,
    STRING,
    STRINGS,
    Answer,
    Body,
    Operation,
    Parameter,
    lines,
    list_of,
    value,
)

JOB_FILTERS: Final = (
    Parameter("spider", "only jobs of the spider with this name", STRING),
    Parameter("state", "only jobs in one of these states", {"type": "array", "items": STATE}),
    Parameter("has_tag", "only jobs with one of these tags", STRINGS),
    Parameter("lacks_tag", "only jobs with none of these tags", STRINGS),
    Parameter("startts", "changed at this time (ms) or later", COUNTER),
    Parameter("endts", "changed before this time (ms)", COUNTER),
)
_CHOOSING: Final = (
    Parameter("project", "the project", NUMBER, required=True),
    Parameter("job", "only these jobs", {"type": "array", "items": JOB_KEY}),
    *JOB_FILTERS,
)
_LISTING: Final = (
    *_CHOOSING,
    Parameter("count", "at most so many", COUNTER),
    Parameter("offset", "leave out so many", COUNTER),
)
_OK: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"status": {"const": "ok"}, "count": COUNTER},
    "required": ["status"],
}
_TAG: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 255}
_TAGS: Final[dict[str, Any]] = {"type": "array", "items": _TAG}
_JOBS: Final[dict[str, Any]] = {"type": "array", "items": JOB_KEY, "minItems": 1}


def _form(*required: str, **fields: Any) -> Body:
    return Body(FORM, {"type": "object", "properties": {"project": NUMBER, **fields}, "required": list(required)})


_RUN: Final = _form(
    "project",
    spider=NAME,
    jobq_id=NUMBER,
    add_tag=_TAGS,
    priority={"type": "integer", "minimum": MIN_PRIORITY, "maximum": MAX_PRIORITY},
    units={"type": "integer", "minimum": MIN_UNITS, "maximum": MAX_UNITS},
    job_settings={"type": "string", "description": "a JSON object"},
    meta={"type": "string", "description": "a JSON object"},
    environment={"type": "string", "description": "a JSON object"},
    cmd_args=STRING,
)
_JOB: Final = "/jobs/{project}/{spider}/{job}"


def _running(path: str, summary: str) -> Operation:
    return Operation(
        method="POST",
        path=path,
        summary=summary,
        body=_RUN,
        answer=value(
            "The job.",
            {"type": "object", "properties": {"status": {"const": "ok"}, "jobid": JOB_KEY}, "required": ["jobid"]},
        ),
        errors=(413,),
        host=Host.APP,
    )


def _records(path: str, what: str) -> Operation:
    return Operation(
        method="GET",
        path=path,
        summary=f"Read {what} of a job, as clients do that are older than the storage host.",
        parameters=(
            Parameter("project", "the project", NUMBER, required=True),
            Parameter("job", "the job", JOB_KEY, required=True),
            Parameter("offset", "leave out so many", COUNTER),
            COUNT,
            META,
            NODATA,
            *FILTERS,
        ),
        answer=Answer("A record a line.", {JSON_LINES: list_of(OBJECT)}),
        host=Host.APP,
    )


def _metadata_of_all(path: str, whose: str) -> Operation:
    return Operation(
        method="GET",
        path=path,
        summary=f"Read the metadata of the jobs of {whose}, in the order of their keys.",
        parameters=(
            COUNT,
            Parameter("meta", "what to add to each", {"type": "array", "items": {"const": "_key"}}),
            *SHAPING,
        ),
        answer=lines("An object for each job.", OBJECT),
    )


OPERATIONS: Final = (
    _running("/api/run.json", "Schedule a job. Fields that are not named here are arguments of the spider."),
    _running("/api/schedule.json", "The same as run.json."),
    Operation(
        method="GET",
        path="/api/jobs/count.json",
        summary="Count jobs; all but deleted ones, unless states or jobs are named.",
        parameters=_CHOOSING,
        answer=value(
            "The number.",
            {
                "type": "object",
                "properties": {"status": {"const": "ok"}, "total": COUNTER},
                "required": ["status", "total"],
            },
        ),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path="/api/jobs/list.json",
        summary="List jobs, the newest first.",
        parameters=_LISTING,
        answer=value("The jobs.", JobList),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path="/api/jobs/list.jl",
        summary="The same as lines: what list.json has beside the jobs, then a job a line.",
        parameters=_LISTING,
        answer=Answer("The jobs.", {JSON_LINES: list_of(OBJECT)}),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path="/api/jobs/update.json",
        summary="Add tags to jobs and remove tags.",
        body=_form("project", job=_JOBS, spider=NAME, add_tag=_TAGS, remove_tag=STRINGS),
        answer=value("How many jobs there were.", _OK),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path="/api/jobs/delete.json",
        summary="Delete jobs.",
        body=_form("project", "job", job=_JOBS),
        answer=value("How many were deleted.", _OK),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path="/api/jobs/stop.json",
        summary="Stop jobs.",
        body=_form("project", "job", job=_JOBS),
        answer=value("They are asked to stop.", _OK),
        errors=(413,),
        host=Host.APP,
    ),
    _records("/api/items.jl", "items"),
    _records("/api/log.jl", "log lines"),
    _metadata_of_all("/jobs/{project}", "a project"),
    _metadata_of_all("/jobs/{project}/{spider}", "a spider"),
    Operation(
        method="GET",
        path=_JOB,
        summary="Read the metadata of a job.",
        parameters=(Parameter("format", "json, else JSON lines", {"enum": ["json", "jl"]}),),
        answer=Answer("One object, on one line.", {JSON_LINES: list_of(OBJECT), JSON: OBJECT}),
    ),
    Operation(
        method="POST",
        path=_JOB,
        summary="Write fields of the metadata; those that are not named stay.",
        body=Body(JSON, OBJECT),
        answer=DONE,
        errors=(413,),
    ),
    Operation(method="DELETE", path=_JOB, summary="Delete a job.", answer=DONE),
    Operation(method="GET", path=f"{_JOB}/auth", summary="The token of a job.", answer=value("The token.", STRING)),
    Operation(
        method="GET", path=f"{_JOB}/{{field}}", summary="Read a field; null if absent.", answer=value("Its value.", ANY)
    ),
    Operation(
        method="POST",
        path=f"{_JOB}/{{field}}",
        summary="Write a field.",
        body=Body(JSON, ANY),
        answer=DONE,
        errors=(413,),
    ),
    Operation(method="DELETE", path=f"{_JOB}/{{field}}", summary="Remove a field.", answer=DONE),
)

"""``/jobq``."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobq import MAX_LIST
from scrapy_ext.server.openapi.jobs import JOB_FILTERS
from scrapy_ext.server.openapi.words import (
    COUNTER,
    JOB_KEY,
    JSON,
    NAME,
    OBJECT,
    SHAPING,
    STATE,
    STRING,
    STRINGS,
    TEXT,
    Answer,
    Body,
    Operation,
    Parameter,
    json_lines,
    lines,
    value,
)
from scrapy_ext.server.platform.jobq import MAX_CHANGES

_ONE_KEY: Final[dict[str, Any]] = {"type": "object", "properties": {"key": JOB_KEY}, "required": ["key"]}
_PUSHED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "spider": NAME,
        "state": STATE,
        "tags": STRINGS,
        "unique": {"description": "of several jobs that have the same here, one may be pending or running"},
    },
    "required": ["spider"],
}
_OUTCOME: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"key": JOB_KEY, "auth": {"type": ["string", "null"]}, "error": STRING, "request": OBJECT},
}
_CHANGE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "key": {"type": "string", "description": "a job, or <project>/<spider> for all jobs of a spider"},
        "state": STATE,
    },
    "required": ["key"],
}
_CHANGED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"key": JOB_KEY, "prevstate": STATE},
    "required": ["key", "prevstate"],
}
_STARTED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"key": JOB_KEY, "auth": STRING},
    "required": ["key", "auth"],
}
_CANCELLED: Final[dict[str, Any]] = {"type": "object", "properties": {"count": COUNTER}, "required": ["count"]}
#: What is always there; the rest of the usual fields is named with the parameter.
JOB_LINE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"key": JOB_KEY, "ts": COUNTER, "state": STATE, "elapsed": COUNTER},
    "required": ["key", "ts", "state", "elapsed"],
}
JOBMETA: Final = Parameter(
    "jobmeta",
    "fields of the metadata, instead of spider, pending_time, running_time, finished_time, tags, close_reason, "
    "version, items, pages, logs and errors",
    STRINGS,
)
_KEYS: Final = Parameter("key", "these jobs", {"type": "array", "items": JOB_KEY, "maxItems": MAX_LIST})
_PAGE: Final = (Parameter("count", "at most so many", COUNTER), Parameter("start", "leave out so many", COUNTER))
_SUMMARY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"name": STATE, "count": COUNTER, "summary": {"type": "array", "items": JOB_LINE}},
    "required": ["name", "count", "summary"],
}


def _summary(path: str, summary: str) -> Operation:
    return Operation(
        method="GET",
        path=f"/jobq/{{project}}{path}",
        summary=summary,
        parameters=(*_PAGE, JOBMETA, *SHAPING),
        answer=lines("For each state how many jobs are in it, and the newest of them.", _SUMMARY),
        host=Host.JOBQ,
    )


OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/jobq/{project}/count",
        summary="Count jobs; finished ones, unless states are named.",
        parameters=JOB_FILTERS,
        answer=Answer("The number.", {TEXT: COUNTER}),
        host=Host.JOBQ,
    ),
    Operation(
        method="GET",
        path="/jobq/{project}/list",
        summary="List jobs, the newest first; finished ones, unless states are named.",
        parameters=(
            *JOB_FILTERS,
            *_PAGE,
            Parameter("stop", "up to this job, without it", JOB_KEY),
            _KEYS,
            JOBMETA,
            *SHAPING,
        ),
        answer=lines("The jobs.", JOB_LINE),
        host=Host.JOBQ,
    ),
    Operation(
        method="GET",
        path="/jobq/{project}/jobsummary",
        summary="Read jobs that are named, in the order of their names.",
        parameters=(_KEYS, JOBMETA, *SHAPING),
        answer=lines("Those that there are.", JOB_LINE),
        host=Host.JOBQ,
    ),
    _summary("/summary", "The newest jobs of each state."),
    _summary("/summary/{state}", "The newest jobs of one state."),
    _summary("/{spider}/summary", "The newest jobs of a spider, of each state."),
    _summary("/{spider}/summary/{state}", "The newest jobs of a spider, of one state."),
    Operation(
        method="POST",
        path="/jobq/{project}/push",
        summary="Add jobs.",
        parameters=SHAPING,
        body=json_lines(_PUSHED, f"At most {MAX_CHANGES} lines; further fields become metadata."),
        answer=lines("The jobs, or why there is none.", _OUTCOME),
        errors=(409, 413),
        host=Host.JOBQ,
    ),
    Operation(
        method="POST",
        path="/jobq/{project}/startjob",
        summary="Start the pending job that is next.",
        body=Body(
            JSON,
            {"type": "object", "properties": {"botgroup": STRING}},
            "Written to the job's metadata; may be empty. With botgroup, the project's setting botgroups must list it.",
        ),
        answer=Answer(
            "The job's metadata, its key and its token; empty text when none waits.", {JSON: _STARTED, TEXT: STRING}
        ),
        errors=(413,),
        host=Host.JOBQ,
    ),
    Operation(
        method="POST",
        path="/jobq/{project}/update",
        summary="Change states and metadata of jobs.",
        parameters=SHAPING,
        body=json_lines(_CHANGE, f"At most {MAX_CHANGES} lines; further fields are written to the metadata."),
        answer=lines("The state before, of each job that there is.", _CHANGED),
        errors=(409, 413),
        host=Host.JOBQ,
    ),
    Operation(
        method="POST",
        path="/jobq/{project}/cancel",
        summary="Cancel jobs that are named, or any number of them.",
        parameters=(
            Parameter(
                "count",
                "cancel so many; what would start last before others, then what runs",
                {"type": "integer", "minimum": 0, "maximum": MAX_CHANGES},
            ),
        ),
        body=Body(
            JSON, {"type": "array", "items": _ONE_KEY, "maxItems": MAX_CHANGES}, "Not read when there is a count."
        ),
        answer=value("How many were pending or running.", _CANCELLED),
        errors=(413,),
        host=Host.JOBQ,
    ),
    Operation(
        method="POST",
        path="/jobq/{project}/{spider}/{job}/cancel",
        summary="Cancel a job.",
        answer=value("1 if it was pending or running, else 0.", _CANCELLED),
        host=Host.JOBQ,
    ),
)

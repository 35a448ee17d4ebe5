"""``/jobq``."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.jobq import PushedJob, QueueEntry
from scrapy_ext.server.openapi.jobs import FILTERS
from scrapy_ext.server.openapi.words import (
    COUNTER,
    JOB_KEY,
    NAME,
    SHAPING,
    STATE,
    STRINGS,
    Operation,
    Parameter,
    json_lines,
    lines,
    value,
)
from scrapy_ext.server.platform.answers import Host

_PUSHED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"spider": NAME, "state": STATE, "tags": STRINGS},
    "required": ["spider"],
}
_CHANGE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"key": JOB_KEY, "state": STATE},
    "required": ["key"],
}

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/jobq/{project}/count",
        summary="Count jobs; finished ones, unless states are named.",
        parameters=FILTERS,
        answer=value("The number.", COUNTER),
        host=Host.JOBQ,
    ),
    Operation(
        method="GET",
        path="/jobq/{project}/list",
        summary="List jobs, the newest first; finished ones, unless states are named.",
        parameters=(
            *FILTERS,
            Parameter("count", "at most so many", COUNTER),
            Parameter("start", "leave out so many", COUNTER),
            Parameter("stop", "up to this job, without it", JOB_KEY),
            Parameter("key", "these jobs", {"type": "array", "items": JOB_KEY}),
            *SHAPING,
        ),
        answer=lines("The jobs.", QueueEntry),
        host=Host.JOBQ,
    ),
    Operation(
        method="POST",
        path="/jobq/{project}/push",
        summary="Add jobs.",
        parameters=SHAPING,
        body=json_lines(_PUSHED),
        answer=lines("The jobs, or why there is none.", PushedJob),
        errors=(409, 413),
        host=Host.JOBQ,
    ),
    Operation(
        method="POST",
        path="/jobq/{project}/update",
        summary="Change states and metadata of jobs.",
        parameters=SHAPING,
        body=json_lines(_CHANGE),
        answer=lines("The state before, of each job that there is.", {"type": "object"}),
        errors=(409, 413),
        host=Host.JOBQ,
    ),
)

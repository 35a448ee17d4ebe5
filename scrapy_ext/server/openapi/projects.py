"""``/projects``, and what the app host says of projects and callers."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobs import SHOWN_STATES
from scrapy_ext.server.openapi.words import (
    ANY,
    COUNTER,
    DONE,
    JSON,
    NAME,
    NUMBER,
    OBJECT,
    STATE,
    STRING,
    Body,
    Operation,
    Parameter,
    value,
)

_STATES: Final = [state.value for state in SHOWN_STATES]
_SUMMARY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"project": NUMBER, **dict.fromkeys(_STATES, COUNTER), "has_capacity": {"type": "boolean"}},
    "required": ["project", *_STATES, "has_capacity"],
}
_SETTINGS: Final = "/projects/{project}/settings"
_ONE: Final = f"{_SETTINGS}/{{name}}"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/projects/jobsummaries",
        summary="Count the jobs of the projects that have some in these states; those that the key opens.",
        parameters=(Parameter("state", "default: pending and running", {"type": "array", "items": STATE}),),
        answer=value("A count for each state of each project.", {"type": "array", "items": _SUMMARY}),
    ),
    Operation(
        method="GET",
        path="/projects/{project}/jobsummary",
        summary="Count the jobs of a project.",
        answer=value("A count for each state.", _SUMMARY),
    ),
    Operation(method="GET", path=_SETTINGS, summary="Read the settings.", answer=value("All of them.", OBJECT)),
    Operation(
        method="POST",
        path=_SETTINGS,
        summary="Write settings; those that are not named stay.",
        body=Body(JSON, {"type": "object", "propertyNames": NAME}),
        answer=DONE,
        errors=(413,),
    ),
    Operation(method="GET", path=_ONE, summary="Read a setting; null if absent.", answer=value("Its value.", ANY)),
    Operation(method="POST", path=_ONE, summary="Write a setting.", body=Body(JSON, ANY), answer=DONE, errors=(413,)),
    Operation(method="DELETE", path=_ONE, summary="Remove a setting.", answer=DONE),
    Operation(
        method="GET",
        path="/api/scrapyd/listprojects.json",
        summary="List the projects that have jobs; those that the key opens.",
        answer=value(
            "Their numbers.",
            {
                "type": "object",
                "properties": {"status": {"const": "ok"}, "projects": {"type": "array", "items": NUMBER}},
                "required": ["status", "projects"],
            },
        ),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path="/api/v2/users/me",
        summary="Who asks.",
        answer=value(
            "The name of the key.",
            {"type": "object", "properties": {"username": STRING}, "required": ["username"]},
        ),
        host=Host.APP,
    ),
)

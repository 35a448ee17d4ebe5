"""``/activity``."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.openapi.words import (
    COUNT,
    COUNTER,
    DONE,
    FILTERS,
    NUMBER,
    OBJECT,
    SHAPING,
    Operation,
    Parameter,
    json_lines,
    lines,
)

_META: Final = Parameter(
    "meta", "what to add to each message", {"type": "array", "items": {"enum": ["_ts", "_project"]}}
)

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/activity/projects",
        summary="Read messages of several projects, the newest first.",
        parameters=(
            Parameter("p", "the projects (default: all that the key opens)", {"type": "array", "items": NUMBER}),
            Parameter("pcount", "at most so many of each project", COUNTER),
            COUNT,
            _META,
            *FILTERS,
            *SHAPING,
        ),
        answer=lines("The messages.", OBJECT),
    ),
    Operation(
        method="GET",
        path="/activity/{project}",
        summary="Read messages of a project, the newest first.",
        parameters=(COUNT, _META, *FILTERS, *SHAPING),
        answer=lines("The messages.", OBJECT),
    ),
    Operation(
        method="POST",
        path="/activity/{project}",
        summary="Add messages.",
        body=json_lines(OBJECT),
        answer=DONE,
        errors=(413,),
    ),
)

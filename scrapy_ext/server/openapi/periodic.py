"""``/api/projects/<project>/periodicjobs``."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.jobs import MAX_PRIORITY, MIN_PRIORITY
from scrapy_ext.api.platform.periodic import (
    MAX_DESCRIPTION,
    MAX_PER_PAGE,
    MAX_TAGS,
    MAX_TASKS,
    PeriodicJob,
    PeriodicPage,
)
from scrapy_ext.server.openapi.words import (
    COUNTER,
    JSON,
    NAME,
    NUMBER,
    OBJECT,
    PATH_PARTS,
    Answer,
    Body,
    Operation,
    Parameter,
    value,
)

PATH_PARTS["schedule"] = NUMBER

_TASK: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": NAME,
        "priority": {"type": "integer", "minimum": MIN_PRIORITY, "maximum": MAX_PRIORITY},
        "spider_args": OBJECT,
        "script_args": {"type": "string", "description": "with a name that begins with py:"},
        "jobq_id": {"type": ["integer", "null"], "description": "follows from the name"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_FIELDS: Final[dict[str, Any]] = {
    "cron": {"type": "string", "pattern": r"^([0-9]{1,2}|\*)( ([0-9]{1,2}|\*)){4}$"},
    "tasks": {"type": "array", "items": _TASK, "minItems": 1, "maxItems": MAX_TASKS},
    "addtags": {"type": "array", "items": NAME, "maxItems": MAX_TAGS},
    "disabled": {"type": "boolean"},
    "description": {"type": "string", "maxLength": MAX_DESCRIPTION},
}
_SCHEDULE: Final[dict[str, Any]] = {"type": "object", "properties": _FIELDS}
_ALL: Final = "/api/projects/{project}/periodicjobs"
_ONE: Final = f"{_ALL}/{{schedule}}"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path=_ALL,
        summary="Read the periodic jobs of a project, by pages.",
        parameters=(
            Parameter("count", "at most so many", {"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE}),
            Parameter("offset", "leave out so many", COUNTER),
        ),
        answer=value("A page; its next and previous are addresses.", PeriodicPage),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path=_ALL,
        summary="Add a periodic job.",
        body=Body(JSON, {**_SCHEDULE, "required": ["cron", "tasks"]}),
        status=201,
        answer=value("The periodic job.", PeriodicJob),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path=_ONE,
        summary="Read a periodic job.",
        answer=value("The periodic job.", PeriodicJob),
        host=Host.APP,
    ),
    Operation(
        method="PATCH",
        path=_ONE,
        summary="Change fields of a periodic job; those that are not named stay.",
        body=Body(JSON, _SCHEDULE),
        answer=value("The periodic job.", PeriodicJob),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="DELETE",
        path=_ONE,
        summary="Remove a periodic job.",
        status=204,
        answer=Answer("It is gone."),
        host=Host.APP,
    ),
)

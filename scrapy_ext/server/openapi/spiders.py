"""``/ids``, ``/spiders`` and ``/api/…/spiders``."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.server.openapi.jobq import JOB_LINE, JOBMETA
from scrapy_ext.server.openapi.words import (
    COUNT,
    FLAG,
    JSON,
    NAME,
    NUMBER,
    SHAPING,
    STRING,
    STRINGS,
    Body,
    Operation,
    Parameter,
    lines,
    value,
)

_PLACE: Final[dict[str, Any]] = {"type": "string", "pattern": r"^([0-9]{1,18}/)?[0-9]{1,18}$"}
_LAST_JOBS: Final = (
    Parameter("start", "from this spider on: its number, or <project>/<spider>", _PLACE),
    Parameter("startafter", "behind this spider", _PLACE),
    COUNT,
    JOBMETA,
    *SHAPING,
)
_TIME: Final[dict[str, Any]] = {"type": ["string", "null"]}
_TAGS: Final[dict[str, Any]] = {"type": "array", "items": NAME}
_LISTED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"id": STRING, "tags": STRINGS, "type": STRING, "version": {"type": ["string", "null"]}},
    "required": ["id", "tags"],
}
_SPIDER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"id": NUMBER, "name": STRING, "tags": STRINGS, "created_at": _TIME, "modified_at": _TIME},
    "required": ["id", "name", "tags"],
}
_ONE: Final = "/api/v2/projects/{project}/spiders/{spider}"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/ids/{project}/spider/{name}",
        summary="The number of a spider.",
        parameters=(Parameter("create", "give it a number if it has none; a key that may write is needed", FLAG),),
        answer=value("The number; null if it has none.", {"type": ["integer", "null"]}),
    ),
    Operation(
        method="GET",
        path="/spiders/{project}/lastjobsummary",
        summary="Of each spider the job that finished last.",
        parameters=_LAST_JOBS,
        answer=lines("The jobs.", JOB_LINE),
    ),
    Operation(
        method="GET",
        path="/spiders/{project}/{spider}/lastjobsummary",
        summary="The job of a spider that finished last.",
        parameters=(COUNT, JOBMETA, *SHAPING),
        answer=lines("The job, if there is one.", JOB_LINE),
    ),
    Operation(
        method="GET",
        path="/api/spiders/list.json",
        summary="List the spiders of the current version; without one, those that jobs and schedules have named.",
        parameters=(
            Parameter("project", "the project", NUMBER, required=True),
            Parameter("spider", "only spiders with these names", STRINGS),
        ),
        answer=value(
            "The spiders.",
            {
                "type": "object",
                "properties": {"status": {"const": "ok"}, "spiders": {"type": "array", "items": _LISTED}},
                "required": ["status", "spiders"],
            },
        ),
        host=Host.APP,
    ),
    Operation(method="GET", path=_ONE, summary="Read a spider.", answer=value("The spider.", _SPIDER), host=Host.APP),
    Operation(
        method="PATCH",
        path=f"{_ONE}/tags",
        summary="Add tags to a spider and remove tags.",
        body=Body(JSON, {"type": "object", "properties": {"add": _TAGS, "remove": _TAGS}}, "One of the two, or both."),
        answer=value("The spider.", _SPIDER),
        errors=(413,),
        host=Host.APP,
    ),
)

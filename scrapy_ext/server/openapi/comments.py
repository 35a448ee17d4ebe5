"""``/api/comments``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.server.openapi.words import (
    COUNTER,
    FORM,
    PATH_PARTS,
    STRING,
    Body,
    Operation,
    value,
)
from scrapy_ext.server.platform.comments import MAX_TEXT

PATH_PARTS["item"] = COUNTER
PATH_PARTS["comment"] = {"type": "string", "pattern": "^[0-9]{1,19}-[0-9]{1,19}$"}

_COMMENT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"id": PATH_PARTS["comment"], "text": STRING, "created": STRING, "author": STRING},
    "required": ["id", "text", "created", "author"],
}
_COMMENTS: Final[dict[str, Any]] = {"type": "array", "items": _COMMENT}
_DELETED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"status": {"const": "ok"}, "count": COUNTER},
    "required": ["status", "count"],
}
_TEXT: Final = Body(
    FORM,
    {
        "type": "object",
        "properties": {"text": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}},
        "required": ["text"],
    },
)
_JOB: Final = "/api/comments/{project}/{spider}/{job}"
_ONE: Final = "/api/comments/{comment}"


def _at(path: str, what: str) -> Iterator[Operation]:
    yield Operation(
        method="GET",
        path=path,
        summary=f"Read the comments on {what}, the oldest first.",
        answer=value("The comments.", _COMMENTS),
        host=Host.APP,
    )
    yield Operation(
        method="POST",
        path=path,
        summary=f"Comment on {what}.",
        body=_TEXT,
        status=201,
        answer=value("The comment.", _COMMENT),
        errors=(413,),
        host=Host.APP,
    )
    yield Operation(
        method="DELETE",
        path=path,
        summary=f"Delete the comments on {what}.",
        answer=value("How many were deleted.", _DELETED),
        host=Host.APP,
    )


OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/api/comments/{project}/stats",
        summary="Count the items with comments.",
        answer=value("The number for each job.", {"type": "object", "additionalProperties": COUNTER}),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path=_JOB,
        summary="Read the comments on the items of a job.",
        answer=value("Comments by <item> and <item>/<field>.", {"type": "object", "additionalProperties": _COMMENTS}),
        host=Host.APP,
    ),
    *_at(f"{_JOB}/{{item}}", "an item"),
    *_at(f"{_JOB}/{{item}}/{{field}}", "a field of an item"),
    Operation(method="GET", path=_ONE, summary="Read a comment.", answer=value("It.", _COMMENT), host=Host.APP),
    Operation(
        method="PUT",
        path=_ONE,
        summary="Replace the text of a comment.",
        body=_TEXT,
        answer=value("The comment.", _COMMENT),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="DELETE", path=_ONE, summary="Delete a comment.", answer=value("It is gone.", _DELETED), host=Host.APP
    ),
)

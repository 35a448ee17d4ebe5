"""``/api/projects/<project>/webhooks``, which are this package's own."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.webhooks import MAX_EVENTS, MAX_URL, Delivery, Webhook
from scrapy_ext.server.openapi.words import (
    JSON,
    NUMBER,
    PATH_PARTS,
    Answer,
    Body,
    Operation,
    Parameter,
    list_of,
    value,
)

PATH_PARTS["webhook"] = NUMBER

_NEW: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "url": {
            "type": "string",
            "pattern": r"^https?://[A-Za-z0-9.\-]+(:[1-9][0-9]{0,3})?/[0-9A-Za-z%/._~?=&\-]*$",
            "maxLength": MAX_URL,
        },
        "events": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^([A-Za-z0-9_.:\-]{1,100}\*?|\*)$"},
            "minItems": 1,
            "maxItems": MAX_EVENTS,
        },
    },
    "required": ["url", "events"],
    "additionalProperties": False,
}
_CHANGE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"disabled": {"type": "boolean"}},
    "required": ["disabled"],
    "additionalProperties": False,
}
_ALL: Final = "/api/projects/{project}/webhooks"
_ONE: Final = f"{_ALL}/{{webhook}}"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path=_ALL,
        summary="Read the webhooks of a project.",
        answer=value("The webhooks, without their secrets.", list_of(Webhook)),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path=_ALL,
        summary="Add a webhook.",
        body=Body(JSON, _NEW),
        status=201,
        answer=value("The webhook, with its secret, which is not shown again.", Webhook),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path=_ONE,
        summary="Read a webhook.",
        answer=value("The webhook, without its secret.", Webhook),
        host=Host.APP,
    ),
    Operation(
        method="PATCH",
        path=_ONE,
        summary="Disable a webhook, which forgets what it was to be told, or enable it.",
        body=Body(JSON, _CHANGE),
        answer=value("The webhook.", Webhook),
        errors=(413,),
        host=Host.APP,
    ),
    Operation(
        method="DELETE",
        path=_ONE,
        summary="Remove a webhook.",
        status=204,
        answer=Answer("It is gone."),
        host=Host.APP,
    ),
    Operation(
        method="POST",
        path=f"{_ONE}/test",
        summary="Send a test to a webhook; the deliveries tell what came of it.",
        status=202,
        answer=value("The delivery, which is sent now.", Delivery),
        host=Host.APP,
    ),
    Operation(
        method="GET",
        path=f"{_ONE}/deliveries",
        summary="Read what was sent to a webhook lately, and what is to be sent, newest first.",
        parameters=(Parameter("count", "at most so many", {"type": "integer", "minimum": 1, "maximum": 1000}),),
        answer=value("The deliveries.", list_of(Delivery)),
        host=Host.APP,
    ),
)

"""What is about the server itself."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.server.openapi.words import COUNTER, OBJECT, STRING, TEXT, Answer, Operation, value

_READY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"status": {"enum": ["ok", "unavailable"]}, "message": STRING},
    "required": ["status"],
}
_TAG: Final = "server"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/system/ts",
        summary="The server's time.",
        tag=_TAG,
        open=True,
        answer=Answer("Milliseconds since 1970.", {TEXT: COUNTER}),
    ),
    Operation(
        method="GET",
        path="/healthz",
        summary="Whether the process is up.",
        tag=_TAG,
        open=True,
        answer=Answer("It is.", {TEXT: STRING}),
    ),
    Operation(
        method="GET",
        path="/readyz",
        summary="Whether data can be read and written; 503 when not, with the reason for a key that opens all.",
        tag=_TAG,
        open=True,
        answer=value("It can.", _READY),
    ),
    Operation(
        method="GET",
        path="/metrics",
        summary="Numbers for Prometheus; a platform key that opens all projects is needed.",
        tag=_TAG,
        answer=Answer("The numbers.", {TEXT: STRING}),
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        summary="This description.",
        tag=_TAG,
        open=True,
        answer=value("The description.", OBJECT),
    ),
)

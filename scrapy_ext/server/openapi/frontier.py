"""``/hcf``."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.frontier import NAME_PATTERN, Batch, Fingerprint, FrontierRequest, NewCount, QueueCount
from scrapy_ext.server.openapi.words import (
    COUNTER,
    DONE,
    PATH_PARTS,
    SHAPING,
    STRING,
    STRINGS,
    Operation,
    Parameter,
    json_lines,
    lines,
    value,
)

_NAME: Final[dict[str, Any]] = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
PATH_PARTS["frontier"] = _NAME
PATH_PARTS["slot"] = _NAME

_SLOT: Final = "/hcf/{project}/{frontier}/s/{slot}"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/hcf/{project}/list",
        summary="List the frontiers of a project.",
        answer=value("Their names.", STRINGS),
    ),
    Operation(
        method="GET",
        path="/hcf/{project}/{frontier}/list",
        summary="List the slots of a frontier.",
        answer=value("Their names.", STRINGS),
    ),
    Operation(
        method="POST",
        path=_SLOT,
        summary="Add requests whose fingerprints the slot does not know.",
        body=json_lines(FrontierRequest),
        answer=value("How many were new.", NewCount),
        errors=(413,),
    ),
    Operation(method="DELETE", path=_SLOT, summary="Delete a slot.", answer=DONE),
    Operation(
        method="GET",
        path=f"{_SLOT}/q",
        summary="Read batches of requests; the same ones until they are deleted.",
        parameters=(
            Parameter("mincount", "at least so many requests, if there are", COUNTER),
            Parameter("startafter", "the ID of a batch: only batches behind it", STRING),
            Parameter("meta", "_p: add the priority of a batch's requests", STRING),
            *SHAPING,
        ),
        answer=lines("Batches.", Batch),
    ),
    Operation(
        method="GET",
        path=f"{_SLOT}/q/count",
        summary="Count the requests in the queue.",
        parameters=(Parameter("start", "the nextstart of a count before", STRING),),
        answer=value("The number; with nextstart, counting goes on there.", QueueCount),
    ),
    Operation(
        method="POST",
        path=f"{_SLOT}/q/deleted",
        summary="Delete batches that were processed.",
        body=json_lines({"anyOf": [STRING, STRINGS]}, "IDs of batches."),
        answer=DONE,
        errors=(413,),
    ),
    Operation(
        method="GET",
        path=f"{_SLOT}/f",
        summary="List the fingerprints of a slot, in their order.",
        parameters=SHAPING,
        answer=lines("The fingerprints.", Fingerprint),
    ),
)

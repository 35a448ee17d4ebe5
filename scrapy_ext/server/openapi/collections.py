"""``/collections``."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext.api.platform.collections import NAME_PATTERN, CollectionName, CollectionType, Count
from scrapy_ext.server.openapi.words import (
    COUNT,
    COUNTER,
    DONE,
    FILTERS,
    META,
    NAME,
    NODATA,
    OBJECT,
    PATH_PARTS,
    SHAPING,
    SHAPING_OR_MSGPACK,
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

_NAME: Final[dict[str, Any]] = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
PATH_PARTS["type"] = {"enum": [kind.value for kind in CollectionType]}
PATH_PARTS["collection"] = _NAME

_SELECTING: Final = (
    Parameter("key", "records with these keys", STRINGS),
    Parameter("prefix", "records whose keys begin so", STRINGS),
    Parameter("prefixcount", "at most so many for each prefix", COUNTER),
    Parameter("startts", "stored at this time (ms) or later", COUNTER),
    Parameter("endts", "stored before this time (ms)", COUNTER),
    Parameter("start", "from this key on", STRING),
    Parameter("startafter", "behind this key", STRING),
)
_RECORD: Final[dict[str, Any]] = {"type": "object", "properties": {"_key": NAME}, "required": ["_key"]}
_DELETED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"deleted": COUNTER, "scanned": COUNTER, "nextstart": STRING},
    "required": ["deleted", "scanned"],
}
_WHOLE: Final = "/collections/{project}/{type}/{collection}"
_ONE: Final = f"{_WHOLE}/{{key}}"

OPERATIONS: Final = (
    Operation(
        method="GET",
        path="/collections/{project}/list",
        summary="List the collections of a project.",
        parameters=SHAPING,
        answer=lines("Their types and names.", CollectionName),
    ),
    Operation(
        method="GET",
        path=_WHOLE,
        summary="Read records, in the order of their keys.",
        parameters=(*_SELECTING, *FILTERS, COUNT, META, NODATA, *SHAPING_OR_MSGPACK),
        answer=lines("The records.", OBJECT, msgpack=True),
    ),
    Operation(
        method="POST",
        path=_WHOLE,
        summary="Write records.",
        body=json_lines(_RECORD),
        answer=DONE,
        errors=(413,),
    ),
    Operation(
        method="DELETE",
        path=_WHOLE,
        summary="Delete the records that are selected.",
        parameters=_SELECTING,
        answer=value("How many were deleted.", _DELETED),
    ),
    Operation(
        method="GET",
        path=f"{_WHOLE}/count",
        summary="Count records.",
        parameters=(*_SELECTING, *FILTERS),
        answer=value("The number; with nextstart, counting goes on there.", Count),
    ),
    Operation(
        method="POST",
        path=f"{_WHOLE}/deleted",
        summary="Delete records by their keys.",
        body=json_lines({"anyOf": [STRING, STRINGS]}),
        answer=DONE,
        errors=(413,),
    ),
    Operation(
        method="GET",
        path=_ONE,
        summary="Read a record.",
        parameters=(
            Parameter("copies", "at most so many of the copies that vs and vcs keep, the newest first", COUNTER),
            META,
            NODATA,
            *SHAPING_OR_MSGPACK,
        ),
        answer=lines("The record; with copies, those that there are.", OBJECT, msgpack=True),
    ),
    Operation(
        method="POST",
        path=_ONE,
        summary="Write a record.",
        body=Body("application/x-jsonlines", _RECORD, "One record."),
        answer=DONE,
        errors=(413,),
    ),
    Operation(method="DELETE", path=_ONE, summary="Delete a record.", answer=DONE),
    Operation(
        method="GET",
        path=f"{_ONE}/value",
        summary="Read the field named value of a record.",
        answer=Answer("Its value.", {TEXT: STRING}),
    ),
    Operation(
        method="POST",
        path="/collections/{project}/delete",
        summary="Delete a collection.",
        parameters=(Parameter("name", "its name", _NAME, required=True),),
        status=202,
        answer=value("It is gone.", OBJECT),
    ),
    Operation(
        method="POST",
        path="/collections/{project}/rename",
        summary="Rename a collection.",
        parameters=(
            Parameter("name", "its name", _NAME, required=True),
            Parameter("new_name", "its new name", _NAME, required=True),
        ),
        answer=value("It has its new name.", OBJECT),
        errors=(409,),
    ),
)

"""``/items``, ``/requests`` and ``/logs``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from scrapy_ext.api.platform.logs import LogRecord
from scrapy_ext.api.platform.requests import RequestRecord
from scrapy_ext.api.platform.stats import Stats
from scrapy_ext.server.openapi.words import (
    ANY,
    COUNT,
    COUNTER,
    DONE,
    ENTITY_KEY,
    FILTER,
    FLAG,
    META,
    NODATA,
    OBJECT,
    RECORD_TOO_LARGE,
    SHAPING,
    Operation,
    Parameter,
    json_lines,
    lines,
    value,
)

_READING: Final = (
    COUNT,
    Parameter("index", "records with these numbers", {"type": "array", "items": COUNTER}),
    Parameter("start", "from this key on", ENTITY_KEY),
    Parameter("startafter", "behind this key", ENTITY_KEY),
    META,
    NODATA,
    FILTER,
    *SHAPING,
)
_WRITING: Final = (
    Parameter("start", "the number of the first record; a write that is sent again is stored once", COUNTER),
    Parameter(
        "Content-Range",
        "the same as a header: items <start>-/*",
        {"type": "string", "pattern": r"^items [0-9]{1,18}-/\*$"},
        "header",
    ),
)


def _of(resource: str, record: Any, what: str) -> Iterator[Operation]:
    levels = ("/{project}", "/{project}/{spider}", "/{project}/{spider}/{job}")
    for level in levels:
        yield Operation(
            method="GET",
            path=f"/{resource}{level}",
            summary=f"Read {what}, in the order of their keys.",
            parameters=_READING,
            answer=lines(f"The {what}; with nodata, only what meta adds.", OBJECT),
        )
    job = f"/{resource}{levels[-1]}"
    yield Operation(
        method="POST",
        path=job,
        summary=f"Add {what} to a job.",
        parameters=_WRITING,
        body=json_lines(record, f"One record a line, none {RECORD_TOO_LARGE}."),
        answer=DONE,
        errors=(409, 413),
    )
    yield Operation(
        method="GET",
        path=f"{job}/stats",
        summary=f"How many {what} a job has, how large they are, and how often each field occurs.",
        parameters=(Parameter("all", "hidden fields too", FLAG),),
        answer=value("The stats.", Stats),
    )
    yield Operation(
        method="GET",
        path=f"{job}/{{index}}",
        summary="Read one record.",
        parameters=(META, NODATA, *SHAPING),
        answer=lines("The record; with nodata, only what meta adds.", OBJECT),
    )
    yield Operation(
        method="GET",
        path=f"{job}/{{index}}/{{field}}",
        summary="Read a field of one record.",
        parameters=SHAPING,
        answer=lines("Its value.", ANY),
    )
    yield Operation(
        method="GET",
        path=f"{job}/{{field}}",
        summary="Read a field of all records that have it.",
        parameters=(COUNT, *SHAPING),
        answer=lines("Its values.", ANY),
    )


OPERATIONS: Final = (
    *_of("items", OBJECT, "items"),
    *_of("requests", RequestRecord, "request records"),
    *_of("logs", LogRecord, "log lines"),
)

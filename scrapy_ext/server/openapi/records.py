"""``/items``, ``/requests``, ``/logs`` and ``/samples``."""

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
    FILTERS,
    FLAG,
    META,
    NODATA,
    OBJECT,
    RECORD_TOO_LARGE,
    SHAPING,
    SHAPING_OR_MSGPACK,
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
)
_CHOOSING: Final = (META, NODATA, *FILTERS)
_WINDOW: Final = (
    Parameter("startts", "with this time (ms) or a later one", COUNTER),
    Parameter("endts", "with an earlier time (ms)", COUNTER),
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
_LEVELS: Final = ("/{project}", "/{project}/{spider}", "/{project}/{spider}/{job}")
_SAMPLE: Final[dict[str, Any]] = {"type": "array", "prefixItems": [{"type": "number", "minimum": 0}], "minItems": 1}


def _add(resource: str, record: Any, what: str) -> Operation:
    return Operation(
        method="POST",
        path=f"/{resource}{_LEVELS[-1]}",
        summary=f"Add {what} to a job.",
        parameters=_WRITING,
        body=json_lines(record, f"One record a line, none {RECORD_TOO_LARGE}."),
        answer=DONE,
        errors=(409, 413),
    )


def _of(resource: str, record: Any, what: str, *, msgpack: bool = True) -> Iterator[Operation]:
    shaping = SHAPING_OR_MSGPACK if msgpack else SHAPING
    for level in _LEVELS:
        yield Operation(
            method="GET",
            path=f"/{resource}{level}",
            summary=f"Read {what}, in the order of their keys.",
            parameters=(*_READING, *_CHOOSING, *shaping),
            answer=lines(f"The {what}; with nodata, only what meta adds.", OBJECT, msgpack=msgpack),
        )
    yield _add(resource, record, what)
    job = f"/{resource}{_LEVELS[-1]}"
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
        parameters=(*_CHOOSING, *shaping),
        answer=lines("The record; with nodata, only what meta adds.", OBJECT, msgpack=msgpack),
    )
    yield Operation(
        method="GET",
        path=f"{job}/{{index}}/{{field}}",
        summary="Read a field of one record.",
        parameters=shaping,
        answer=lines("Its value.", ANY, msgpack=msgpack),
    )
    yield Operation(
        method="GET",
        path=f"{job}/{{field}}",
        summary="Read a field of all records that have it.",
        parameters=(*_READING, *FILTERS, *shaping),
        answer=lines("Its values.", ANY, msgpack=msgpack),
    )


def _samples() -> Iterator[Operation]:
    for level in _LEVELS:
        yield Operation(
            method="GET",
            path=f"/samples{level}",
            summary="Read samples, in the order of their keys.",
            parameters=(*_READING, *_WINDOW, *SHAPING_OR_MSGPACK),
            answer=lines("The samples.", {"type": "array"}, msgpack=True),
        )
    yield _add("samples", _SAMPLE, "samples")
    yield Operation(
        method="GET",
        path=f"/samples{_LEVELS[-1]}/{{index}}",
        summary="Read one sample.",
        parameters=(*_WINDOW, *SHAPING_OR_MSGPACK),
        answer=lines("The sample.", {"type": "array"}, msgpack=True),
    )


OPERATIONS: Final = (
    *_of("items", OBJECT, "items"),
    *_of("requests", RequestRecord, "request records", msgpack=False),
    *_of("logs", LogRecord, "log lines"),
    *_samples(),
)

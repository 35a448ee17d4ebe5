"""Parameters, bodies and answers for declarations of routes, and the schemas that several routes share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Union, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from scrapy_ext.api.platform import collections, frontier
from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.formats import CONTENT_TYPES, FILE_FORMATS, TEXT_FORMATS, Format
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import MAX_NUMBER

Schema = dict[str, Any]

JSON: Final = "application/json"
JSON_LINES: Final = CONTENT_TYPES[Format.JSON_LINES]
TEXT: Final = CONTENT_TYPES[Format.TEXT]
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


def record(properties: Schema, *required: str, only: bool = False) -> Schema:
    """Return the schema of a JSON object; with ``only``, it has no other fields."""
    names = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **names, **({"additionalProperties": False} if only else {})}


def whole(**properties: Schema) -> Schema:
    """Return the schema of a JSON object that has all of these fields."""
    return record(properties, *properties)


def some_of(record: type[msgspec.Struct], name: str) -> type[msgspec.Struct]:
    """Return the shape of a change, which has some fields of a record."""
    hints = get_type_hints(record, include_extras=True)
    fields = [(each, Union[hints[each], UnsetType], UNSET) for each in record.__struct_fields__]  # noqa: UP007
    return msgspec.defstruct(name, fields, kw_only=True)


def array(items: Schema, *, least: int | None = None, most: int | None = None) -> Schema:
    bounds = {"minItems": least, "maxItems": most}
    return {"type": "array", "items": items} | {name: bound for name, bound in bounds.items() if bound is not None}


NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}
COUNTER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
STRING: Final[Schema] = {"type": "string"}
NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 255}
STRINGS: Final[Schema] = array({"type": "string"})
OBJECT: Final[Schema] = {"type": "object"}
ANY: Final[Schema] = {}
FLAG: Final[Schema] = {"enum": ["1", "Y"]}
JOB_KEY: Final[Schema] = {"type": "string", "pattern": r"^(0|[1-9][0-9]{0,18})(/(0|[1-9][0-9]{0,18})){2}$"}
ENTITY_KEY: Final[Schema] = {"type": "string", "pattern": r"^(0|[1-9][0-9]{0,18})(/(0|[1-9][0-9]{0,18})){3}$"}
STATE: Final[Schema] = {"enum": [state.value for state in JobState]}
COLLECTION_NAME: Final[Schema] = {"type": "string", "pattern": f"^{collections.NAME_PATTERN}$"}
FRONTIER_NAME: Final[Schema] = {"type": "string", "pattern": f"^{frontier.NAME_PATTERN}$"}


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter, or a header. A repeatable one has an array schema."""

    name: str
    meaning: str
    schema: Schema
    place: str = "query"
    required: bool = False


class Many(msgspec.Struct, frozen=True):
    """An array of one shape."""

    item: object


class Body(msgspec.Struct, frozen=True):
    """A body: a content type, and a schema or a type of ``api/``. JSON lines have the array of their values."""

    kind: str
    shape: object
    meaning: str = ""


class AnswerShape(msgspec.Struct, frozen=True):
    """An answer: its meaning, and its shape for each content type; without any, the body is empty."""

    meaning: str
    bodies: Mapping[str, Any] = {}


#: Variable parts of paths.
PATH_PARTS: Final[dict[str, Schema]] = {
    "project": NUMBER,
    "spider": NUMBER,
    "job": NUMBER,
    "item": COUNTER,
    "index": COUNTER,
    "schedule": NUMBER,
    "webhook": NUMBER,
    "rule": NUMBER,
    "user": NUMBER,
    "target": NUMBER,
    "number": NUMBER,
    "field": NAME,
    "key": NAME,
    "name": NAME,
    "state": STATE,
    "type": {"enum": [kind.value for kind in CollectionType]},
    "collection": COLLECTION_NAME,
    "frontier": FRONTIER_NAME,
    "slot": FRONTIER_NAME,
    "comment": {"type": "string", "pattern": "^[0-9]{1,19}-[0-9]{1,19}$"},
    "version": {"type": "string", "pattern": r"^[A-Za-z0-9_.+!\-]{1,100}$"},
}

# ── parameters of several paths ──

COUNT: Final = Parameter("count", "at most so many results", COUNTER)
META: Final = Parameter("meta", "what to add to each result", array({"enum": ["_key", "_ts"]}))
NODATA: Final = Parameter("nodata", "only what meta adds", FLAG)


def page_size(most: int) -> Parameter:
    """Return the parameter of :meth:`Call.page_size`."""
    return Parameter("count", "at most so many", {"type": "integer", "minimum": 1, "maximum": most})


def _format(kinds: Iterable[Format]) -> Parameter:
    schema = {"enum": [kind.value for kind in kinds]}
    return Parameter("format", "the format of the result; before the header Accept", schema)


#: A parameter of every read.
SAVE_AS: Final = Parameter(
    "saveas", "a file name for browsers", {"type": "string", "pattern": r"^[A-Za-z0-9_.\-]{1,255}$"}
)
_AS_TEXT: Final = (
    Parameter("fields", "csv, parquet, xlsx: the columns, joined by commas (required for csv)", STRING),
    Parameter("include_headers", "csv: names of the columns first", FLAG),
    *(
        Parameter(name, f"csv: {meaning}", {"type": "string", "minLength": 1, "maxLength": 1})
        for name, meaning in (
            ("sep", "between cells"),
            ("quote", "around cells"),
            ("escape", "before quotes (default: the same)"),
        )
    ),
    Parameter("lineend", "csv: after each row", {"type": "string", "minLength": 1, "maxLength": 2}),
    SAVE_AS,
)
#: The format of a result, in the formats of all resources.
SHAPING: Final = (_format(TEXT_FORMATS), *_AS_TEXT)


#: Statuses of files: over the limit of the temporary file, or without the library of the format.
FILE_ERRORS: Final = (413, 501)


def shaping(*, msgpack: bool, files: bool) -> tuple[Parameter, ...]:
    """Return the parameters of a result that some resources offer in further formats."""
    return (_format([*TEXT_FORMATS, *_further(msgpack, files)]), *_AS_TEXT)


def _further(msgpack: bool, files: bool) -> Sequence[Format]:
    return [*([Format.MSGPACK] if msgpack else ()), *(FILE_FORMATS if files else ())]


_CONDITION: Final = "a condition as JSON, [field, operator, [arguments]]"
FILTERS: Final = (
    Parameter("filter", f"{_CONDITION}, that must be met", STRINGS),
    Parameter("filterall", "the same as filter", STRINGS),
    Parameter("filterany", f"{_CONDITION}; of several one must be met", STRINGS),
    Parameter("where", "conditions as people type them, such as price > 20 and name ~ kettle", STRINGS),
)


# ── answers of several paths ──

DONE: Final = AnswerShape("It is stored, and synced to disk.", {TEXT: STRING})


def value(meaning: str, shape: object) -> AnswerShape:
    return AnswerShape(meaning, {JSON: shape})


def lines(meaning: str, shape: object, *, msgpack: bool = False, files: bool = False) -> AnswerShape:
    """Return the shape of results in a format of choice; ``shape`` is that of one result."""
    many = Many(shape)
    rest = {CONTENT_TYPES[kind]: STRING for kind in (Format.XML, Format.CSV, Format.TEXT)}
    packed = {CONTENT_TYPES[kind]: ANY for kind in _further(msgpack, files)}
    return AnswerShape(meaning, {JSON_LINES: many, JSON: many, **rest, **packed})


def json_lines(shape: object, meaning: str = "") -> Body:
    """Return the shape of a body of JSON lines; ``shape`` is that of one line."""
    return Body(JSON_LINES, Many(shape), meaning)

"""Tools that read collections, which hold records by their keys."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from scrapy_ext.api.platform.collections import CollectionName
from scrapy_ext.api.violations import refused
from scrapy_ext.server.mcp.results import Record, Result, numbered, offset_of, records_result
from scrapy_ext.server.mcp.services import (
    JSON_LINES,
    ApiCall,
    ApiError,
    Services,
    decoded_json,
    lines_of,
    pairs,
    path_of,
)
from scrapy_ext.server.mcp.tool import Listing, Project, Tools
from scrapy_ext.server.mcp.tools.records import Filter, conditions_of, facts_of_filter

TOOLS: Final = Tools()

#: Characters of a key, and of a cursor with one.
_MOST_KEY: Final = 4096
_MOST_CURSOR: Final = 6 * _MOST_KEY


class ListCollections(Listing, frozen=True, kw_only=True):
    project: Project


@TOOLS.add(
    "list_collections",
    "List collections",
    "List the collections of a project: name, and type (s, cs, vs or vcs), which list_collection_records takes.",
    ListCollections,
    idempotent=True,
)
async def _list_collections(services: Services, arguments: ListCollections) -> Result:
    path = path_of("collections", arguments.project, "list")
    answer = await services.call(ApiCall(path=path, accept=JSON_LINES))
    names = [decoded_json(line, CollectionName) for line in lines_of(answer)]
    start = offset_of(arguments.cursor)
    shown = names[start : start + arguments.limit]
    more = start + len(shown) < len(names) or not answer.is_whole
    return records_result(numbered(shown, start), arguments.max_bytes, {"total": len(names)}, more=more)


class ListCollectionRecords(Listing, frozen=True, kw_only=True):
    project: Project
    collection: Annotated[str, Meta(pattern="^[A-Za-z0-9_]{1,255}$", description="Name of the collection.")]
    type: Annotated[Literal["s", "cs", "vs", "vcs"], Meta(description="Type of the collection.")] = "s"
    prefix: Annotated[str, Meta(max_length=_MOST_KEY, description="Only records whose keys begin so.")] | None = None
    filter: Filter = msgspec.field(default_factory=list)
    cursor: (
        Annotated[
            str,
            Meta(
                max_length=_MOST_CURSOR,
                description="The next_cursor of the result before, with otherwise equal arguments.",
            ),
        ]
        | None
    ) = None


@TOOLS.add(
    "list_collection_records",
    "List records of a collection",
    "List the records of a collection in the order of their keys (_key), one JSON object a line. With a filter, the "
    "platform reads all records until enough are found.",
    ListCollectionRecords,
    idempotent=True,
)
async def _list_collection_records(services: Services, arguments: ListCollectionRecords) -> Result:
    filters = conditions_of(arguments.filter)
    count = arguments.limit if filters else arguments.limit + 1
    query = pairs(
        ("count", count),
        ("startafter", None if arguments.cursor is None else _key_of(arguments.cursor)),
        ("prefix", arguments.prefix),
        ("meta", "_key"),
        ("filter", [msgspec.json.encode(each).decode() for each in filters]),
    )
    path = path_of("collections", arguments.project, arguments.type, arguments.collection)
    answer = await services.call(ApiCall(path=path, query=query, accept=JSON_LINES))
    lines = lines_of(answer)
    records = [_record(line) for line in lines[: arguments.limit]]
    more = len(lines) == count or not answer.is_whole
    return records_result(records, arguments.max_bytes, facts_of_filter(filters), more=more)


def _record(line: bytes) -> Record:
    key = decoded_json(line, dict[str, Any]).get("_key")
    if not isinstance(key, str):
        raise ApiError("The platform returned a record without a key. Check that PLATFORM_URL leads to it.")
    # A key may be text of a website, which is not for the facts.
    return Record(base64.urlsafe_b64encode(key.encode()).decode(), line.decode("utf-8", "replace"))


def _key_of(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise refused(
            "cursor", "is not a cursor of this tool", "Send the next_cursor of the result before, or none."
        ) from None

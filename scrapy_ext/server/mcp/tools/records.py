"""Tools about the records of jobs: items and log."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.api.violations import refused
from scrapy_ext.server.mcp.results import Record, Result, records_result
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
from scrapy_ext.server.mcp.tool import Job, Listing, Tools
from scrapy_ext.server.mcp.tools.jobs import listed_job

TOOLS: Final = Tools()

#: The key that the platform adds, after the members of an item and before those of a log record.
_KEY_LAST: Final = re.compile(rb',?"_key":"([0-9/]{1,90})"\}\s*$')
_KEY_FIRST: Final = re.compile(rb'^\{"_key":"([0-9/]{1,90})",?')
#: Characters of the name of a missing field.
_SHOWN: Final = 60
_NO_MATCH: Final = "No item meets the conditions. Names of fields must be as the items have them, also in case."


class ListItems(Listing, frozen=True, kw_only=True):
    job: Job
    fields: Annotated[
        list[str],
        Meta(
            max_length=100,
            description="Only these fields of each item; all by default. The fact missing_fields has those that no "
            "item of the result has.",
        ),
    ] = msgspec.field(default_factory=list)
    filter: Annotated[
        list[list[Any]],
        Meta(
            max_length=20,
            description="Conditions that all must be met: [field, operator, [arguments]]. Operators: = != > >= < <= "
            "contains icontains matches haselement hasnotelement exists notexists isempty isnotempty. Example: "
            '[["price", ">", [20]], ["name", "icontains", ["lamp"]]].',
        ),
    ] = msgspec.field(default_factory=list)


@TOOLS.add(
    "list_items",
    "List items",
    "List the items that a job has scraped, in their order, one JSON object a line. With a filter, the platform reads "
    "all items until enough are found. Of a running job, last_cursor continues when it has stored more.",
    ListItems,
    idempotent=True,
)
async def _list_items(services: Services, arguments: ListItems) -> Result:
    return await _records(services, "items", arguments, arguments.filter, frozenset(arguments.fields))


class ListLog(Listing, frozen=True, kw_only=True):
    job: Job
    level: Annotated[
        int, Meta(ge=0, le=50, description="Least level: 10 debug, 20 info, 30 warning, 40 error, 50 critical.")
    ] = 20


@TOOLS.add(
    "list_log",
    "List the log of a job",
    "List the log records of a job from a level on, in their order. Times are milliseconds since 1970. Of a running "
    "job, last_cursor continues when it has logged more.",
    ListLog,
    idempotent=True,
)
async def _list_log(services: Services, arguments: ListLog) -> Result:
    levels = [["level", ">=", [arguments.level]]] if arguments.level else []
    return await _records(services, "logs", arguments, levels, frozenset())


async def _records(
    services: Services, kind: str, arguments: ListItems | ListLog, filters: list[list[Any]], fields: frozenset[str]
) -> Result:
    key = JobKey.parse(arguments.job)
    after = arguments.cursor
    if after is not None and EntityKey.parse(after, "cursor").job_key != key:
        raise refused("cursor", "is of another job", "Send the next_cursor of the result before, or none.")
    # One more shows that there are more; with a filter, the platform could read a whole job to find it.
    count = arguments.limit if filters else arguments.limit + 1
    query = pairs(
        ("count", count),
        ("startafter", after),
        ("meta", "_key"),
        ("filter", [msgspec.json.encode(each).decode() for each in filters]),
    )
    answer = await services.call(ApiCall(path=path_of(kind, *key), query=query, accept=JSON_LINES))
    lines = lines_of(answer)
    if not lines and not answer.is_whole:
        raise ApiError(
            f"A record has over {len(answer.body)} bytes, which is more than a tool reads. Read it with scrapy "
            "platform items."
        )
    facts: dict[str, Any] = {}
    if not lines and after is None:
        await listed_job(services, key)  # a job that does not exist has no records either
        if filters and isinstance(arguments, ListItems):
            facts["note"] = _NO_MATCH
    more = len(lines) == count or not answer.is_whole
    absent = set(fields) if lines else set()
    shown = [_record(line, fields, absent) for line in lines[: arguments.limit]]
    if absent:
        facts["missing_fields"] = sorted(name[:_SHOWN] for name in absent)
    return records_result(shown, arguments.max_bytes, facts, more=more)


def _record(line: bytes, fields: frozenset[str], absent: set[str]) -> Record:
    """Return a record, and its key as cursor; remove the fields that it has from ``absent``."""
    if (found := _KEY_LAST.search(line)) is not None:
        own = line[: found.start()] + b"}"
    elif (found := _KEY_FIRST.search(line)) is not None:
        own = b"{" + line[found.end() :]
    else:
        raise ApiError("The platform returned a record without a key. Check that PLATFORM_URL leads to it.")
    if fields:
        members = decoded_json(own, dict[str, msgspec.Raw])
        absent.difference_update(members)
        own = msgspec.json.encode({name: value for name, value in members.items() if name in fields})
    return Record(found[1].decode(), own.decode("utf-8", "replace"))

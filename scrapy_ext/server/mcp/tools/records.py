"""Tools about the records of jobs: items, requests and log."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from scrapy_ext.api.platform.conditions import number_in
from scrapy_ext.api.platform.keys import EntityKey, JobKey
from scrapy_ext.api.platform.records import Stats
from scrapy_ext.api.platform.where import MAX_WHERE, parse_where
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.mcp.results import Record, Result, last_fitting, records_result
from scrapy_ext.server.mcp.services import (
    JSON_LINES,
    ApiCall,
    ApiError,
    Services,
    decoded,
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
_NO_MATCH: Final = (
    "No {} meets the conditions. Names of fields must be as the {}s have them, also in case. Numbers in texts, such as "
    "the price of a product, are compared by a filter in text, and by num> and its like. A path, such as "
    "aggregateRating.ratingValue, reaches into an object."
)
#: Operators that compare a text with texts by their letters.
_ORDERED: Final = (">", ">=", "<", "<=")
_BY_LETTERS: Final = (
    'Operator {0} compares the text "{1}" by letters, so that "9" is greater than "10", and finds no numbers. Operator '
    "num{0} with a number without quotes compares numbers, also those in texts such as the price of a product."
)
#: Records from the end that the first step to the last ones reads, and how many times as many the next one does.
_FIRST_SPAN: Final = 1000
_MORE: Final = 8


Filter = Annotated[
    Annotated[list[list[Any]], Meta(max_length=20)] | Annotated[str, Meta(max_length=MAX_WHERE)],
    Meta(
        description="Conditions that all must be met. As text, in the language of scrapy platform items --where and of "
        "the page of items: price > 20 and name ~ lamp. There, numbers compare as numbers, also those in texts, such "
        "as the price of a product; the operators are = != > >= < <= ~ !~ matches, is missing, is present, is empty, "
        "is not empty. Or as JSON: [field, operator, [arguments]]. Operators: = != > >= < <= "
        "num= num!= num> num>= num< num<= (also of numbers in texts) contains "
        "icontains matches haselement hasnotelement exists notexists isempty isnotempty. "
        "A path, such as aggregateRating.ratingValue, reaches into an object. Example: "
        '[["price", "num>", [20]], ["name", "icontains", ["lamp"]]].',
    ),
]


def conditions_of(filter: list[list[Any]] | str) -> list[list[Any]]:
    """Return the conditions of a filter in either form; raises :class:`ContractError`."""
    if not isinstance(filter, str):
        return filter
    try:
        return [clause.form for clause in parse_where(filter)] if filter.strip() else []
    except ContractError as error:
        (fault,) = error.violations
        raise refused("filter", fault.rule, fault.remedy) from None


class RecordListing(Listing, frozen=True, kw_only=True):
    """Arguments of a tool that lists records of a job."""

    job: Job


class ListItems(RecordListing, frozen=True, kw_only=True):
    fields: Annotated[
        list[str],
        Meta(
            max_length=100,
            description="Only these fields of each item; all by default. The fact missing_fields has those that no "
            "item of the result has.",
        ),
    ] = msgspec.field(default_factory=list)
    filter: Filter = msgspec.field(default_factory=list)


@TOOLS.add(
    "list_items",
    "List items",
    "List the items that a job has scraped, in their order, one JSON object a line. With a filter, the platform reads "
    "all items until enough are found. Of a running job, last_cursor continues when it has stored more.",
    ListItems,
    idempotent=True,
)
async def _list_items(services: Services, arguments: ListItems) -> Result:
    return await _records(services, "items", arguments, conditions_of(arguments.filter), frozenset(arguments.fields))


class ListRequests(RecordListing, frozen=True, kw_only=True):
    filter: Filter = msgspec.field(default_factory=list)


@TOOLS.add(
    "list_requests",
    "List requests",
    "List the finished requests of a job: time (start, milliseconds since 1970), method, url, status of the response, "
    "duration (milliseconds), rs (bytes of the response), parent (index of the request that led to this one), fp "
    "(fingerprint). Of a running job, last_cursor continues when there are more.",
    ListRequests,
    idempotent=True,
)
async def _list_requests(services: Services, arguments: ListRequests) -> Result:
    return await _records(services, "requests", arguments, conditions_of(arguments.filter), frozenset())


class ListLog(RecordListing, frozen=True, kw_only=True):
    level: Annotated[
        int, Meta(ge=0, le=50, description="Least level: 10 debug, 20 info, 30 warning, 40 error, 50 critical.")
    ] = 20
    last: Annotated[
        bool,
        Meta(description="true: the last records, limit at most, in their order; without a cursor. false: the first."),
    ] = False


@TOOLS.add(
    "list_log",
    "List the log of a job",
    "List the log records of a job from a level on, in their order: the first ones, or with last the end of the log. "
    "Times are milliseconds since 1970. Of a running job, last_cursor continues when it has logged more.",
    ListLog,
    idempotent=True,
)
async def _list_log(services: Services, arguments: ListLog) -> Result:
    levels = [["level", ">=", [arguments.level]]] if arguments.level else []
    if arguments.last:
        return await _end_of_log(services, arguments, levels)
    return await _records(services, "logs", arguments, levels, frozenset())


async def _records(
    services: Services, kind: str, arguments: RecordListing, filters: list[list[Any]], fields: frozenset[str]
) -> Result:
    key = JobKey.parse(arguments.job)
    after = arguments.cursor
    if after is not None and EntityKey.parse(after, "cursor").job_key != key:
        raise refused("cursor", "is of another job", "Send the next_cursor of the result before, or none.")
    # One more shows that there are more; with a filter, the platform could read a whole job to find it.
    count = arguments.limit if filters else arguments.limit + 1
    lines, is_whole = await _read(services, kind, key, filters, ("count", count), ("startafter", after))
    facts = {} if lines or after is not None else await _facts_of_none(services, key, arguments, filters)
    facts |= facts_of_filter(filters)
    more = len(lines) == count or not is_whole
    shown = _shown(lines[: arguments.limit], fields, facts)
    return records_result(shown, arguments.max_bytes, facts, more=more)


async def _end_of_log(services: Services, arguments: ListLog, levels: list[list[Any]]) -> Result:
    """Return the last records of a log. Each step reads from an earlier record on, to the end."""
    if arguments.cursor is not None:
        raise refused("cursor", "cannot be combined with last", "Send one of the two.")
    key, limit = JobKey.parse(arguments.job), arguments.limit
    stats = decoded(await services.call(ApiCall(path=path_of("logs", *key, "stats"))), Stats)
    total, span = stats.totals.input_values, max(limit, _FIRST_SPAN)
    while True:
        lines = await _to_the_end(services, key.entity(max(0, total - span)), levels, limit)
        if len(lines) == limit or span >= total:
            break
        span *= _MORE
    if not lines:
        await listed_job(services, key)  # a job that does not exist has no records either
    shown, facts = [_record(line, frozenset(), set()) for line in lines], dict[str, Any]()
    fitting = last_fitting(shown, arguments.max_bytes)
    if len(fitting) < len(shown):
        facts["cut"] = f"{len(shown) - len(fitting)} of the last records do not fit into max_bytes. Raise it."
    return records_result(fitting, arguments.max_bytes, facts)


async def _to_the_end(services: Services, first: EntityKey, levels: list[list[Any]], most: int) -> list[bytes]:
    """Return the last records of a log from a key on, ``most`` of them. An answer may end before the log does."""
    kept, place = deque[bytes](maxlen=most), ("start", str(first))
    while True:
        lines, is_whole = await _read(services, "logs", first.job_key, levels, place)
        kept.extend(lines)
        if is_whole:
            return list(kept)
        place = ("startafter", _record(lines[-1], frozenset(), set()).cursor)


async def _read(
    services: Services, kind: str, key: JobKey, filters: list[list[Any]], *which: tuple[str, int | str | None]
) -> tuple[list[bytes], bool]:
    """Return records with their keys, and whether they are all of the answer."""
    conditions = [msgspec.json.encode(each).decode() for each in filters]
    query = pairs(*which, ("meta", "_key"), ("filter", conditions))
    answer = await services.call(ApiCall(path=path_of(kind, *key), query=query, accept=JSON_LINES))
    lines = lines_of(answer)
    if not lines and not answer.is_whole:
        raise ApiError(
            f"A record has over {len(answer.body)} bytes, which is more than a tool reads. Read it with scrapy "
            "platform items."
        )
    return lines, answer.is_whole


async def _facts_of_none(
    services: Services, key: JobKey, arguments: RecordListing, filters: list[list[Any]]
) -> dict[str, Any]:
    """Return the facts of a result without records; raises :class:`ApiError` (404) for a job that does not exist."""
    await listed_job(services, key)
    if not filters or isinstance(arguments, ListLog):
        return {}
    name = "item" if isinstance(arguments, ListItems) else "request"
    return {"note": _NO_MATCH.format(name, name)}


def facts_of_filter(filters: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Return a note about the first condition that compares numbers in quotes as texts; empty if there is none."""
    for condition in filters:
        if len(condition) != 3 or condition[1] not in _ORDERED:
            continue
        arguments = condition[2] if isinstance(condition[2], list) else [condition[2]]
        quoted = next((each for each in arguments if isinstance(each, str) and number_in(each) is not None), None)
        if quoted is not None:
            return {"text_comparison": _BY_LETTERS.format(condition[1], quoted)}
    return {}


def _shown(lines: Sequence[bytes], fields: frozenset[str], facts: dict[str, Any]) -> list[Record]:
    """Return the records of lines; add the fields that none of them has to the facts."""
    absent = set(fields) if lines else set()
    shown = [_record(line, fields, absent) for line in lines]
    if absent:
        facts["missing_fields"] = sorted(name[:_SHOWN] for name in absent)
    return shown


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

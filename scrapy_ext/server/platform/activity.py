"""``/activity``: messages of projects (platform-api.md, Activity)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from operator import attrgetter
from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.records import MAX_ITEM_BYTES, too_large
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.formats import Page
from scrapy_ext.server.http import bodies, json_bodies, schemas
from scrapy_ext.server.http.answers import empty
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import limited, result, with_meta
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.platform.filters import chosen_of, filter_of_call
from scrapy_ext.server.store.activity import Message

_DEFAULT_COUNT: Final = 100
_MAX_COUNT: Final = 10_000
_MAX_PROJECTS: Final = 1000
#: Bytes of memory of an event beside its text until it is stored.
_EVENT: Final = 256

ROUTES: Final = Routes(Access.PROCESS)

_META: Final = schemas.Parameter("meta", "what to add to each message", schemas.array({"enum": ["_ts", "_project"]}))


@ROUTES.add(
    "GET /activity/{project}",
    "Read messages of a project, the newest first.",
    schemas.lines("The messages.", schemas.OBJECT),
    parameters=(schemas.COUNT, _META, *schemas.FILTERS, *schemas.SHAPING),
)
async def _read(call: Call) -> Response:
    return await result(call, _pages(call, _chosen(call, call.project, call.number("count"))))


@ROUTES.add(
    "POST /activity/{project}",
    "Add messages.",
    schemas.DONE,
    body=schemas.json_lines(schemas.OBJECT),
)
async def _add(call: Call) -> Response:
    project = call.project
    events: list[bytes] = []
    async for sent in bodies.gathered(call.request, _sent):
        bodies.keep(sum(map(len, sent)) + _EVENT * len(sent))
        events += sent
    if events:
        await call.store.activity.add(project, events, call.attempt)
        call.wrote(len(events))
    return empty()


def _sent(line: bytes, number: int) -> tuple[bytes]:
    json_bodies.record(line, number)
    if len(line) > MAX_ITEM_BYTES:
        raise ContractError([too_large(f"line {number}", len(line))])
    return (line.strip(),)


@ROUTES.add(
    "GET /activity/projects",
    "Read messages of several projects, the newest first.",
    schemas.lines("The messages.", schemas.OBJECT),
    parameters=(
        schemas.Parameter("p", "the projects (default: all that the key may read)", schemas.array(schemas.NUMBER)),
        schemas.Parameter("pcount", "at most so many of each project", schemas.COUNTER),
        schemas.COUNT,
        _META,
        *schemas.FILTERS,
        *schemas.SHAPING,
    ),
)
async def _projects(call: Call) -> Response:
    asked = [number_of(text, "p") for text in call.all("p")]
    for project in asked:
        call.need(project)
    call.may_read(0)  # the answer has only projects that the key may read
    projects = asked or [project for project in await call.store.jobs.projects() if call.may_read(project)]
    count = call.number("count", _DEFAULT_COUNT) or 0
    if len(projects) > _MAX_PROJECTS or count > _MAX_COUNT:
        raise refused("count", f"may be {_MAX_COUNT} at most, for {_MAX_PROJECTS} projects", "Ask for less at a time.")
    limit = min(count, call.number("pcount", count) or 0)

    async def one_page() -> AsyncIterator[Sequence[Message]]:
        newest: list[Message] = []
        for project in dict.fromkeys(projects):
            async for page in _chosen(call, project, limit):
                newest = sorted([*newest, *page], key=lambda message: message.ts, reverse=True)[:count]
        yield newest

    return await result(call, _pages(call, one_page()))


def _chosen(call: Call, project: int, count: int | None) -> AsyncIterator[Sequence[Message]]:
    """Return the newest messages of a project that meet the filter."""
    conditions = filter_of_call(call)
    if conditions is None:
        return limited(call.store.activity.scan(project, count), count)

    async def pages() -> AsyncIterator[Sequence[Message]]:
        async for page in call.store.activity.scan(project, None):
            yield await chosen_of(conditions, page, attrgetter("event"))

    return limited(pages(), count)


async def _pages(call: Call, messages: AsyncIterator[Sequence[Message]]) -> AsyncIterator[Page]:
    meta = call.meta("_ts", "_project")
    async for page in messages:
        yield [
            with_meta(message.event, [(name, message.ts if name == "_ts" else message.project) for name in meta])
            for message in page
        ]

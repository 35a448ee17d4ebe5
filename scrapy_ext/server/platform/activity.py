"""``/activity``: messages of projects (platform-api.md, Activity)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform.items import MAX_ITEM_BYTES, too_large
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.platform import bodies
from scrapy_ext.server.platform.answers import NotFound, empty, method_not_allowed, refused
from scrapy_ext.server.platform.calls import Call
from scrapy_ext.server.platform.formats import Page, result, with_meta
from scrapy_ext.server.platform.records import index_of
from scrapy_ext.server.store.activity import Message

_DEFAULT_COUNT: Final = 100
_MAX_COUNT: Final = 10_000
_MAX_PROJECTS: Final = 1000


async def activity(call: Call) -> Response:
    """Answer a call."""
    match call.path, call.method:
        case ["projects"], "GET":
            return await _projects(call)
        case [_], "GET":
            call.without_filter()
            found = call.store.activity.scan(call.project, call.number("count"))
            return await result(call, _pages(call, found))
        case [_], "POST":
            return await _add(call)
        case [_], _:
            raise method_not_allowed("GET", "POST")
        case _:
            raise NotFound


async def _add(call: Call) -> Response:
    project = call.project
    events = []
    for number, line, _ in await bodies.objects(call.request):
        if len(line) > MAX_ITEM_BYTES:
            raise ContractError([too_large(f"line {number}", len(line))])
        events.append(line.strip())
    if events:
        await call.store.activity.add(project, events)
        call.wrote(len(events))
    return empty()


async def _projects(call: Call) -> Response:
    asked = [index_of(text, "p") for text in call.all("p")]
    for project in asked:
        call.need(project)
    call.may_read(0)  # what follows tells of those projects only that the key opens
    projects = asked or [project for project in await call.store.jobs.projects() if call.may_read(project)]
    count = call.number("count", _DEFAULT_COUNT) or 0
    if len(projects) > _MAX_PROJECTS or count > _MAX_COUNT:
        raise refused("count", f"may be {_MAX_COUNT} at most, for {_MAX_PROJECTS} projects", "Ask for less at a time.")
    messages = await call.store.activity.latest(projects, count, call.number("pcount"))

    async def one_page() -> AsyncIterator[Sequence[Message]]:
        yield messages

    return await result(call, _pages(call, one_page()))


async def _pages(call: Call, messages: AsyncIterator[Sequence[Message]]) -> AsyncIterator[Page]:
    meta = call.meta("_ts", "_project")
    async for page in messages:
        yield [
            with_meta(message.event, [(name, message.ts if name == "_ts" else message.project) for name in meta])
            for message in page
        ]

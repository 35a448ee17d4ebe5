"""``/hcf/<project>/<frontier>/feed``: requests for crawls, from programs that know nothing of Scrapy's objects.

These paths are this package's own.
"""

from __future__ import annotations

import re
import secrets
from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform import feeding, frontier
from scrapy_ext.api.platform.feeding import Feed
from scrapy_ext.api.platform.frontier import MAX_SLOTS
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import bodies, json_bodies, schemas
from scrapy_ext.server.http.answers import empty, found, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.store.frontier.feeds import Push, push_lines

ROUTES: Final = Routes(Access.PROCESS)
_FEED: Final = "/hcf/{project}/{frontier}/feed"
_MAX_DECLARATION: Final = 4096
_EXAMPLE: Final = '{"slots": 8, "open": true, "own_fingerprints": false, "spread": false}'
_SLOTS: Final[schemas.Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS}
#: Flags of a declaration with their defaults.
_FLAGS: Final = {"open": True, "own_fingerprints": False, "spread": False, "keep": False}
_DECLARATION: Final[schemas.Schema] = schemas.record(
    {"slots": _SLOTS, **{flag: {"type": "boolean"} for flag in _FLAGS}}, "slots", only=True
)


def _name(call: Call) -> str:
    name = call.part("frontier")
    frontier.check_name(name, "frontier")
    return name


@ROUTES.add(
    f"GET {_FEED}",
    "Read what a push into a frontier needs, and the stamps of its slots.",
    schemas.value("The frontier.", Feed),
)
async def _get(call: Call) -> Response:
    missing = f"There is no frontier {_name(call)}. Use the name of one that a crawl has."
    return json(found(await call.store.feeds.get(call.project, _name(call)), missing))


@ROUTES.add(
    f"PUT {_FEED}",
    "Declare the slots of a crawl's frontier, and whether it accepts pushes.",
    schemas.DONE,
    body=schemas.Body(schemas.JSON, _DECLARATION),
)
async def _declare(call: Call) -> Response:
    name = _name(call)
    fields = await json_bodies.fields_of(call.request, _EXAMPLE, _MAX_DECLARATION)
    for unknown in fields.keys() - _DECLARATION["properties"].keys():
        raise refused(unknown[:60], "is not a field of this request", f"Write {_EXAMPLE}.")
    slots = fields.get("slots")
    if not isinstance(slots, int) or isinstance(slots, bool) or not 1 <= slots <= MAX_SLOTS:
        raise refused("slots", f"must be a whole number from 1 to {MAX_SLOTS}", f"Write {_EXAMPLE}.")
    flags = {each: fields.get(each, default) for each, default in _FLAGS.items()}
    for each, value in flags.items():
        if not isinstance(value, bool):
            raise refused(each, "must be true or false", f"Write {_EXAMPLE}.")
    feed = Feed(slots, flags["open"], flags["own_fingerprints"], flags["spread"])
    await call.store.feeds.declare(call.project, name, feed, call.attempt, keep=flags["keep"])
    return empty()


@ROUTES.add(
    f"POST {_FEED}",
    "Push requests into a frontier: all lines, or none if one is invalid.",
    schemas.value("The numbers of new and of known requests.", feeding.FedCount),
    parameters=(
        schemas.Parameter(
            "push",
            "an ID of this push, by which a repetition adds requests with dont_filter only once",
            {"type": "string", "pattern": f"^{feeding.PUSH_PATTERN}$"},
        ),
        schemas.Parameter("start", "the number of the first line in the push (0)", schemas.COUNTER),
        schemas.Parameter("slots", "FRONTIER_SLOTS of the crawl, if no crawl has opened the frontier yet (8)", _SLOTS),
    ),
    body=schemas.json_lines({"anyOf": [schemas.STRING, schemas.OBJECT]}, "URLs, or requests under Scrapy's names."),
    errors=(404, 409),
)
async def _push(call: Call) -> Response:
    name, slots = _name(call), call.number("slots")
    if slots is not None and not 1 <= slots <= MAX_SLOTS:
        raise refused("slots", f"must be 1 to {MAX_SLOTS}, got {slots}", "Leave it out for the number of the frontier.")
    push = call.query.get("push") or secrets.token_hex(8)
    if not re.fullmatch(feeding.PUSH_PATTERN, push):
        raise refused("push", "must be 1 to 64 letters, digits, '_', '-' or '.'", "Choose another ID.")
    start = call.number("start", 0) or 0
    lines = await _lines(call)
    into = Push(call.project, name, slots, attempt=call.attempt)
    count = await push_lines(call.store.feeds, into, lines, push, start)
    call.wrote(count.new)
    return json(count)


async def _lines(call: Call) -> list[tuple[int, bytes]]:
    """Return the lines of the body that are not blank, with their numbers from 1 on."""
    lines: list[tuple[int, bytes]] = []

    def work(block: bodies.Block) -> int:
        fresh = [(number, line) for number, line in enumerate(block.lines, block.first) if line.strip()]
        lines.extend(fresh)
        if len(lines) > feeding.MAX_LINES:
            rule = f"has over {feeding.MAX_LINES} lines"
            raise refused("body", rule, "Send it in several pushes, each with the start of its first line.")
        # A form and its encoding take a few times the bytes of the line.
        return sum(8 * len(line) + 1024 for _, line in fresh)

    await bodies.each_block(call.request, work, feeding.MAX_BYTES)
    return lines

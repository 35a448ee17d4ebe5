"""``/hcf``: the frontier (platform-api.md, Frontier)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from operator import itemgetter
from typing import Final, Protocol, TypeVar

import msgspec
from starlette.responses import Response

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform import frontier
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.formats import Page
from scrapy_ext.server.http import bodies, json_bodies, schemas
from scrapy_ext.server.http.answers import empty, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import each, hold_answer, limited, result, result_of
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot, StoredBatch, is_batch_id, priority_of

#: Default of ``mincount``.
_DEFAULT_MINCOUNT: Final = 100


class _RawRequest(frontier.FrontierRequest):
    """A request with the bytes of its data."""

    qdata: msgspec.Raw = msgspec.Raw(b"null")
    fdata: msgspec.Raw = msgspec.Raw(b"")


class Raw(Protocol):
    """A request with the bytes of its data."""

    fp: str
    p: int
    qdata: msgspec.Raw
    fdata: msgspec.Raw


R = TypeVar("R", bound=Raw)

_decode: Final = decoder(frontier.FrontierRequest)
_decode_lines: Final = decoder(frontier.FrontierRequest, lines=True)
_decode_raw: Final = msgspec.json.Decoder(_RawRequest).decode
_decode_raw_lines: Final = msgspec.json.Decoder(_RawRequest).decode_lines
#: The first and the last byte of a line that is one object.
_ENDS: Final = itemgetter(0, -1)
_OBJECT: Final = {tuple(b"{}")}
_encode: Final = msgspec.json.Encoder().encode

ROUTES: Final = Routes(Access.PROCESS)

_SLOT: Final = "/hcf/{project}/{frontier}/s/{slot}"
_NAMES: Final = schemas.value("Their names.", schemas.STRINGS)


@ROUTES.add("GET /hcf/{project}/list", "List the frontiers of a project.", _NAMES, parameters=(schemas.COUNT,))
async def _frontiers(call: Call) -> Response:
    names = await call.store.frontier.frontiers(call.project)
    return json(names[: call.number("count")])


@ROUTES.add("GET /hcf/{project}/{frontier}/list", "List the slots of a frontier.", _NAMES, parameters=(schemas.COUNT,))
async def _slots(call: Call) -> Response:
    name = call.part("frontier")
    frontier.check_name(name, "frontier")
    names = await call.store.frontier.slots(call.project, name)
    return json(names[: call.number("count")])


def _slot(call: Call) -> Slot:
    name, slot = call.part("frontier"), call.part("slot")
    frontier.check_name(name, "frontier")
    frontier.check_name(slot, "slot")
    return Slot(call.project, name, slot)


@ROUTES.add(
    f"POST {_SLOT}",
    "Add requests with fingerprints that are new to the slot.",
    schemas.value("The number of new requests.", frontier.NewCount),
    body=schemas.json_lines(frontier.FrontierRequest),
)
async def _add(call: Call) -> Response:
    slot = _slot(call)
    added = 0
    async for requests in bodies.gathered(call.request, _queued_of, decode_usual=_all_queued):
        added += await call.store.frontier.add(slot, requests, call.attempt)
    call.wrote(added)
    return json(frontier.NewCount(added))


def _all_queued(block: bodies.Block) -> list[QueuedRequest] | None:
    """Return the requests of a block of valid lines without spaces around them; None for any other block."""
    try:
        if len(block.data) > frontier.MAX_REQUEST_BYTES or set(map(_ENDS, block.lines)) != _OBJECT:
            return None
        requests = _decode_lines(block.data)  # completely, to verify that their data is JSON
        raws = _decode_raw_lines(block.data)
    except (IndexError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # IndexError: a blank line
        return None
    # In such lines, no object spans a line break: nowhere else does `}` precede `{`. So there is one in each.
    if len(requests) != len(block.lines) or not all(map(frontier.is_valid, requests)):
        return None
    return list(map(queued, raws))


def _queued_of(line: bytes, number: int) -> tuple[QueuedRequest]:
    return (queued(checked(line, f"line {number}", _decode, _decode_raw, "a request object")),)


def queued(raw: Raw) -> QueuedRequest:
    """Return a request as it is stored."""
    return QueuedRequest(raw.fp.encode(), b"[%b,%b]" % (_encode(raw.fp), raw.qdata), bytes(raw.fdata) or None, raw.p)


def checked(
    line: bytes,
    place: str,
    decode: Callable[[bytes], frontier.FrontierRequest],
    decode_raw: Callable[[bytes], R],
    what: str,
) -> R:
    """Return the request of a line. ``decode`` verifies that its data is JSON. Raises :class:`ContractError`;
    ``what``: what the line should be."""
    try:
        request = decode(line)
        raw = decode_raw(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise json_bodies.not_json(place, what, error, line) from None
    faults = list(frontier.request_faults(request, len(line), place))
    if faults:
        raise ContractError(faults)
    return raw


@ROUTES.add(
    f"GET {_SLOT}/q",
    "Read batches of requests, the same ones until they are deleted.",
    schemas.lines("Batches.", frontier.Batch),
    parameters=(
        schemas.Parameter("mincount", "at least so many requests, if available", schemas.COUNTER),
        schemas.Parameter("count", "at most so many batches", schemas.COUNTER),
        schemas.Parameter("startafter", "the ID of a batch: only later batches", schemas.STRING),
        schemas.Parameter("meta", "_p: add the priority of a batch's requests", schemas.STRING),
        *schemas.SHAPING,
    ),
)
async def _read(call: Call) -> Response:
    mincount = call.number("mincount", _DEFAULT_MINCOUNT) or 1
    after = _batch_id(call, "startafter", "Read from the beginning, without startafter.")
    priorities = "_p" in call.all("meta")
    batches = (await call.store.frontier.read(_slot(call), mincount, after))[: call.number("count")]
    hold_answer(call.context, sum(len(batch.requests) for batch in batches))

    def line(batch: StoredBatch) -> bytes:
        priority = b',"_p":%d' % priority_of(batch.id) if priorities else b""
        return b'{"id":"' + batch.id.encode() + b'","requests":[' + batch.requests + b"]" + priority + b"}"

    if len(batches) == 1:
        return await result_of(call, list(map(line, batches)))
    return await result(call, each([line(batch)] for batch in batches))


@ROUTES.add(
    f"GET {_SLOT}/q/count",
    "Count the requests in the queue.",
    schemas.value("The number; nextstart is where to continue.", frontier.QueueCount),
    parameters=(schemas.Parameter("start", "the nextstart of the previous count", schemas.STRING),),
)
async def _count(call: Call) -> Response:
    start = _batch_id(call, "start", "Count from the beginning, without start.")
    return json(await call.store.frontier.count(_slot(call), start))


def _batch_id(call: Call, name: str, remedy: str) -> str | None:
    text = call.query.get(name)
    if text is not None and not is_batch_id(text):
        raise refused(name, "must be the ID of a batch of an earlier answer", remedy)
    return text


@ROUTES.add(
    f"POST {_SLOT}/q/deleted",
    "Delete processed batches.",
    schemas.DONE,
    body=schemas.json_lines({"anyOf": [schemas.STRING, schemas.STRINGS]}, "IDs of batches."),
)
async def _delete_batches(call: Call) -> Response:
    slot = _slot(call)
    async for ids in json_bodies.strings(call.request):
        await call.store.frontier.delete_batches(slot, ids, call.attempt)
    return empty()


@ROUTES.add(
    f"GET {_SLOT}/f",
    "List the fingerprints of a slot, in their order.",
    schemas.lines("The fingerprints.", frontier.Fingerprint),
    parameters=(
        schemas.COUNT,
        schemas.Parameter("start", "from this fingerprint on", schemas.STRING),
        schemas.Parameter("startafter", "after this fingerprint", schemas.STRING),
        *schemas.SHAPING,
    ),
)
async def _fingerprints(call: Call) -> Response:
    found = call.store.frontier.fingerprints(_slot(call), _last_before(call))

    async def pages() -> AsyncIterator[Page]:
        async for page in limited(found, call.number("count")):
            yield [b'{"fp":' + _encode(fp.decode()) + b"}" for fp in page]

    return await result(call, pages())


def _last_before(call: Call) -> bytes:
    """Return the bytes after which the fingerprints begin: ``startafter``, or those before ``start``."""
    after, start = call.query.get("startafter", "").encode(), call.query.get("start", "").encode()
    # No fingerprint is between these bytes and ``start``: in UTF-8 there is no byte 255.
    before = start[:-1] + bytes([start[-1] - 1, 255]) if start and start[-1] else start[:-1]
    return max(after, before)


@ROUTES.add(f"DELETE {_SLOT}", "Delete a slot.", schemas.DONE)
async def _delete_slot(call: Call) -> Response:
    await call.store.frontier.delete_slot(_slot(call), call.attempt)
    call.store.deleted.set()
    return empty()

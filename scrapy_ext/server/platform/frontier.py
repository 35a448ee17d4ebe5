"""``/hcf``: the frontier (platform-api.md, Frontier)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import Response

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.frontier import FrontierRequest, NewCount, check_name, request_faults
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.http import bodies
from scrapy_ext.server.http.answers import NotFound, empty, json, method_not_allowed, refused
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import Page, hold_answer, result, result_of
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot, StoredBatch, is_batch_id, priority_of

#: Requests that a read gives when it names no ``mincount``.
_DEFAULT_MINCOUNT: Final = 100


class _RawRequest(FrontierRequest):
    """A request whose data keeps its bytes."""

    qdata: msgspec.Raw = msgspec.Raw(b"null")
    fdata: msgspec.Raw = msgspec.Raw(b"")


_decode: Final = decoder(FrontierRequest)
_decode_raw: Final = msgspec.json.Decoder(_RawRequest).decode
_encode: Final = msgspec.json.Encoder().encode


async def frontier(call: Call) -> Response:
    """Answer a call."""
    match call.path, call.method:
        case [_, "list"], "GET":
            return json(await call.store.frontier.frontiers(call.project))
        case [_, name, "list"], "GET":
            check_name(name, "frontier")
            return json(await call.store.frontier.slots(call.project, name))
        case [_, _, "s", _], "POST":
            return await _add(call)
        case [_, _, "s", _], "DELETE":
            return await _delete_slot(call)
        case [_, _, "s", _, "q"], "GET":
            return await _read(call)
        case [_, _, "s", _, "q", "count"], "GET":
            return await _count(call)
        case [_, _, "s", _, "q", "deleted"], "POST":
            return await _delete_batches(call)
        case [_, _, "s", _, "f"], "GET":
            return await _fingerprints(call)
        case [_, _, "s", _], _:
            raise method_not_allowed("POST", "DELETE")
        case (([_, "list"] | [_, _, "list"] | [_, _, "s", _, "q" | "f"] | [_, _, "s", _, "q", "count"]), _):
            raise method_not_allowed("GET")
        case [_, _, "s", _, "q", "deleted"], _:
            raise method_not_allowed("POST")
        case _:
            raise NotFound


def _slot(call: Call) -> Slot:
    check_name(call.path[1], "frontier")
    check_name(call.path[3], "slot")
    return Slot(call.project, call.path[1], call.path[3])


async def _add(call: Call) -> Response:
    slot = _slot(call)
    added = 0
    async for requests in bodies.gathered(call.request, _queued):
        added += await call.store.frontier.add(slot, requests)
    call.wrote(added)
    return json(NewCount(added))


def _queued(line: bytes, number: int) -> tuple[QueuedRequest]:
    place = f"line {number}"
    try:
        request = _decode(line)  # whole, to be sure that its data is correct JSON
        raw = _decode_raw(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bodies.not_json(place, "a request object", error) from None
    faults = list(request_faults(request, len(line), place))
    if faults:
        raise ContractError(faults)
    pair = b"[" + _encode(raw.fp) + b"," + bytes(raw.qdata) + b"]"
    return (QueuedRequest(raw.fp.encode(), pair, bytes(raw.fdata) or None, raw.p),)


async def _read(call: Call) -> Response:
    mincount = call.number("mincount", _DEFAULT_MINCOUNT) or 1
    after = _batch_id(call, "startafter", "Read from the beginning, without startafter.")
    priorities = "_p" in call.all("meta")
    batches = await call.store.frontier.read(_slot(call), mincount, after)
    hold_answer(call.exchange, sum(len(batch.requests) for batch in batches))

    def line(batch: StoredBatch) -> bytes:
        priority = b',"_p":%d' % priority_of(batch.id) if priorities else b""
        return b'{"id":"' + batch.id.encode() + b'","requests":[' + batch.requests + b"]" + priority + b"}"

    lines = map(line, batches)
    if len(batches) == 1:
        return await result_of(call, list(lines))

    async def pages() -> AsyncIterator[Page]:
        for line in lines:
            yield [line]

    return await result(call, pages())


async def _count(call: Call) -> Response:
    start = _batch_id(call, "start", "Count from the beginning, without start.")
    return json(await call.store.frontier.count(_slot(call), start))


def _batch_id(call: Call, name: str, remedy: str) -> str | None:
    text = call.query.get(name)
    if text is not None and not is_batch_id(text):
        raise refused(name, "must be the ID of a batch, as an answer before gave it", remedy)
    return text


async def _delete_batches(call: Call) -> Response:
    slot = _slot(call)
    async for ids in bodies.strings(call.request):
        await call.store.frontier.delete_batches(slot, ids)
    return empty()


async def _fingerprints(call: Call) -> Response:
    found = call.store.frontier.fingerprints(_slot(call))

    async def pages() -> AsyncIterator[Page]:
        async for page in found:
            yield [b'{"fp":' + _encode(fp.decode()) + b"}" for fp in page]

    return await result(call, pages())


async def _delete_slot(call: Call) -> Response:
    await call.store.frontier.delete_slot(_slot(call))
    answer = empty()
    answer.background = BackgroundTask(call.store.purge)
    return answer

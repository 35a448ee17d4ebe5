"""``/hcf/<project>/<frontier>/s`` and ``/q``: several slots of a frontier in one call.

The hosted platform does not have these paths. The workers of one job send requests to all slots and read several; with
a call for each, calls would cost more than the requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from starlette.responses import Response

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform import frontier
from scrapy_ext.api.platform.frontier import MAX_SLOTS, ProcessedBatches, SlotBatch, SlotRead, SlotRequest
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http import bodies, json_bodies, schemas
from scrapy_ext.server.http.answers import empty, json
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.formats import hold_answer, result_of
from scrapy_ext.server.http.routes import Access, Routes
from scrapy_ext.server.platform.frontier import checked, queued
from scrapy_ext.server.store.frontier.frontier import QueuedRequest, Slot, StoredBatch

T = TypeVar("T")

ROUTES: Final = Routes(Access.PROCESS)
_FRONTIER: Final = "/hcf/{project}/{frontier}"
_encode: Final = msgspec.json.Encoder().encode


class _RawRequest(SlotRequest):
    """A request with the bytes of its data."""

    qdata: msgspec.Raw = msgspec.Raw(b"null")
    fdata: msgspec.Raw = msgspec.Raw(b"")


_decode_request: Final = decoder(SlotRequest)
_decode_raw: Final = msgspec.json.Decoder(_RawRequest).decode
_decode_read: Final = decoder(SlotRead)
_decode_processed: Final = decoder(ProcessedBatches)


class _SlotsOf:
    """Slots of the frontier of a call, by their names, of which there may be :data:`MAX_SLOTS`."""

    def __init__(self, call: Call) -> None:
        self._project = call.project
        self._frontier = call.part("frontier")
        frontier.check_name(self._frontier, "frontier")
        self._known: dict[str, Slot] = {}

    def named(self, name: str, place: str) -> Slot:
        """Return a slot. Raises :class:`ContractError` for an invalid name, and for one slot too many."""
        known = self._known.get(name)
        if known is None:
            frontier.check_name(name, f"{place}: slot")
            if len(self._known) == MAX_SLOTS:
                raise refused(place, f"names another slot beside {MAX_SLOTS}", "Send it in several requests.")
            known = self._known[name] = Slot(self._project, self._frontier, name)
        return known


@ROUTES.add(
    f"POST {_FRONTIER}/s",
    "Add requests with fingerprints that are new to their slots.",
    schemas.value("The number of new requests, and that of each slot.", frontier.SlotCounts),
    body=schemas.json_lines(SlotRequest),
)
async def _add(call: Call) -> Response:
    slots, counts = _SlotsOf(call), Counter[str]()

    def located(line: bytes, number: int) -> tuple[tuple[Slot, QueuedRequest]]:
        place = f"line {number}"
        raw = checked(line, place, _decode_request, _decode_raw, "a request object with its slot")
        return ((slots.named(raw.slot, place), queued(raw)),)

    async for requests in bodies.gathered(call.request, located):
        by_slot: dict[Slot, list[QueuedRequest]] = {}
        for slot, request in requests:
            by_slot.setdefault(slot, []).append(request)
        added = await call.store.frontier.add_to_slots(by_slot, call.attempt)
        counts.update({slot.name: count for slot, count in added.items()})
    call.wrote(counts.total())
    return json(frontier.SlotCounts(counts.total(), counts))


@ROUTES.add(
    f"POST {_FRONTIER}/q",
    "Read batches of several slots, the same ones until they are deleted.",
    schemas.lines("Batches that are not known.", SlotBatch),
    body=schemas.json_lines(SlotRead, "Each slot once."),
    parameters=schemas.SHAPING,
)
async def _read(call: Call) -> Response:
    slots, reads = _SlotsOf(call), dict[Slot, SlotRead]()

    def read(line: bytes, number: int) -> tuple[()]:
        place = f"line {number}"
        asked = _line(line, place, _decode_read, '{"slot": "0", "mincount": 100, "known": []}')
        slot = slots.named(asked.slot, place)
        if slot in reads:
            raise refused(place, f"names slot {asked.slot} again", "Name each slot once, with all known batches.")
        reads[slot] = asked
        return ()

    async for _ in bodies.gathered(call.request, read):
        pass
    found = await call.store.frontier.read_slots({slot: max(asked.mincount, 1) for slot, asked in reads.items()})
    fresh = {slot: _unknown(batches, reads[slot]) for slot, batches in found.items()}
    hold_answer(call.context, sum(batch.size for batches in fresh.values() for batch in batches))
    return await result_of(
        call,
        [
            b'{"slot":%b,"id":"%b","requests":[%b]}' % (_encode(slot.name), batch.id.encode(), batch.requests)
            for slot, batches in fresh.items()
            for batch in batches
        ],
    )


def _unknown(batches: Sequence[StoredBatch], asked: SlotRead) -> list[StoredBatch]:
    known = set(asked.known)
    return [batch for batch in batches if batch.id not in known]


@ROUTES.add(
    f"POST {_FRONTIER}/q/deleted",
    "Delete processed batches of several slots.",
    schemas.DONE,
    body=schemas.json_lines(ProcessedBatches),
)
async def _delete_batches(call: Call) -> Response:
    slots = _SlotsOf(call)

    def processed(line: bytes, number: int) -> list[tuple[Slot, list[str]]]:
        asked = _line(line, f"line {number}", _decode_processed, '{"slot": "0", "ids": ["..."]}')
        return [(slots.named(asked.slot, f"line {number}"), asked.ids)]

    async for groups in bodies.gathered(call.request, processed):
        ids: dict[Slot, list[str]] = {}
        for slot, some in groups:
            ids.setdefault(slot, []).extend(some)
        await call.store.frontier.delete_of_slots(ids, call.attempt)
    return empty()


def _line(line: bytes, place: str, decode: Callable[[bytes], T], example: str) -> T:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise json_bodies.not_json(place, f"an object such as {example}", error, line) from None

"""Putting requests back that crawls have set aside."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.frontier import DEAD_LETTERS, MAX_BATCH, FrontierRequest, revived
from scrapy_ext.server.store.frontier.frontier import FrontierStore, QueuedRequest, Slot

#: Of one call, about: the rest stays where it is.
MOST: Final = 20_000

_decode: Final = msgspec.json.Decoder(list[tuple[str, Any]]).decode
_encode: Final = msgspec.json.Encoder().encode


async def put_back(frontier: FrontierStore, project: int, name: str) -> int:
    """Queue the requests that were set aside again, each in its slot; returns how many.

    One that is queued again is removed after that: whatever breaks off in between, none is lost, and none is queued
    twice, since its slot knows it by then. Raises ``ValueError`` when the slot of dead letters holds something else.
    """
    dead = Slot(project, name, DEAD_LETTERS)
    count = 0
    while count < MOST and (batches := await frontier.read(dead, MAX_BATCH)):
        by_slot: dict[str, list[QueuedRequest]] = {}
        for batch in batches:
            for key, letter in _decode(b"[" + batch.requests + b"]"):
                back = revived(key, letter)
                by_slot.setdefault(back.slot, []).append(_queued(back.request))
        for slot, requests in sorted(by_slot.items()):
            await frontier.add(Slot(project, name, slot), requests)
        await frontier.delete_batches(dead, [batch.id for batch in batches])
        count += sum(batch.size for batch in batches)
    return count


def _queued(request: FrontierRequest) -> QueuedRequest:
    return QueuedRequest(request.fp.encode(), _encode([request.fp, request.qdata]), None, request.p)

"""Requests that are set aside, with their error.

A request whose callback or errback raises is run again by the process that has it (``FRONTIER_MAX_ATTEMPTS`` times in
all; each process of a job begins to count anew). What it led to before is made again: children have the same
fingerprints, items were not stored yet. After the last attempt it is kept in the frontier's slot of dead letters, which
no crawl reads, until somebody puts it back (``scrapy platform frontier requeue NAME``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from scrapy_ext.api.platform import deadletters
from scrapy_ext.api.platform.deadletters import DEAD_LETTERS, revived
from scrapy_ext.api.platform.frontier import MAX_BATCH, FrontierRequest
from scrapy_ext.client.platform.frontier import Frontier

__all__ = ["DEAD_LETTERS", "dead_letter", "put_back"]

_encode = msgspec.json.Encoder().encode


def dead_letter(slot: int, fp: str, form: Any, error: str) -> bytes:
    """The line that keeps a request of ``slot``, with its error."""
    return _encode(deadletters.dead_letter(slot, fp, form, error))


async def put_back(
    frontier: Frontier, project: int, name: str, told: Callable[[int], None] = lambda _number: None
) -> int:
    """Enqueue every request that was set aside again, in its slot; returns how many. ``told`` hears of each group.

    Raises ``ValueError`` when the slot of dead letters holds something else.
    """
    count = 0
    while batches := await frontier.read(project, name, DEAD_LETTERS, MAX_BATCH):
        by_slot: dict[str, list[FrontierRequest]] = {}
        for key, letter in (pair for batch in batches for pair in batch.requests):
            back = revived(key, letter)
            by_slot.setdefault(back.slot, []).append(back.request)
        for slot, requests in by_slot.items():
            await frontier.add(project, name, slot, b"".join(_encode(request) + b"\n" for request in requests))
        await frontier.delete_batches(project, name, DEAD_LETTERS, [batch.id for batch in batches])
        number = sum(len(batch.requests) for batch in batches)
        told(number)
        count += number
    return count

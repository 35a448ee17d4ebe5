"""Requests that are set aside, with their error.

A request whose callback or errback raises is run again by the process that has it (``FRONTIER_MAX_ATTEMPTS`` times in
all; each process of a job begins to count anew). What it led to before is made again: children have the same
fingerprints, items were not stored yet. After the last attempt it is kept in the frontier's slot of dead letters, which
no crawl reads, until somebody puts it back (``scrapy platform frontier requeue NAME``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.frontier import MAX_BATCH, FrontierRequest
from scrapy_ext.client.platform.frontier import Frontier
from scrapy_ext.crawl.identity import next_life

#: The slot of requests that were set aside.
DEAD_LETTERS: Final = "dead-letters"
#: Characters of an error that are kept.
_MAX_ERROR: Final = 2000

_encode = msgspec.json.Encoder().encode


def dead_letter(slot: int, fp: str, form: Any, error: str) -> bytes:
    """The request to keep in the slot of dead letters: one of ``slot``, with its error."""
    letter = {"slot": slot, "fp": fp, "request": form, "error": error[:_MAX_ERROR]}
    # Two slots can have the same fingerprint.
    return _encode(FrontierRequest(f"{slot}/{fp}", letter))


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
            where, fp, form = _parts(key, letter)
            by_slot.setdefault(where, []).append(_alive(fp, form))
        for slot, requests in by_slot.items():
            await frontier.add(project, name, slot, b"".join(_encode(request) + b"\n" for request in requests))
        await frontier.delete_batches(project, name, DEAD_LETTERS, [batch.id for batch in batches])
        number = sum(len(batch.requests) for batch in batches)
        told(number)
        count += number
    return count


def _parts(key: str, letter: Any) -> tuple[str, str, Any]:
    try:
        return str(int(letter["slot"])), str(letter["fp"]), letter["request"]
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{key} in slot {DEAD_LETTERS} is no request that was set aside") from None


def _alive(fp: str, form: Any) -> FrontierRequest:
    """Under a new fingerprint, since its slot knows the one it had."""
    if not isinstance(form, dict):
        return FrontierRequest(next_life(fp), form)
    priority = form.get("priority", 0)
    return FrontierRequest(next_life(fp), form, p=-priority if isinstance(priority, int) else 0)

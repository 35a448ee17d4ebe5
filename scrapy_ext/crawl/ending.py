"""When a crawl of several workers is over.

A worker without work says so in its commit journal, and takes it back there before it does anything more. So this one
can end when, in this order, the newest records of all others say that they have nothing to do, every slot of the
frontier is empty, and then nobody has had anything to do since, nor has a slot moved: in between nobody did anything,
and there was nothing to do.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.crawl.checkpoint import Checkpoint
from scrapy_ext.crawl.ownership import Ownership

_AT_ONCE: Final = 16


class State(NamedTuple):
    """What is left of a crawl: who else works on it, or which slot has requests that nobody works on."""

    busy: list[str]
    waiting: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is."""
        return not self.busy and self.waiting is None


async def look(ownership: Ownership, client: PlatformClient, project: int, frontier: str, slots: int) -> State:
    """What is left of a crawl for others than this worker."""
    before = await _others(ownership)
    busy = [f"{checkpoint.worker} ({name})" for name, checkpoint in before.by_name.items() if _works(checkpoint)]
    if busy:
        return State(busy)
    waiting = await _first_with_requests(client, project, frontier, slots)
    if waiting is not None:
        return State([], waiting)
    after = await _others(ownership)
    return State([] if _turns(after) == _turns(before) else ["that have just had something to do"])


class _Others(NamedTuple):
    assignment: int
    by_name: dict[str, Checkpoint]


async def _others(ownership: Ownership) -> _Others:
    number, assignment = await ownership.assignment()
    others = _Others(number, {})
    for name in assignment.owners:
        if name != ownership.name:
            head = await ownership.journal(name).head()
            if head is not None:
                others.by_name[name] = Checkpoint.read(head.data)
    return others


def _turns(others: _Others) -> tuple[int, dict[str, int]]:
    """What is the same again only if nobody had anything to do meanwhile, and no slot has moved."""
    return others.assignment, {name: checkpoint.turns for name, checkpoint in others.by_name.items()}


def _works(checkpoint: Checkpoint) -> bool:
    return not (checkpoint.idle or checkpoint.closed)


async def _first_with_requests(client: PlatformClient, project: int, frontier: str, slots: int) -> int | None:
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def has_requests(slot: int) -> bool:
        async with at_once:
            return bool(await client.frontier.read(project, frontier, str(slot), 1))

    found = await asyncio.gather(*map(has_requests, range(slots)))
    return next((slot for slot, has in enumerate(found) if has), None)

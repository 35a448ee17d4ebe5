"""When a crawl of several workers is over.

A worker without work says so in its commit journal, and takes it back there before it does anything more. So this one
can end when, in this order, the newest records of all others say that they have nothing to do, every slot of the
frontier is empty, and then nobody has had anything to do since, nor has a slot moved: in between nobody did anything,
and there was nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final, NamedTuple

from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.crawl.commit.checkpoint import Checkpoint
from scrapy_ext.crawl.commit.ownership import COMMITS, Ownership

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 16
#: Seconds between two messages that a worker waits for others.
_TELL_EVERY: Final = 60.0
#: Seconds after which a worker that has work may be dead.
_SILENT: Final = 30.0


class State(NamedTuple):
    """What is left of a crawl: who else works on it, or which slot has requests that nobody works on."""

    busy: list[str]
    waiting: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is."""
        return not self.busy and self.waiting is None

    def __str__(self) -> str:
        if self.busy:
            return ", ".join(self.busy)
        return f"somebody who works on slot {self.waiting}: it has requests"


class Ending:
    """Finds out whether a crawl is over for this worker."""

    def __init__(self, ownership: Ownership, client: PlatformClient, project: int, frontier: str, slots: int) -> None:
        self._ownership = ownership
        self._client = client
        self._project = project
        self._frontier = frontier
        self._slots = slots
        self._told = -_TELL_EVERY
        #: Other workers' newest records, and since when they are that.
        self._heard: dict[str, tuple[int, float]] = {}

    async def be(self, *, idle: bool) -> None:
        """Say whether this worker has nothing to do."""
        checkpoint = self._ownership.log.checkpoint
        if checkpoint.idle != idle:
            checkpoint.idle = idle
            checkpoint.turns += 1
            await self._ownership.log.write()

    async def is_over(self) -> bool:
        """Whether, with nothing to do here, nobody else has anything to do. If not, the log says so each minute."""
        await self.be(idle=True)
        state = await self.look()
        if not state.is_over and time.monotonic() - self._told > _TELL_EVERY:
            self._told = time.monotonic()
            logger.info("Nothing to do here; waiting for %s", state)
        return state.is_over

    async def look(self) -> State:
        """What is left of the crawl for others than this worker."""
        before = await _others(self._ownership)
        busy = [name for name, checkpoint in before.by_name.items() if _works(checkpoint)]
        if busy:
            return State([self._described(name, before) for name in busy])
        waiting = await _first_with_requests(self._client, self._project, self._frontier, self._slots)
        if waiting is not None:
            return State([], waiting)
        after = await _others(self._ownership)
        return State([] if _turns(after) == _turns(before) else ["workers that have just had something to do"])

    def _described(self, name: str, others: _Others) -> str:
        """A worker, for the person who may have to start it again."""
        now = time.monotonic()
        number, since = self._heard.get(name, (0, now))
        if number != others.numbers[name]:
            since = now
        self._heard[name] = (others.numbers[name], since)
        job = f"{self._project}/{name.removeprefix(COMMITS).replace('-', '/')}"
        silent = (
            f", not heard of for {now - since:.0f} s: if it is dead, start it again" if now - since > _SILENT else ""
        )
        return f"worker {others.by_name[name].worker} (PLATFORM_JOB={job}{silent})"


class _Others(NamedTuple):
    assignment: int
    by_name: dict[str, Checkpoint]
    numbers: dict[str, int]


async def _others(ownership: Ownership) -> _Others:
    number, assignment = await ownership.assignment()
    others = _Others(number, {}, {})
    for name in assignment.owners:
        if name != ownership.name:
            head = await ownership.journal(name).head()
            if head is not None:
                others.by_name[name] = Checkpoint.read(head.data)
                others.numbers[name] = head.number
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

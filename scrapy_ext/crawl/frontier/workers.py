"""Workers that share the slots of a frontier: how they join and leave, and the end of their crawl.

With ``FRONTIER_WORKER = "auto"`` workers have leases. Each writes to its commit journal at least three times in a lease
time. If a journal does not change for a whole lease time on another worker's clock, that worker considers its writer
dead and takes its slots over. A worker that was not dead, but slept or had no connection, finds its journal taken over
at its next commit, and stops; until it can write again it hands out no request. The decisions are in
:mod:`~scrapy_ext.crawl.commit.assignment`; this module executes them.

A worker without work records that in its commit journal, and revokes it there before it does anything more. So a worker
can end when, in this order, the newest records of all others report no work, every slot of the frontier is empty, and
no worker has had work since, nor has a slot moved: then no worker did anything meanwhile, and no work was left.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.job_data import JOURNAL_PREFIX
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.assignment import Assignment, Sightings, Step, next_step
from scrapy_ext.crawl.commit.events import Checkpoint
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.ownership import Ownership

logger = logging.getLogger(__name__)

_WORKER: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)
#: Heartbeats in a lease time.
_HEARTBEATS: Final = 3
#: Simultaneous reads of slots.
_AT_ONCE: Final = 16
#: Seconds between two messages that a worker waits for others.
_LOG_EVERY: Final = 60.0
#: Seconds without a record after which a worker with work may be dead.
_SILENT: Final = 30.0


class Worker(msgspec.Struct, frozen=True):
    """Index of this worker, from 0, and the number of workers."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Worker | None:
        """Parse ``"index/count"``; return None for other text."""
        match = _WORKER.fullmatch(text.strip())
        if match is None:
            return None
        worker = cls(int(match[1]), int(match[2]))
        return worker if worker.index < worker.count else None

    def owns(self, slot: int) -> bool:
        return slot % self.count == self.index


class Leases:
    """Maintains the share of one worker.

    ``on_change(slots)``: awaited with all owned slots, before some are given up and after some were taken. When it
    returns, no request of other slots runs.
    ``on_lost``: called when this worker was replaced.
    """

    def __init__(
        self,
        ownership: Ownership,
        slots: int,
        lease_time: float,
        *,
        on_change: Callable[[set[int]], Awaitable[None]],
        on_lost: Callable[[Fenced], None],
    ) -> None:
        self._ownership = ownership
        self._slots = slots
        self._lease_time = lease_time
        self._on_change = on_change
        self._on_lost = on_lost
        self._sightings = Sightings(lease_time)
        #: Slots of the last change.
        self._active = set[int]()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def has_lapsed(self) -> bool:
        """Return true if other workers may consider this one dead, or another process writes its journal."""
        log = self._ownership.log
        return log.is_fenced or time.monotonic() - log.written > self._lease_time

    async def join(self) -> None:
        """Join the workers, with the slots that are free."""
        while True:
            number, assignment = await self._ownership.assignment()
            mine = assignment.of(self._ownership.name)
            if await self._ownership.assign(number, assignment, mine):
                break
        await self._change_to(mine)
        try:
            await self.balance()
        except PlatformError as error:
            # The last items of a stopped worker cannot be stored while its job still counts as running.
            logger.warning("No slots are taken over yet, trying again: %s", error)

    def start(self) -> None:
        """Start the tasks, in the running loop: two, since giving slots up takes as long as a request does."""
        self._tasks = [asyncio.ensure_future(self._each_heartbeat(step)) for step in (self.renew, self.balance)]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _each_heartbeat(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except Fenced as fenced:
                self._on_lost(fenced)
                return
            except PlatformError as error:
                logger.warning("The lease cannot be renewed, trying again: %s", error)
            await asyncio.sleep(self._lease_time / _HEARTBEATS)

    async def renew(self) -> None:
        """Write to the journal, unless a commit has just done so."""
        if time.monotonic() - self._ownership.log.written > self._lease_time / _HEARTBEATS / 2:
            await self._ownership.log.write()

    async def balance(self) -> None:
        """Observe the other workers, and take or give up slots."""
        self._sightings.begin(time.monotonic())
        number, assignment = await self._ownership.assignment()
        await self._change(assignment.of(self._ownership.name))
        live = [name for name in assignment.owners if name != self._ownership.name and await self._lives(name)]
        self._sightings.end(time.monotonic())
        step = next_step(assignment, self._ownership.name, live, self._slots)
        if step is None:
            return
        mine = assignment.of(self._ownership.name)
        if step.slots < mine:
            await self._give_up(number, assignment, mine, step.slots)
        elif step.slots > mine:
            await self._take(number, assignment, step)
        else:
            await self._ownership.assign(number, assignment, mine, step.removed)

    async def _lives(self, name: str) -> bool:
        head = await self._ownership.journal(name).head()
        if head is None:
            return False
        is_closed = head.read(Checkpoint).closed
        return self._sightings.lives(name, head.number, is_closed=is_closed, now=time.monotonic())

    async def _take(self, number: int, assignment: Assignment, step: Step) -> None:
        for name in assignment.owners_of(step.slots, but=self._ownership.name):
            logger.info("Worker %s has ended or is dead: its slots are taken over", name)
            progress = await self._ownership.progress_of(name, step.slots, may_wait=False)
            if progress is not None:
                self._ownership.log.checkpoint.progress.add(progress.of(step.slots))
        if await self._ownership.assign(number, assignment, step.slots):
            logger.info("This worker owns slots %s now", sorted(step.slots))
            await self._change(step.slots)

    async def _give_up(self, number: int, assignment: Assignment, mine: set[int], kept: set[int]) -> None:
        await self._change(kept)
        if await self._ownership.assign(number, assignment, kept):
            logger.info("This worker gives up slots %s", sorted(mine - kept))
        else:
            # The assignment was changed meanwhile. The slots are own ones only if it still says so.
            _, changed = await self._ownership.assignment()
            await self._change(changed.of(self._ownership.name))

    async def _change(self, slots: set[int]) -> None:
        if slots != self._active:
            await self._change_to(slots)

    async def _change_to(self, slots: set[int]) -> None:
        await self._on_change(slots)
        self._active = set(slots)


class Rest(NamedTuple):
    """Remaining work of a crawl: other workers that have work, or a slot with requests that nobody runs."""

    busy: list[str]
    waiting: int | None = None

    @property
    def is_over(self) -> bool:
        return not self.busy and self.waiting is None

    def __str__(self) -> str:
        if self.busy:
            return ", ".join(self.busy)
        return f"a worker of slot {self.waiting}, which has requests"


class Ending:
    """Detection of the end of a crawl with several workers.

    ``leaves_rest``: whether requests may stay in the slots of other workers when all of these have ended. Whoever feeds
    the crawl may push them at any time.
    """

    def __init__(self, ownership: Ownership, slots: int, *, leaves_rest: bool = False) -> None:
        self._ownership = ownership
        self._slots = slots
        self._leaves_rest = leaves_rest
        self._logged = -_LOG_EVERY
        #: Number of other workers' newest records, and when each was first read.
        self._seen: dict[str, tuple[int, float]] = {}

    async def be(self, *, idle: bool) -> None:
        """Record whether this worker is idle."""
        checkpoint = self._ownership.log.checkpoint
        if checkpoint.idle != idle:
            checkpoint.idle = idle
            checkpoint.turns += 1
            await self._ownership.log.write()

    async def is_over(self) -> bool:
        """Return true if neither this worker, which is idle, nor any other has work. If not, log the reason each
        minute."""
        await self.be(idle=True)
        state = await self.look()
        if not state.is_over and time.monotonic() - self._logged > _LOG_EVERY:
            self._logged = time.monotonic()
            logger.info("This worker has no work, and waits for %s", state)
        return state.is_over

    async def look(self) -> Rest:
        """Return the work that remains for other workers."""
        before = await _others(self._ownership)
        busy = [name for name, checkpoint in before.by_name.items() if _works(checkpoint)]
        if busy:
            return Rest([self._described(name, before) for name in busy])
        have_ended = before.by_name and all(each.closed for each in before.by_name.values())
        slots = self._ownership.log.checkpoint.slots if self._leaves_rest and have_ended else range(self._slots)
        waiting = await _first_with_requests(self._ownership, slots)
        if waiting is not None:
            return Rest([], waiting)
        after = await _others(self._ownership)
        return Rest([] if _turns(after) == _turns(before) else ["workers that have just had work"])

    def _described(self, name: str, others: _Others) -> str:
        """Describe a worker to the person who may have to restart it."""
        now = time.monotonic()
        number, since = self._seen.get(name, (0, now))
        if number != others.numbers[name]:
            since = now
        self._seen[name] = (others.numbers[name], since)
        job = f"{self._ownership.project}/{name.removeprefix(JOURNAL_PREFIX).replace('-', '/')}"
        silent = f", no record for {now - since:.0f} s: if it is dead, start it again" if now - since > _SILENT else ""
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
                others.by_name[name] = head.read(Checkpoint)
                others.numbers[name] = head.number
    return others


def _turns(others: _Others) -> tuple[int, dict[str, int]]:
    """Return values that stay the same only if no worker had work meanwhile and no slot has moved."""
    return others.assignment, {name: checkpoint.turns for name, checkpoint in others.by_name.items()}


def _works(checkpoint: Checkpoint) -> bool:
    return not (checkpoint.idle or checkpoint.closed)


async def _first_with_requests(ownership: Ownership, slots: Iterable[int]) -> int | None:
    at_once = asyncio.Semaphore(_AT_ONCE)
    frontier = ownership.client.frontier

    async def has_requests(slot: int) -> bool:
        async with at_once:
            return bool(await frontier.read(ownership.project, ownership.frontier, str(slot), 1))

    slots = [*slots]
    found = await asyncio.gather(*map(has_requests, slots))
    return next((slot for slot, has in zip(slots, found, strict=True) if has), None)

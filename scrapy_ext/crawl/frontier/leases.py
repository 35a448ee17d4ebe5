"""Slots shared by workers that come and go (``FRONTIER_WORKER = "auto"``).

Each worker writes to its commit journal at least three times in a lease time. Who sees that a journal has not moved
for a whole lease time, on its own clock, takes its writer for dead and its slots over. A worker that was not dead after
all, but slept or was cut off, finds its journal taken over at its next commit, and stops; until it can write again it
hands out nothing. Clocks decide only how soon slots move; that they move to one worker at a time is decided by
:mod:`~scrapy_ext.crawl.commit.ownership`.

Each worker has its share of the slots, equal but for one. Who has more gives up the rest, who has less takes what is
free.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.checkpoint import Assignment, Checkpoint
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.ownership import Ownership

logger = logging.getLogger(__name__)

#: Writes and looks in a lease time.
_BEATS: Final = 3


class Leases:
    """Keeps the share of one worker.

    ``on_change(slots)`` is awaited with all slots that are owned: before some are given up, and after some were
    taken; when it returns nothing of the others is being worked on. ``on_lost`` hears that this worker was replaced.
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
        #: Journals of others: the number of their newest record, and since when it is that.
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def has_lapsed(self) -> bool:
        """Whether others may take this worker for dead."""
        return time.monotonic() - self._ownership.log.written > self._lease_time

    async def join(self) -> None:
        """Become one of the workers, with what slots are free at once."""
        while True:
            number, assignment = await self._ownership.assignment()
            mine = set(assignment.owners.get(self._ownership.name, ()))
            if await self._ownership.assign(number, assignment, mine):
                break
        await self._on_change(mine)
        try:
            await self.balance()
        except PlatformError as error:
            # Such as the last items of a worker that is stopped, while its job still counts as running.
            logger.warning("No slots are taken over yet, trying again: %s", error)

    def start(self) -> None:
        """Start the tasks, in the running loop. They are two, since giving slots up takes as long as a request does."""
        self._tasks = [asyncio.ensure_future(self._each_beat(step)) for step in (self.renew, self.balance)]

    async def close(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _each_beat(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except Fenced as fenced:
                self._on_lost(fenced)
                return
            except PlatformError as error:
                logger.warning("The lease cannot be renewed, trying again: %s", error)
            await asyncio.sleep(self._lease_time / _BEATS)

    async def renew(self) -> None:
        """Show that this worker lives, unless a commit just did."""
        if time.monotonic() - self._ownership.log.written > self._lease_time / _BEATS / 2:
            await self._ownership.log.write()

    async def balance(self) -> None:
        """Look at the others, and take or give up slots."""
        now = time.monotonic()
        if now - self._looked > self._lease_time / 2:
            # While this worker could not look, the others may not have been able to write.
            self._seen.clear()
        number, assignment = await self._ownership.assignment()
        live, free = await self._look(assignment)
        self._looked = time.monotonic()
        mine = set(assignment.owners.get(self._ownership.name, ()))
        share, rest = divmod(self._slots, len(live) + 1)
        most = share + (1 if rest else 0)
        too_few = any(len(assignment.owners[name]) < share for name in live)
        if self._ownership.name not in assignment.owners:
            # It had no slots and was not heard of for a while, so that it was struck out.
            await self._ownership.assign(number, assignment, mine)
        elif len(mine) > most or (len(mine) > share and too_few and not free):
            await self._give_up(number, assignment, mine, most if len(mine) > most else share)
        elif len(mine) < most and free:
            await self._take(number, assignment, mine, free[: most - len(mine)])
        elif gone := _without_slots(assignment) - {self._ownership.name, *live}:
            await self._ownership.assign(number, assignment, mine, gone)

    async def _look(self, assignment: Assignment) -> tuple[list[str], list[int]]:
        """The other workers that live, and the slots that nobody who lives has."""
        live: list[str] = []
        taken = set(assignment.owners.get(self._ownership.name, ()))
        for name, slots in assignment.owners.items():
            if name != self._ownership.name and await self._lives(name):
                live.append(name)
                taken.update(slots)
        return live, [slot for slot in range(self._slots) if slot not in taken]

    async def _lives(self, name: str) -> bool:
        head = await self._ownership.journal(name).head()
        if head is None or Checkpoint.read(head.data).closed:
            return False
        now = time.monotonic()
        number, since = self._seen.get(name, (0, now))
        if number != head.number:
            self._seen[name] = (head.number, now)
            return True
        return now - since <= self._lease_time

    async def _take(self, number: int, assignment: Assignment, mine: set[int], wanted: list[int]) -> None:
        taken = mine | set(wanted)
        for name, theirs in assignment.owners.items():
            if name != self._ownership.name and not taken.isdisjoint(theirs):
                logger.info("Worker %s is gone, its slots pass on", name)
                progress = await self._ownership.progress_of(name, taken, patient=False)
                if progress is not None:
                    self._ownership.log.checkpoint.progress.add(progress.of(taken))
        if await self._ownership.assign(number, assignment, taken):
            logger.info("Slots %s are mine now", sorted(taken))
            await self._on_change(taken)

    async def _give_up(self, number: int, assignment: Assignment, mine: set[int], keep: int) -> None:
        kept = set(sorted(mine)[:keep])
        await self._on_change(kept)
        if await self._ownership.assign(number, assignment, kept):
            logger.info("Slots %s are given up to others", sorted(mine - kept))
        else:
            # The assignment has changed meanwhile. They are still ours, and the next beat decides anew.
            await self._on_change(mine)


def _without_slots(assignment: Assignment) -> set[str]:
    return {name for name, slots in assignment.owners.items() if not slots}

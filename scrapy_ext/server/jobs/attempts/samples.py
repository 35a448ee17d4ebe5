"""Measures of running jobs: the memory of their processes every second, and samples of what they have stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final, Protocol

import msgspec

from scrapy_ext.api.platform.records import Sample
from scrapy_ext.api.violations import ContractError
from scrapy_ext.jobprocess.proc import Process, below, kernel_kills, table
from scrapy_ext.server.jobs.clock import elapsing
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.jobs.attempts import Attempt
from scrapy_ext.server.store.records.chunks import SAMPLES, Packer

#: Seconds between two samples at first, and how many are taken before it is twice as long.
EVERY: Final = 5.0
BEFORE_LESS: Final = 500
#: Seconds between two measures of memory.
_MEMORY_EVERY: Final = 1.0

logger = logging.getLogger(__name__)


class Sampler:
    """Takes the samples of an attempt. ``store``: that of the attempt."""

    def __init__(self, store: Store, attempt: Attempt) -> None:
        self._store = store
        self._key = attempt.key
        self._taken: int | None = None
        self._due = elapsing()

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next one."""
        return elapsing() >= self._due

    async def take(self, memory: int) -> None:
        """Take one, whatever time it is. One that cannot be stored is missed, and that is all."""
        try:
            if self._taken is None:  # a former attempt took some
                self._taken = (await self._store.samples.stats(self._key)).totals.input_values
            self._due = elapsing() + pause(self._taken)
            requests, items, lines = [
                (await part.stats(self._key)).totals.input_values
                for part in (self._store.requests, self._store.items, self._store.logs)
            ]
            sample = Sample(self._store.clock(), requests, items, lines, memory)
            packer = Packer(SAMPLES)
            packer.add([msgspec.json.encode(sample)], [list(sample)])
            rest = packer.rest()
            await self._store.samples.write(self._key, None, [] if rest is None else [rest])
            self._taken += 1
        except (StoreError, ContractError) as error:
            logger.debug("No sample of job %s: %s", self._key, error)


def pause(taken: int) -> float:
    """Seconds to the next sample: those of a job stay few, however long it runs."""
    return EVERY * float(2 ** min(taken // BEFORE_LESS, 30))


class Watched(Protocol):
    """A running job."""

    @property
    def pid(self) -> int | None:
        """Its first process, while it has one."""

    async def look(self, tree: list[Process], kills: int | None) -> None:
        """Take its processes as they are now, and how many the kernel has killed so far for want of memory."""


async def watch(jobs: Callable[[], Collection[Watched]]) -> None:
    """Measure jobs until this is cancelled."""
    while True:
        await asyncio.sleep(_MEMORY_EVERY)
        running = {job.pid: job for job in jobs() if job.pid is not None}
        if not running:
            continue
        try:
            trees, kills = await asyncio.to_thread(_measure, list(running))
            await asyncio.gather(*(job.look(trees[pid], kills) for pid, job in running.items() if pid is not None))
        except Exception:
            logger.exception("The jobs of this node could not be measured")


def _measure(roots: list[int]) -> tuple[dict[int, list[Process]], int | None]:
    return below(roots, table()), kernel_kills()

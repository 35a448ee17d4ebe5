"""Measurements of running jobs: memory every second, and samples of their memory and numbers of records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final, Protocol

import msgspec

from scrapy_ext.api.platform.records import Sample
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import elapsing
from scrapy_ext.jobprocess.proc import Process, below, kernel_kills, table
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.fencing import Attempt
from scrapy_ext.server.store.records.chunks import SAMPLES, Packer

#: Initial seconds between two samples, and the number of samples after which the interval doubles.
EVERY: Final = 5.0
BEFORE_LESS: Final = 500
#: Seconds between two measurements of memory.
MEASURED_EVERY: Final = 1.0

logger = logging.getLogger(__name__)


class Sampler:
    """Sampler of an attempt. Those of the workers of one job together take as many samples as one worker does."""

    def __init__(self, store: Store, attempt: Attempt) -> None:
        self._store = store
        self._attempt = attempt
        #: Set for a worker of a job with several.
        self.in_group = False
        self._taken: int | None = None
        self._due = elapsing()

    @property
    def is_due(self) -> bool:
        return elapsing() >= self._due

    async def take(self, memory: int) -> None:
        """Take a sample. One that cannot be stored is lost."""
        key = self._attempt.key
        try:
            workers = await self._store.groups.count(key) if self.in_group else 0
            self._due = elapsing() + await self._pause(max(workers, 1))
            requests, items, lines = [
                (await part.stats(key)).totals.input_values
                for part in (self._store.requests, self._store.items, self._store.logs)
            ]
            sample = list(Sample(self._store.clock(), requests, items, lines, memory, workers))
            if not self.in_group:
                sample.pop()
            packer = Packer(SAMPLES)
            packer.add([msgspec.json.encode(sample)], [sample])
            rest = packer.rest()
            await self._store.samples.write(key, None, [] if rest is None else [rest], attempt=self._attempt)
        except (StoreError, ContractError) as error:
            logger.debug("No sample of job %s: %s", key, error)

    async def _pause(self, workers: int) -> float:
        """Return the seconds to the next sample. Workers that have begun at the same time take turns."""
        turns = workers
        if self._taken is None:  # earlier attempts may have taken some
            self._taken = (await self._store.samples.stats(self._attempt.key)).totals.input_values
            turns = 1 + self._attempt.number % workers
        seconds = pause(self._taken) * turns
        self._taken += workers
        return seconds


def pause(taken: int) -> float:
    """Return the seconds to the next sample, so that a long job has few samples."""
    return EVERY * float(2 ** min(taken // BEFORE_LESS, 30))


class Watched(Protocol):
    """A running job."""

    @property
    def pid(self) -> int | None:
        """ID of its supervisor, while it runs."""

    async def measure(self, tree: list[Process], kills: int | None) -> None:
        """Receive its current processes, and the number of processes that the kernel has killed for lack of memory."""


async def measure(jobs: Callable[[], Collection[Watched]]) -> None:
    """Measure the running jobs once."""
    running = {job.pid: job for job in jobs() if job.pid is not None}
    if running:
        trees, kills = await asyncio.to_thread(_measure, list(running))
        await asyncio.gather(*(job.measure(trees[pid], kills) for pid, job in running.items() if pid is not None))


def _measure(roots: list[int]) -> tuple[dict[int, list[Process]], int | None]:
    return below(roots, table()), kernel_kills()

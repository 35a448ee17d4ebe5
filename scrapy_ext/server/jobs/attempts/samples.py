"""Samples of a running job: what it has stored so far, and its memory, every few seconds."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from scrapy_ext.api.platform.samples import Sample
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.jobs.clock import elapsing
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.jobs.attempts import Attempt
from scrapy_ext.server.store.records.chunks import SAMPLES, Packer

#: Seconds between two samples at first, and how many are taken before it is twice as long.
EVERY: Final = 5.0
BEFORE_LESS: Final = 500

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

"""How often one operation is tried, and what is waited in between."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import msgspec

from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.waits import Backoff

#: Longer than this, a ``Retry-After`` is not waited for by a plain call: the caller hears of it instead.
LONGEST_WAIT: Final = 300.0


class Patience(msgspec.Struct, frozen=True):
    """The limits: ``attempts`` in a row, or as many as fit into ``retry_time`` seconds if that is not 0."""

    attempts: int = 5
    retry_time: float = 0.0
    backoff: Backoff = Backoff()


class Trials:
    """The attempts of one operation. :meth:`failed` waits for the next one, or raises when there is none."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failures = 0
        self._failing_since = 0.0

    def progressed(self) -> None:
        """Something came through: failures are counted from the start again."""
        self._failures = 0

    async def failed(self, error: PlatformError) -> None:
        """Wait as long as the error asks for; raises it when it is not worth another attempt."""
        if self._failures == 0:
            self._failing_since = time.monotonic()
        self._failures += 1
        wait = self._patience.backoff.wait(self._failures, error.retry_after)
        if not error.retryable or wait > LONGEST_WAIT or self._exhausted(wait):
            raise error
        await asyncio.sleep(wait)

    def _exhausted(self, wait: float) -> bool:
        limit = self._patience.retry_time
        if limit > 0:
            return time.monotonic() + wait - self._failing_since > limit
        return self._failures >= self._patience.attempts

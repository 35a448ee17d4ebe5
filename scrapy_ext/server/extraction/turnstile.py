"""A bounded number of places with a bounded queue before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from scrapy_ext.server.extraction.errors import ExtractionError, overloaded


class Turnstile:
    """Lets ``places`` through at once and ``waiting`` more wait, each at most ``patience`` seconds.

    Whoever finds the queue full, or waits too long, gets 503 (or what ``refuse`` makes) with ``Retry-After``: work that
    cannot be done soon is better told than kept.
    """

    def __init__(
        self,
        what: str,
        places: int,
        waiting: int,
        patience: float,
        *,
        refuse: Callable[[str], ExtractionError] = overloaded,
    ) -> None:
        self._refuse = refuse
        self._what = what
        self._places = asyncio.Semaphore(places)
        self._room = waiting
        self._patience = patience
        self.waiting = 0
        self.inside = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for the time of the block; raises 503 ``/limits/over-global-limit``, or what ``refuse`` makes."""
        if self._places.locked():
            await self._wait()
        else:
            await self._places.acquire()
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
            self._places.release()

    async def _wait(self) -> None:
        if self.waiting >= self._room:
            raise self._refuse(f"The server has no more room for {self._what}. Send the request again later.")
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._places.acquire()
        except TimeoutError:
            raise self._refuse(f"No place for {self._what} came free in time. Send the request again later.") from None
        finally:
            self.waiting -= 1

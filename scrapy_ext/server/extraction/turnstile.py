"""A bounded number of places with a bounded queue before them, fair to those who share them.

What comes for one domain must not wait for what another one keeps busy: a site that hangs holds each of its places
until its time is up. So whenever a place comes free, it goes to the domain that holds the fewest, among several of them
to the one whose turn is longest ago, and within a domain to whoever has waited longest. A domain that nobody else
waits beside gets every place.

The queue is fair in the same way. Where it is full, the last one of the domain with the longest queue has to go, which
is the newcomer unless its own domain has two fewer waiting than that.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from scrapy_ext.server.extraction.errors import ExtractionError, overloaded

_Turn = asyncio.Future[None]


class Turnstile:
    """Lets ``places`` through at once and ``waiting`` more wait, each at most ``patience`` seconds.

    Whoever finds no room in the queue, or waits too long, gets 503 (or what ``refuse`` makes) with ``Retry-After``:
    work that cannot be done soon is better told than kept.
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
        self._places = places
        self._room = waiting
        self._patience = patience
        self._held: Counter[str] = Counter()
        #: Those who wait, by domain; the domain whose turn is next among equals comes first. None is empty.
        self._queues: dict[str, deque[_Turn]] = {}
        self.waiting = 0
        self.inside = 0

    @asynccontextmanager
    async def place(self, domain: str = "") -> AsyncIterator[None]:
        """A place for the time of the block; raises 503 ``/limits/over-global-limit``, or what ``refuse`` makes."""
        if self.inside < self._places:
            self._enter(domain)  # Nobody waits while there is a free place.
        else:
            await self._wait(domain)
        try:
            yield
        finally:
            self._leave(domain)

    def _enter(self, domain: str) -> None:
        self.inside += 1
        self._held[domain] += 1

    def _leave(self, domain: str) -> None:
        self.inside -= 1
        self._held[domain] -= 1
        if not self._held[domain]:
            del self._held[domain]
        if self._queues:
            following = min(self._queues, key=self._held.__getitem__)
            turn = self._queues[following][0]
            self._forget(following, turn)
            if following in self._queues:
                self._queues[following] = self._queues.pop(following)  # Its next turn comes after those of the others.
            self._enter(following)
            turn.set_result(None)

    async def _wait(self, domain: str) -> None:
        self._make_room(domain)
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(domain, deque()).append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except TimeoutError:
            self._give_up(domain, turn)
            raise self._refuse(f"No place for {self._what} came free in time. Send the request again later.") from None
        except asyncio.CancelledError:
            self._give_up(domain, turn)
            raise

    def _give_up(self, domain: str, turn: _Turn) -> None:
        if turn.done() and not turn.cancelled():
            if turn.exception() is None:
                self._leave(domain)  # The place came at the very moment.
        else:
            self._forget(domain, turn)

    def _make_room(self, domain: str) -> None:
        if self.waiting < self._room:
            return
        full = self._refuse(f"The server has no more room for {self._what}. Send the request again later.")
        longest = max(self._queues, key=lambda name: len(self._queues[name]), default=domain)
        if len(self._queues.get(longest, ())) < len(self._queues.get(domain, ())) + 2:
            raise full
        last = self._queues[longest][-1]
        self._forget(longest, last)
        last.set_exception(full)

    def _forget(self, domain: str, turn: _Turn) -> None:
        self._queues[domain].remove(turn)
        self.waiting -= 1
        if not self._queues[domain]:
            del self._queues[domain]

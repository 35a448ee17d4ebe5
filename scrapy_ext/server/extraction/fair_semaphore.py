"""A semaphore: a bounded number of permits with a bounded queue before them, fair to those who share them.

What comes for one domain must not wait for what another one keeps busy: a site that hangs holds each of its permits
until its time is up. So whenever a permit comes free, it goes to the domain that holds the fewest, among several of
them to the one whose turn is longest ago, and within a domain to whoever has waited longest. A domain that nobody else
waits beside gets every permit.

Keys share in the same way, before domains do, where callers have one. ``reserve`` is for work that cannot be cut off
before its time is up: with all permits taken, one more is there for a key or a domain that holds none, and two for a
key that holds none with a domain that holds none. So no key and no domain keeps all of them from others, and one that
is alone still has every ordinary permit.

The queue is fair in the same way. Where it is full, the last one of the domain with the longest queue has to go, which
is the newcomer unless its own domain has two fewer waiting than that.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from scrapy_ext.api.extraction.errors import ExtractionError, overloaded

_Turn = asyncio.Future[None]


class _Share(NamedTuple):
    """Those who wait for each other: the requests of one key for one domain."""

    key: str
    domain: str


class FairSemaphore:
    """Lets ``permits`` through at once and ``waiting`` more wait, each at most ``patience`` seconds.

    Whoever finds no room in the queue, or waits too long, gets 503 (or what ``refuse`` makes) with ``Retry-After``:
    work that cannot be done soon is better told than kept.
    """

    def __init__(
        self,
        what: str,
        permits: int,
        waiting: int,
        patience: float,
        *,
        refuse: Callable[[str], ExtractionError] = overloaded,
        reserve: bool = False,
    ) -> None:
        self._refuse = refuse
        self._what = what
        self._permits = permits
        self._room = waiting
        self._patience = patience
        self._reserve = reserve
        #: Permits that each domain and each key holds.
        self._held: Counter[str] = Counter()
        self._held_by_key: Counter[str] = Counter()
        #: Those who wait, by share; the one whose turn is next among equals comes first. None is empty.
        self._queues: dict[_Share, deque[_Turn]] = {}
        self.waiting = 0
        self.inside = 0

    @asynccontextmanager
    async def permit(self, domain: str = "", key: str = "") -> AsyncIterator[None]:
        """A permit for the time of the block; raises 503 ``/limits/over-global-limit``, or what ``refuse`` makes."""
        share = _Share(key, domain)
        if self._has_permit(share):
            self._enter(share)  # Nobody who could have it waits while there is a free permit.
        else:
            await self._wait(share)
        try:
            yield
        finally:
            self._leave(share)

    def _has_permit(self, share: _Share) -> bool:
        more = 0
        if self._reserve:
            more = (not self._held_by_key[share.key]) + (not self._held[share.domain])
        return self.inside < self._permits + more

    def _enter(self, share: _Share) -> None:
        self.inside += 1
        self._held[share.domain] += 1
        self._held_by_key[share.key] += 1

    def _leave(self, share: _Share) -> None:
        self.inside -= 1
        for held, name in ((self._held, share.domain), (self._held_by_key, share.key)):
            held[name] -= 1
            if not held[name]:
                del held[name]
        while following := min(filter(self._has_permit, self._queues), key=self._has, default=None):
            turn = self._queues[following][0]
            self._forget(following, turn)
            if following in self._queues:
                self._queues[following] = self._queues.pop(following)  # Its next turn comes after those of the others.
            if not turn.done():  # Else it is cancelled, and is about to give up.
                self._enter(following)
                turn.set_result(None)

    def _has(self, share: _Share) -> tuple[int, int]:
        return self._held_by_key[share.key], self._held[share.domain]

    async def _wait(self, share: _Share) -> None:
        self._make_room(share)
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(share, deque()).append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except TimeoutError:
            self._give_up(share, turn)
            raise self._refuse(f"No place for {self._what} came free in time. Send the request again later.") from None
        except asyncio.CancelledError:
            self._give_up(share, turn)
            raise

    def _give_up(self, share: _Share, turn: _Turn) -> None:
        if turn.done() and not turn.cancelled():
            if turn.exception() is None:
                self._leave(share)  # The permit came at the very moment.
        else:
            self._forget(share, turn)

    def _make_room(self, share: _Share) -> None:
        if self.waiting < self._room:
            return
        full = self._refuse(f"The server has no more room for {self._what}. Send the request again later.")
        longest = max(self._queues, key=lambda other: len(self._queues[other]), default=share)
        if len(self._queues.get(longest, ())) < len(self._queues.get(share, ())) + 2:
            raise full
        last = self._queues[longest][-1]
        self._forget(longest, last)
        last.set_exception(full)

    def _forget(self, share: _Share, turn: _Turn) -> None:
        if turn not in self._queues.get(share, ()):
            return
        self._queues[share].remove(turn)
        self.waiting -= 1
        if not self._queues[share]:
            del self._queues[share]

"""Fair semaphore: a bounded number of permits with a bounded queue, shared fairly among domains and keys.

Requests for one domain must not wait for another one that keeps its permits busy: a site that hangs holds each of its
permits until the time of the request is up. So a free permit goes to the domain that holds the fewest; among several of
them to the one that was served longest ago; and within a domain to the request that waits longest. A domain without
others beside it gets every permit.

Keys share in the same way, before domains do, where callers have one. ``reserve`` is for work that cannot be cancelled:
with all permits taken, there is one more for a key or a domain that holds none, and two for a key that holds none with
a domain that holds none. So no key and no domain takes all of them, and a single one still has every ordinary permit.

The queue is fair in the same way. When it is full, the last request of the domain with the longest queue is refused,
which is the new one unless its own domain has two fewer waiting than that.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from scrapy_ext.api.extraction.problems import ExtractionError, overloaded
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.telemetry.spans import inner_span

_Waiter = asyncio.Future[None]


class _Share(NamedTuple):
    """The requests that wait for each other: those of one key for one domain."""

    key: str
    domain: str


class FairSemaphore:
    """Semaphore of ``permits``; ``waiting`` more requests wait, each at most ``timeout`` seconds.

    A request that finds the queue full, or waits too long, gets 503 (or the error of ``refuse``) with ``Retry-After``:
    its
    caller can send it elsewhere or later.
    """

    def __init__(
        self,
        name: str,
        permits: int,
        waiting: int,
        timeout: float,
        *,
        refuse: Callable[[str], ExtractionError] = overloaded,
        reserve: bool = False,
    ) -> None:
        self._refuse = refuse
        self._name = name
        self.permits = permits
        self._room = waiting
        self._timeout = timeout
        self._reserve = reserve
        #: Permits that each domain and each key holds.
        self._held: Counter[str] = Counter()
        self._held_by_key: Counter[str] = Counter()
        #: The queues, by share, in the order in which equal shares are served. None is empty.
        self._queues: dict[_Share, deque[_Waiter]] = {}
        self.waiting = 0
        self.inside = 0

    @asynccontextmanager
    async def permit(self, domain: str = "", key: str = "") -> AsyncIterator[None]:
        """Hold a permit for the time of the block; raises 503 ``/limits/over-global-limit``, or the error of
        ``refuse``.
        """
        share = _Share(key, domain)
        if self._has_permit(share):
            self._enter(share)  # No request that could have it waits while there is a free permit.
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
        return self.inside < self.permits + more

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
        while following := min(filter(self._has_permit, self._queues), key=self._held_by, default=None):
            waiter = self._queues[following][0]
            self._forget(following, waiter)
            if following in self._queues:
                self._queues[following] = self._queues.pop(following)  # The other shares are served before it is again.
            if not waiter.done():  # Else it is cancelled, and about to leave.
                self._enter(following)
                waiter.set_result(None)

    def _held_by(self, share: _Share) -> tuple[int, int]:
        return self._held_by_key[share.key], self._held[share.domain]

    async def _wait(self, share: _Share) -> None:
        self._make_room(share)
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(share, deque()).append(waiter)
        self.waiting += 1
        try:
            with inner_span("wait", {"scrapy_ext.queue": self._name}):
                async with timeout_after(self._timeout):
                    await waiter
        except TIMEOUT_ERRORS:
            self._leave_queue(share, waiter)
            raise self._refuse(
                f"The server was too busy for {self._name} in this time. Send the request again later."
            ) from None
        except asyncio.CancelledError:
            self._leave_queue(share, waiter)
            raise

    def _leave_queue(self, share: _Share, waiter: _Waiter) -> None:
        if waiter.done() and not waiter.cancelled():
            if waiter.exception() is None:
                self._leave(share)  # The permit arrived at the same moment.
        else:
            self._forget(share, waiter)

    def _make_room(self, share: _Share) -> None:
        if self.waiting < self._room:
            return
        full = self._refuse(f"The server has no more room for {self._name}. Send the request again later.")
        longest = max(self._queues, key=lambda other: len(self._queues[other]), default=share)
        if len(self._queues.get(longest, ())) < len(self._queues.get(share, ())) + 2:
            raise full
        last = self._queues[longest][-1]
        self._forget(longest, last)
        last.set_exception(full)

    def _forget(self, share: _Share, waiter: _Waiter) -> None:
        if waiter not in self._queues.get(share, ()):
            return
        self._queues[share].remove(waiter)
        self.waiting -= 1
        if not self._queues[share]:
            del self._queues[share]

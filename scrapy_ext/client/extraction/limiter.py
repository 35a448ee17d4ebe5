"""Who may send a request now.

:class:`Admission` is the state machine, without time or waiting of its own:

- a request waits in the queue of its domain, and in no other place;
- at most ``total`` requests are active, at most ``per_domain`` of one domain;
- a pause of a domain holds that domain back; a pause of everything holds all back. Pauses only grow, and end by
  time alone;
- domains with a request that could go take turns, so that a full or paused domain costs the others nothing.

:class:`Limiter` puts futures and one timer around it. A request that waits there holds nothing else, and can be
cancelled.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from scrapy_ext.api.extraction.problems import Scope

T = TypeVar("T", bound=Hashable)


class Admission(Generic[T]):
    """The state machine. Requests are told apart by a ticket; a cap of 0 is none."""

    def __init__(
        self,
        total: int,
        per_domain: int,
        caps: Mapping[str, int] | None = None,
        delay_of: Callable[[str], float] | None = None,
    ) -> None:
        self._total = total
        self._delay_of = delay_of
        self._per_domain = per_domain
        self._caps = caps or {}
        self._active = 0
        self._active_by_domain: dict[str, int] = {}
        self._waiting: dict[str, OrderedDict[T, None]] = {}
        #: Domains of which a request may go, as far as the domain is concerned, in the order of their turns.
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._paused: dict[str, float] = {}
        self._pause_ends: list[tuple[float, str]] = []
        self._all_paused_until = float("-inf")

    @property
    def active(self) -> int:
        """How many requests were admitted and have not finished."""
        return self._active

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return sum(map(len, self._waiting.values()))

    def enter(self, domain: str, ticket: T) -> None:
        """A request begins to wait."""
        self._waiting.setdefault(domain, OrderedDict())[ticket] = None
        self._offer(domain)

    def leave(self, domain: str, ticket: T) -> None:
        """A request gives up waiting."""
        queue = self._waiting.get(domain)
        if queue is not None and ticket in queue:
            del queue[ticket]
            if not queue:
                del self._waiting[domain]

    def finish(self, domain: str) -> None:
        """An admitted request is done."""
        self._active -= 1
        left = self._active_by_domain[domain] - 1
        if left:
            self._active_by_domain[domain] = left
        else:
            del self._active_by_domain[domain]
        self._offer(domain)

    def pause(self, scope: Scope, domain: str, until: float) -> None:
        """Hold back what a limit is about, until a point of time."""
        if scope in (Scope.USER, Scope.GLOBAL):
            self._all_paused_until = max(self._all_paused_until, until)
        elif scope is not Scope.NONE and until > self._paused.get(domain, float("-inf")):
            self._paused[domain] = until
            heapq.heappush(self._pause_ends, (until, domain))
            self._ready.pop(domain, None)

    def admit(self, now: float) -> list[tuple[str, T]]:
        """Domain and ticket of the requests that may go now. They are active from here on."""
        self._end_pauses(now)
        admitted: list[tuple[str, T]] = []
        if now < self._all_paused_until:
            return admitted
        while self._ready and (not self._total or self._active < self._total):
            domain, _ = self._ready.popitem(last=False)
            if not self._may_go(domain):
                continue
            admitted.append((domain, self._take(domain)))
            delay = self._delay_of(domain) if self._delay_of is not None else 0
            if delay > 0:
                self.pause(Scope.DOMAIN, domain, now + delay)
            self._offer(domain)
        return admitted

    def next_change(self, now: float) -> float | None:
        """When a pause that holds something back ends; None when none does."""
        if not self._waiting:
            return None
        if now < self._all_paused_until:
            return self._all_paused_until
        return self._pause_ends[0][0] if self._pause_ends else None

    def _may_go(self, domain: str) -> bool:
        cap = self._caps.get(domain, self._per_domain)
        has_room = not cap or self._active_by_domain.get(domain, 0) < cap
        return has_room and domain in self._waiting and domain not in self._paused

    def _offer(self, domain: str) -> None:
        if self._may_go(domain):
            self._ready.setdefault(domain)

    def _take(self, domain: str) -> T:
        queue = self._waiting[domain]
        ticket, _ = queue.popitem(last=False)
        if not queue:
            del self._waiting[domain]
        self._active += 1
        self._active_by_domain[domain] = self._active_by_domain.get(domain, 0) + 1
        return ticket

    def _end_pauses(self, now: float) -> None:
        while self._pause_ends and self._pause_ends[0][0] <= now:
            until, domain = heapq.heappop(self._pause_ends)
            # A pause that grew has a later entry.
            if self._paused.get(domain) == until:
                del self._paused[domain]
                self._offer(domain)


class Limiter:
    """Caps and pauses for requests of one event loop. ``caps`` overrides ``per_domain`` for single domains;
    ``delay_of(domain)`` is how many seconds pass between the starts of two requests to a domain."""

    def __init__(
        self,
        total: int,
        per_domain: int,
        *,
        caps: Mapping[str, int] | None = None,
        delay_of: Callable[[str], float] | None = None,
    ) -> None:
        self._admission: Admission[asyncio.Future[None]] = Admission(total, per_domain, caps, delay_of)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def active(self) -> int:
        """How many requests are being sent."""
        return self._admission.active

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return self._admission.waiting

    @asynccontextmanager
    async def turn(self, domain: str) -> AsyncIterator[None]:
        """Wait for a request's turn; it lasts as long as the context."""
        await self._wait(domain)
        try:
            yield
        finally:
            self._admission.finish(domain)
            self._advance()

    def pause(self, scope: Scope, domain: str, seconds: float) -> None:
        """Hold back what a limit is about for so long."""
        self._admission.pause(scope, domain, asyncio.get_running_loop().time() + seconds)

    async def _wait(self, domain: str) -> None:
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._admission.enter(domain, ticket)
        self._advance()
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self._admission.finish(domain)
            else:
                self._admission.leave(domain, ticket)
            self._advance()
            raise

    def _advance(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while admitted := self._admission.admit(now):
            for domain, ticket in admitted:
                if ticket.cancelled():
                    # Its task was cancelled and has not run since; its place goes to another.
                    self._admission.finish(domain)
                else:
                    ticket.set_result(None)
        self._set_timer(loop, self._admission.next_change(now))

    def _set_timer(self, loop: asyncio.AbstractEventLoop, when: float | None) -> None:
        if self._timer is not None:
            if when == self._timer.when():
                return
            self._timer.cancel()
            self._timer = None
        if when is not None:
            self._timer = loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._advance()

"""Waiting for :mod:`~scrapy_ext.client.extraction.admission`: futures, and one timer.

A request that waits here holds no other resource, and can be cancelled. When the crawl closes, one that waits for the
end of a limit of the service, or for another attempt, ends with :class:`Closing`, so that it can return to the
scheduler. One that only waits for its turn is sent, as it is by Scrapy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum

from scrapy_ext.api.extraction.problems import Scope
from scrapy_ext.client.extraction.admission import Admission


class Closing(Exception):  # noqa: N818  # it is no error
    """The request is not sent: the crawl is closing."""

    def __init__(self, reason: str = "the crawl is closing") -> None:
        super().__init__(reason)


class _State(IntEnum):
    OPEN = 0
    #: Waits for limits and for other attempts end, and the rest goes on.
    CLOSING = 1
    #: Every wait ends.
    CLOSED = 2


class Limiter:
    """Caps and pauses for requests of one event loop. See :class:`~scrapy_ext.client.extraction.admission.Admission`
    for the arguments."""

    def __init__(
        self,
        total: int,
        per_domain: int,
        *,
        cap_of: Callable[[str], int] | None = None,
        delay_of: Callable[[str], float] | None = None,
        may_start: Callable[[str, int], bool] | None = None,
    ) -> None:
        self._admission: Admission[asyncio.Future[None]] = Admission(total, per_domain, cap_of, delay_of, may_start)
        self._timer: asyncio.TimerHandle | None = None
        self._backing_off: set[asyncio.Future[None]] = set()
        #: Requests that wait for another attempt, or for an identical request.
        self._aside = 0
        #: Requests that wait for a permit after a first attempt, and those that have it.
        self._again = 0
        self._repeated = 0
        self._state = _State.OPEN
        #: Called with a domain that may have room.
        self.on_room: list[Callable[[str], None]] = []
        #: Called with a domain that the service limits, and the seconds of the limit.
        self.on_pause: list[Callable[[str, float], None]] = []
        #: Called in the context of a request that backs off, so that others may go in its place.
        self.on_sleep: list[Callable[[], None]] = []
        #: Called when :attr:`held` may have changed.
        self.on_held: Callable[[], None] = lambda: None

    @property
    def is_closed(self) -> bool:
        """True if nothing may be sent any more."""
        return self._state is _State.CLOSED

    @property
    def active(self) -> int:
        """Number of requests that are being sent."""
        return self._admission.active

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a permit."""
        return self._admission.waiting

    @property
    def is_all_paused(self) -> bool:
        """True while nothing may be sent to any domain."""
        return self._admission.is_all_paused(asyncio.get_running_loop().time())

    @property
    def held(self) -> int:
        """Number of requests that wait for a limit, for the time before another attempt, or for an identical request.
        Another attempt counts as well, until it ends: with a slow service, many repeated requests would take every
        permit, and keep out all first attempts."""
        held = self._admission.held(asyncio.get_running_loop().time())
        return min(self._admission.waiting, held + self._again) + self._repeated + self._aside

    def has_room(self, domain: str, others: int = 0) -> bool:
        """Return whether a request for the domain would be sent without waiting for its domain. ``others`` is the
        number of the domain's requests that the caller has begun or is about to begin. A pause of everything does not
        count: it holds back all requests here."""
        return self._admission.has_room(domain, others, asyncio.get_running_loop().time())

    def offer(self, domain: str) -> None:
        """Send requests of a domain that have got a permit from outside."""
        self._admission.offer(domain)
        self._advance()

    def demand(self) -> Iterator[tuple[str, int, int]]:
        """Yield the domains, with their active and their waiting requests."""
        return self._admission.demand()

    def is_limited(self, domain: str) -> bool:
        """Return whether the service limits a domain, or many of its requests wait for another attempt."""
        return self._admission.is_limited(domain, asyncio.get_running_loop().time())

    def begin(self, domain: str) -> None:
        self._admission.begin(domain)

    def end(self, domain: str) -> None:
        self._admission.end(domain)
        self._notify_room(domain)

    def check_open(self, domain: str) -> None:
        """Raise :class:`Closing` when nothing may be sent to a domain any more."""
        if self._state and self._ends(domain):
            raise Closing

    async def permit(self, domain: str, *, again: bool = False) -> AbstractContextManager[None]:
        """Wait for the permit to send a request; return the context for which it lasts. ``again``: it had one before.
        Raises :class:`Closing`."""
        await self._admitted(domain, again)
        return self._permitted(domain, again=again)

    @contextmanager
    def _permitted(self, domain: str, *, again: bool) -> Iterator[None]:
        if again:
            self._repeated += 1
            self.on_held()
        try:
            yield
        finally:
            self._admission.finish(domain, asyncio.get_running_loop().time())
            if self._admission.waiting:
                self._advance()
            if again:
                self._repeated -= 1
                self.on_held()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Count a request as held that waits inside, for another attempt or for an identical request."""
        self._aside += 1
        self.on_held()
        try:
            yield
        finally:
            self._aside -= 1
            self.on_held()

    async def back_off(self, domain: str, seconds: float, *, lend: bool = True) -> None:
        """Wait before another attempt at an extraction; ``lend``: others may go meanwhile. Raises :class:`Closing`."""
        if self._state:
            raise Closing
        if not lend:
            await self._sleep(seconds)
            return
        if not self._admission.begin_backoff(domain):
            with self.aside():
                await self._sleep(seconds)
            return
        try:
            for notify in self.on_sleep:
                notify()
            self._notify_room(domain)
            with self.aside():
                await self._sleep(seconds)
        finally:
            self._admission.end_backoff(domain)

    async def _sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        waking: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake, waking)
        self._backing_off.add(waking)
        try:
            await waking
        finally:
            timer.cancel()
            self._backing_off.discard(waking)

    def succeeded(self, domain: str) -> None:
        """Record the success of a request that has a permit."""
        self._admission.succeeded(domain)

    def refused(self, scope: Scope, domain: str, seconds: float, sent: float) -> float:
        """Record a limit of this many seconds for a request that has a permit and was sent at this time of the loop.
        Returns by how many seconds it extends the pause."""
        now = asyncio.get_running_loop().time()
        self._admission.refused(scope, domain, sent, now)
        before = self._admission.pause(scope, domain, now + seconds)
        if scope in (Scope.DOMAIN, Scope.ORGANISATION_DOMAIN):
            for notify in self.on_pause:
                notify(domain, seconds)
        if self._state:
            self._end_waits()
        self._advance()
        return max(0.0, now + seconds - max(before, now))

    def wind_up(self, *, at_once: bool = False) -> None:
        """End the waits for limits and for other attempts, and refuse further ones. The rest goes on; ``at_once``: only
        requests that are being sent do."""
        self._state = max(self._state, _State.CLOSED if at_once else _State.CLOSING)
        self._end_waits()

    def _end_waits(self) -> None:
        """End the waits for other attempts and for limits; if nothing may be sent any more, every wait."""
        for domain, ticket in self._admission.tickets():
            if self._ends(domain):
                self._admission.leave(domain, ticket)
                _end(ticket)
        for waking in list(self._backing_off):
            _end(waking)

    def _ends(self, domain: str) -> bool:
        """Return whether a request to this domain may not wait for its turn when the crawl closes."""
        return self.is_closed or self.is_all_paused or self.is_limited(domain)

    def close(self) -> None:
        """End every wait, and refuse further ones."""
        self._state = _State.CLOSED
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._end_waits()

    async def _admitted(self, domain: str, again: bool) -> None:
        self.check_open(domain)
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._admission.enter_now(domain, now):
            if self._admission.has_delays:
                self._set_timer(loop, self._admission.next_change(now))  # For the next one of the domain.
            return
        ticket: asyncio.Future[None] = loop.create_future()
        self._admission.enter(domain, ticket)
        self._again += again
        self._advance()
        self.on_held()
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled() and ticket.exception() is None:
                self._admission.finish(domain)
            else:
                self._admission.leave(domain, ticket)
            self._advance()
            raise
        finally:
            self._again -= again
            self.on_held()
        if self.is_closed:  # It was admitted, and its task had not run yet.
            self._admission.finish(domain)
            raise Closing

    def _advance(self) -> None:
        if self.is_closed:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for domain in self._admission.end_pauses(now):
            self._notify_room(domain)
        while admitted := self._admission.admit(now):
            for domain, ticket in admitted:
                if ticket.cancelled():
                    # Its task was cancelled and has not run since; another request is admitted in its place.
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

    def _notify_room(self, domain: str) -> None:
        for notify in self.on_room:
            notify(domain)


def _wake(waking: asyncio.Future[None]) -> None:
    if not waking.done():
        waking.set_result(None)


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(Closing())

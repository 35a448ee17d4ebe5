"""The waiting around :mod:`~scrapy_ext.client.extraction.admission`: futures, and one timer.

A request that waits here holds nothing else. It can be cancelled. When the crawl closes, one that waits for a limit of
the service to end, or for another attempt, ends with :class:`Closing`, so that it can go back to where it came from.
One that waits for its turn alone is sent, as it is by Scrapy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from scrapy_ext.api.extraction.problems import Scope
from scrapy_ext.client.extraction.admission import Admission


class Closing(Exception):  # noqa: N818  # it is no error
    """The crawl closes: nothing more is sent."""


class Limiter:
    """Caps and pauses for requests of one event loop. See :class:`~scrapy_ext.client.extraction.admission.Admission`
    for the arguments."""

    def __init__(
        self,
        total: int,
        per_domain: int,
        *,
        caps: Mapping[str, int] | None = None,
        delay_of: Callable[[str], float] | None = None,
    ) -> None:
        self._admission: Admission[asyncio.Future[None]] = Admission(total, per_domain, caps, delay_of)
        self._has_delays = delay_of is not None
        self._timer: asyncio.TimerHandle | None = None
        self._sleepers: set[asyncio.Future[None]] = set()
        #: How many wait for another attempt, or for another's request.
        self._aside = 0
        #: How many wait for their turn after a first attempt, and how many have it.
        self._again = 0
        self._repeated = 0
        self._is_closed = self._is_closing = False
        #: Told that there may be room for a domain.
        self.on_room: list[Callable[[str], None]] = []
        #: Told that the service wants nothing for a domain for so many seconds.
        self.on_pause: list[Callable[[str, float], None]] = []
        #: Told, in its own context, that a request waits for another attempt and others may go in its place.
        self.on_sleep: list[Callable[[], None]] = []
        #: Told that :attr:`held` may have changed.
        self.on_held: Callable[[], None] = lambda: None

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be sent any more."""
        return self._is_closed

    @property
    def active(self) -> int:
        """How many requests are being sent."""
        return self._admission.active

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return self._admission.waiting

    @property
    def is_all_paused(self) -> bool:
        """Whether nothing may be sent to any domain for now."""
        return self._admission.is_all_paused(asyncio.get_running_loop().time())

    @property
    def held(self) -> int:
        """Number of requests that wait for a limit, for the time before another attempt, or for an identical request.
        Another attempt counts as well, until it ends: with a slow service, many that are repeated would take every
        turn, and keep out all that has not been tried yet."""
        held = self._admission.held(asyncio.get_running_loop().time())
        return min(self._admission.waiting, held + self._again) + self._repeated + self._aside

    def has_room(self, domain: str, others: int = 0) -> bool:
        """Whether a request for the domain would be sent without waiting for its domain. ``others`` is how many of the
        domain the caller knows of: those that are here, and those that are on their way. A pause of everything does not
        count: it holds all back here."""
        return self._admission.has_room(domain, others, asyncio.get_running_loop().time())

    def is_limited(self, domain: str) -> bool:
        """Return whether the service limits a domain, or many of its requests wait for another attempt."""
        return self._admission.is_limited(domain, asyncio.get_running_loop().time())

    def take_up(self, domain: str) -> None:
        """An extraction begins."""
        self._admission.take_up(domain)

    def put_down(self, domain: str) -> None:
        """An extraction ends."""
        self._admission.put_down(domain)
        self._tell_room(domain)

    def check_open(self, domain: str) -> None:
        """Raises :class:`Closing` when nothing may be sent to a domain any more."""
        if self._is_closed or (self._is_closing and (self.is_all_paused or self.is_limited(domain))):
            raise _closing()

    def turn(self, domain: str, *, again: bool = False) -> Turn:
        """A request's turn, waited for; it lasts as long as the context. ``again`` says that it had one before. Raises
        :class:`Closing`."""
        return Turn(self, domain, again)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What runs inside waits for another's request."""
        self._aside += 1
        self.on_held()
        try:
            yield
        finally:
            self._aside -= 1
            self.on_held()

    async def sleep(self, domain: str, seconds: float, *, lend: bool = True) -> None:
        """Wait before another attempt, in an extraction that was taken up; ``lend``: others may go meanwhile. Raises
        :class:`Closing`."""
        if self._is_closed or self._is_closing:
            raise _closing()
        if not lend or not self._admission.fall_asleep(domain):
            await self._sleep(seconds, lend)
            return
        try:
            for tell in self.on_sleep:
                tell()
            self._tell_room(domain)
            await self._sleep(seconds, lend)
        finally:
            self._admission.wake_up(domain)

    async def _sleep(self, seconds: float, lend: bool) -> None:
        loop = asyncio.get_running_loop()
        waking: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake, waking)
        self._sleepers.add(waking)
        self._aside += lend
        self.on_held()
        try:
            await waking
        finally:
            timer.cancel()
            self._sleepers.discard(waking)
            self._aside -= lend
            self.on_held()

    def succeeded(self, domain: str) -> None:
        """A request that has its turn succeeded."""
        self._admission.succeeded(domain)

    def refused(self, scope: Scope, domain: str, seconds: float, sent: float) -> float:
        """A request that has its turn, sent at this time of the loop, met a limit that holds for so long. Returns by
        how many seconds that makes the pause longer."""
        now = asyncio.get_running_loop().time()
        self._admission.refused(scope, domain, sent, now)
        before = self._admission.pause(scope, domain, now + seconds)
        if scope in (Scope.DOMAIN, Scope.ORGANISATION_DOMAIN):
            for tell in self.on_pause:
                tell(domain, seconds)
        if self._is_closing:
            self._end_limited()
        self._advance()
        return max(0.0, now + seconds - max(before, now))

    def wind_up(self) -> None:
        """End the waits for limits and for other attempts, and let none begin. The rest goes on."""
        self._is_closing = True
        self._end_limited()
        for waking in list(self._sleepers):
            _end(waking)

    def _end_limited(self) -> None:
        for domain, ticket in self._admission.tickets():
            if self.is_all_paused or self.is_limited(domain):
                self._admission.leave(domain, ticket)
                _end(ticket)

    def close(self) -> None:
        """End every wait, and let none begin."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for domain, ticket in self._admission.tickets():
            self._admission.leave(domain, ticket)
            _end(ticket)
        for waking in list(self._sleepers):
            _end(waking)

    # ── inside ──

    async def _enter(self, domain: str, again: bool) -> None:
        await self._admitted(domain, again)
        if again:
            self._repeated += 1
            self.on_held()

    async def _admitted(self, domain: str, again: bool) -> None:
        self.check_open(domain)
        loop = asyncio.get_running_loop()
        if self._admission.enter_now(domain, loop.time()):
            if self._has_delays:
                self._advance()  # The schedulers are told when the next one may go.
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
        if self._is_closed:  # It was given its turn and had not run yet.
            self._admission.finish(domain)
            raise _closing()

    def _leave(self, domain: str, again: bool) -> None:
        self._admission.finish(domain)
        if self._admission.waiting:
            self._advance()
        if again:
            self._repeated -= 1
            self.on_held()

    def _advance(self) -> None:
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for domain in self._admission.end_pauses(now):
            self._tell_room(domain)
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

    def _tell_room(self, domain: str) -> None:
        for tell in self.on_room:
            tell(domain)


class Turn:
    """See :meth:`Limiter.turn`."""

    __slots__ = ("_again", "_domain", "_limiter")

    def __init__(self, limiter: Limiter, domain: str, again: bool) -> None:
        self._limiter = limiter
        self._domain = domain
        self._again = again

    async def __aenter__(self) -> None:
        await self._limiter._enter(self._domain, self._again)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._limiter._leave(self._domain, self._again)


def _wake(waking: asyncio.Future[None]) -> None:
    if not waking.done():
        waking.set_result(None)


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(_closing())


def _closing() -> Closing:
    return Closing("the crawl is closing")

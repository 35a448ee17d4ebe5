"""Admission of requests to the service: a state machine without clock and waiting.

- A waiting request is in the queue of its domain, and nowhere else.
- The number of active requests is bounded by one window for all, and one for each domain. A window has the caller's
  limit until the service reports a limit, which halves it; each success then enlarges it by one request per round:
  additive increase, multiplicative decrease.
- A pause of a domain holds back that domain, a pause of everything holds back all. Pauses only grow, and end by time
  alone.
- Domains with a request that could go take turns, so that a full or paused domain costs the others nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

import msgspec

from scrapy_ext.api.extraction.problems import Scope

T = TypeVar("T", bound=Hashable)

_LONG_AGO = float("-inf")
#: Seconds for which the smaller window of a domain is kept when nothing more is sent to it.
_REMEMBERED = 600.0
#: Requests of a domain that may back off without counting as active, as a multiple of its cap, and at least: a few
#: pages that the site bans hold back nothing, and many do.
_BACKING_OFF = 4
_LEAST_BACKING_OFF = 32
#: Domains whose last start is kept, before those without a start for so long are forgotten.
_LEAST_STARTED = 1000


class Window:
    """The number of requests that may be active at once; 0: any number."""

    __slots__ = ("_most", "_size", "cut_at")

    def __init__(self, most: int) -> None:
        self._most = most or math.inf
        self._size = self._most
        #: Time of the last decrease.
        self.cut_at = _LONG_AGO

    def limit(self, most: int) -> None:
        """Change the limit; a window that was cut grows to it."""
        is_whole = self._size >= self._most
        self._most = most or math.inf
        self._size = self._most if is_whole else min(self._size, self._most)

    def is_cut(self, now: float) -> bool:
        """Return whether it is smaller than its limit by a recent decrease."""
        return self._size < self._most and now < self.cut_at + _REMEMBERED

    def has_room(self, active: int) -> bool:
        return active + 1 <= self._size

    def grow(self) -> None:
        """Record a success."""
        if self._size < self._most:
            self._size = min(self._most, self._size + 1 / self._size)

    def cut(self, active: int, sent: float, now: float) -> bool:
        """Record a limit for a request that was sent at ``sent``, with this number of active ones. Returns False, and
        changes nothing, for one sent before the last cut: it met the limit of the former window."""
        if sent < self.cut_at:
            return False
        self._size = max(1.0, min(self._size, active) / 2)
        self.cut_at = now
        return True


class _Domain(msgspec.Struct, Generic[T], eq=False):
    window: Window
    waiting: OrderedDict[T, None] = msgspec.field(default_factory=OrderedDict)
    active: int = 0
    #: Extractions that have begun and not ended, without those that back off.
    extractions: int = 0
    backing_off: int = 0
    #: End of a pause by a delay or a limit; by a limit alone.
    paused_until: float = _LONG_AGO
    limited_until: float = _LONG_AGO

    def is_forgettable(self, now: float) -> bool:
        is_busy = self.waiting or self.active or self.extractions or self.backing_off or self.paused_until > now
        return not is_busy and not self.window.is_cut(now)


class Admission(Generic[T]):
    """The state machine. A ticket identifies a waiting request; a cap of 0 is none.

    ``may_start(domain, active)``: takes the permit to start one more request; without it, the domain waits for
    :meth:`offer`. ``cap_of(domain)`` replaces ``per_domain``, and may change at any time. ``delay_of(domain)`` returns
    the seconds between the starts of two requests to a domain. As in Scrapy's downloader, it is called anew whenever a
    request could start, and after each start.
    """

    def __init__(
        self,
        total: int,
        per_domain: int,
        cap_of: Callable[[str], int] | None = None,
        delay_of: Callable[[str], float] | None = None,
        may_start: Callable[[str, int], bool] | None = None,
    ) -> None:
        self._window = Window(total)
        self._per_domain = per_domain
        self._cap_of = cap_of
        self._delay_of = delay_of
        self._may_start = may_start
        #: Start of the last request of each domain, if there are delays.
        self._started: dict[str, float] = {}
        #: Whether a request has finished. A service that has just started may take a second for the first one, so that
        #: the next one would reach the site at the same time: until then a delay begins at the end of a request.
        self._has_finished = False
        self._most_started = _LEAST_STARTED
        self._domains: dict[str, _Domain[T]] = {}
        #: Domains with a request that neither window nor pause of the domain holds back, in the order of their turns.
        self._ready: OrderedDict[str, None] = OrderedDict()
        #: Heap of times at which a pause may end, or a domain may be forgotten.
        self._changes: list[tuple[float, str]] = []
        #: Domains with waiting requests.
        self._queued: dict[str, _Domain[T]] = {}
        self._all_paused_until = _LONG_AGO
        #: Requests that were admitted and have not finished.
        self.active = 0
        #: Requests that wait for admission.
        self.waiting = 0

    @property
    def has_delays(self) -> bool:
        return self._delay_of is not None

    def held(self, now: float) -> int:
        """Return the number of requests that wait for the end of a limit of the service. Delays and caps of the caller
        do not count: a request that waits for these occupies a slot, as in Scrapy's downloader."""
        if now < self._all_paused_until:
            return self.waiting
        return sum(
            len(state.waiting)
            for domain, state in self._queued.items()
            if domain not in self._ready and self._is_limited(domain, state, now)
        )

    def is_all_paused(self, now: float) -> bool:
        """Return whether everything is held back."""
        return now < self._all_paused_until

    # ── extractions ──

    def begin(self, domain: str) -> None:
        """Count an extraction for :meth:`has_room`, until it ends or backs off."""
        self._domain(domain).extractions += 1

    def end(self, domain: str) -> None:
        state = self._domains[domain]
        state.extractions -= 1
        self._forget(domain, state)

    def begin_backoff(self, domain: str) -> bool:
        """Stop counting an extraction that waits for its next attempt. Returns False, and goes on counting it, when too
        many of its domain do."""
        state = self._domains[domain]
        if state.backing_off >= self._backoff_limit(domain):
            return False
        state.extractions -= 1
        state.backing_off += 1
        return True

    def end_backoff(self, domain: str) -> None:
        """Count an extraction again that has backed off."""
        state = self._domains[domain]
        state.extractions += 1
        state.backing_off -= 1

    def is_limited(self, domain: str, now: float) -> bool:
        """Return whether the service limits a domain, or many of its requests wait for another attempt."""
        state = self._domains.get(domain)
        return state is not None and self._is_limited(domain, state, now)

    def has_room(self, domain: str, others: int, now: float) -> bool:
        """Return whether an extraction that began now could be sent without waiting for its domain. ``others`` is the
        number of the domain's requests that the caller has begun or is about to begin."""
        state = self._domains.get(domain)
        if state is None:
            return not others or self._new_window(domain).has_room(others)
        return now >= state.paused_until and state.window.has_room(max(state.extractions, others - state.backing_off))

    # ── requests ──

    def enter_now(self, domain: str, now: float) -> bool:
        """Admit a request that need not wait; False: it must :meth:`enter`."""
        state = self._domain(domain)
        if state.waiting or now < self._all_paused_until or not self._window.has_room(self.active):
            return False
        if now < state.paused_until or not state.window.has_room(state.active):
            return False
        if self._ready or self._must_wait(domain, state, now):
            return False  # Others come first, or a delay has grown.
        if self._may_start is not None and not self._may_start(domain, state.active):
            return False
        self._activate(domain, state, now)
        return True

    def enter(self, domain: str, ticket: T) -> None:
        """Queue a request."""
        state = self._domain(domain)
        state.waiting[ticket] = None
        self._queued[domain] = state
        self.waiting += 1
        self._offer(domain, state)

    def offer(self, domain: str) -> None:
        """Give a domain its turn, which may start a request now."""
        state = self._queued.get(domain)
        if state is not None:
            self._offer(domain, state)

    def demand(self) -> Iterator[tuple[str, int, int]]:
        """Yield the domains, with their active and their waiting requests."""
        for name, state in self._domains.items():
            yield name, state.active, len(state.waiting)

    def leave(self, domain: str, ticket: T) -> None:
        """Remove a queued request."""
        state = self._domains.get(domain)
        if state is not None and ticket in state.waiting:
            del state.waiting[ticket]
            self.waiting -= 1
            if not state.waiting:
                self._ready.pop(domain, None)
                del self._queued[domain]
            self._forget(domain, state)

    def finish(self, domain: str, now: float | None = None) -> None:
        """Count a request no longer as active; ``now`` if it was sent."""
        state = self._domains[domain]
        self.active -= 1
        state.active -= 1
        if not self._has_finished:
            self._first_finished(domain, state, now)
        self._offer(domain, state)
        self._forget(domain, state)

    def _first_finished(self, domain: str, state: _Domain[T], now: float | None) -> None:
        self._has_finished = True
        if now is not None and self._delay_of is not None:
            self._note_start(domain, now)
            self._must_wait(domain, state, now)
        for name, other in self._queued.items():
            self._offer(name, other)

    def succeeded(self, domain: str) -> None:
        """Record the success of a request, before it finishes."""
        self._window.grow()
        self._domain(domain).window.grow()

    def refused(self, scope: Scope, domain: str, sent: float, now: float) -> None:
        """Record a limit that a request sent at ``sent`` met, before it finishes."""
        if scope in (Scope.USER, Scope.GLOBAL):
            self._window.cut(self.active, sent, now)
        elif scope is not Scope.NONE:
            state = self._domain(domain)
            if state.window.cut(state.active, sent, now):
                heapq.heappush(self._changes, (now + _REMEMBERED, domain))
                if not state.window.has_room(state.active):
                    self._ready.pop(domain, None)

    def pause(self, scope: Scope, domain: str, until: float) -> float:
        """Hold back the scope of a limit until a point of time. Returns the former end of its pause."""
        if scope in (Scope.USER, Scope.GLOBAL):
            before = self._all_paused_until
            self._all_paused_until = max(before, until)
            return before
        state = self._domain(domain)
        before = state.paused_until
        if scope is not Scope.NONE and until > state.limited_until:
            state.limited_until = until
            self._hold(domain, state, until)
        return before

    def admit(self, now: float) -> list[tuple[str, T]]:
        """Admit the requests that may go now; returns domain and ticket of each."""
        self.end_pauses(now)
        admitted: list[tuple[str, T]] = []
        if now < self._all_paused_until:
            return admitted
        while self._ready and self._window.has_room(self.active):
            domain, _ = self._ready.popitem(last=False)
            state = self._domains.get(domain)
            if state is None or not self._may_go(state, now) or self._must_wait(domain, state, now):
                continue
            if self._may_start is not None and not self._may_start(domain, state.active):
                continue
            ticket, _ = state.waiting.popitem(last=False)
            if not state.waiting:
                del self._queued[domain]
            self.waiting -= 1
            self._activate(domain, state, now)
            admitted.append((domain, ticket))
            self._offer(domain, state, now)
        return admitted

    def next_change(self, now: float) -> float | None:
        """Return the time at which :meth:`admit` or :meth:`end_pauses` next have an effect; None: never."""
        if now < self._all_paused_until:
            return self._all_paused_until
        return self._changes[0][0] if self._changes else None

    def end_pauses(self, now: float) -> list[str]:
        """Return the domains whose pause has ended since the last call."""
        ended: list[str] = []
        while self._changes and self._changes[0][0] <= now:
            when, domain = heapq.heappop(self._changes)
            state = self._domains.get(domain)
            if state is None:
                continue
            # A pause that grew has a later entry.
            if state.paused_until == when:
                state.paused_until = state.limited_until = _LONG_AGO
                ended.append(domain)
                self._offer(domain, state, now)
            self._forget(domain, state, now)
        return ended

    def tickets(self) -> list[tuple[str, T]]:
        """Return domain and ticket of every waiting request."""
        return [(name, ticket) for name, state in self._domains.items() for ticket in state.waiting]

    def _hold(self, domain: str, state: _Domain[T], until: float) -> None:
        if until > state.paused_until:
            state.paused_until = until
            heapq.heappush(self._changes, (until, domain))
            self._ready.pop(domain, None)

    def _is_limited(self, domain: str, state: _Domain[T], now: float) -> bool:
        return now < state.limited_until or state.window.is_cut(now) or state.backing_off >= self._backoff_limit(domain)

    def _backoff_limit(self, domain: str) -> int:
        return max(_LEAST_BACKING_OFF, _BACKING_OFF * self._cap(domain))

    def _domain(self, name: str) -> _Domain[T]:
        state = self._domains.get(name)
        if state is None:
            state = self._domains[name] = _Domain(self._new_window(name))
        elif self._cap_of is not None:
            state.window.limit(self._cap_of(name))
        return state

    def _cap(self, domain: str) -> int:
        return self._per_domain if self._cap_of is None else self._cap_of(domain)

    def _new_window(self, domain: str) -> Window:
        return Window(self._cap(domain))

    def _forget(self, name: str, state: _Domain[T], now: float = _LONG_AGO) -> None:
        """Forget an unused domain. Without a time, a pause or smaller window counts until its end was processed."""
        if state.is_forgettable(now):
            del self._domains[name]
            self._ready.pop(name, None)

    def _activate(self, domain: str, state: _Domain[T], now: float) -> None:
        self.active += 1
        state.active += 1
        if self._delay_of is not None:
            self._note_start(domain, now)
            self._must_wait(domain, state, now)  # Scrapy draws the next delay at once.

    def _must_wait(self, domain: str, state: _Domain[T], now: float) -> bool:
        """Return whether a delay forbids a start now, and hold back the domain until its end."""
        if self._delay_of is None:
            return False
        delay = self._delay_of(domain)
        if delay > 0 and state.active and not self._has_finished:
            return True
        until = self._started.get(domain, _LONG_AGO) + delay
        if until > now:
            self._hold(domain, state, until)
        return until > now

    def _note_start(self, domain: str, now: float) -> None:
        self._started[domain] = now
        if len(self._started) > self._most_started:
            self._started = {name: start for name, start in self._started.items() if start > now - _REMEMBERED}
            self._most_started = max(_LEAST_STARTED, 2 * len(self._started))

    def _may_go(self, state: _Domain[T], now: float) -> bool:
        return bool(state.waiting) and now >= state.paused_until and state.window.has_room(state.active)

    def _offer(self, domain: str, state: _Domain[T], now: float | None = None) -> None:
        """Give a domain its turn. Without a time, a pause counts until its end was processed."""
        is_paused = state.paused_until > (_LONG_AGO if now is None else now)
        if state.waiting and not is_paused and state.window.has_room(state.active):
            self._ready.setdefault(domain)

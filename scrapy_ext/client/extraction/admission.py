"""Who may send a request now: the state machine, without time or waiting of its own.

- A request waits in the queue of its domain, and in no other place.
- At most as many requests are active as the window of all has room for, and of one domain as many as the domain's
  window has room for. A window is what the caller allows until a limit halves it; each success then gives some of it
  back, one request a round: additive increase, multiplicative decrease.
- A pause of a domain holds that domain back; a pause of everything holds all back. Pauses only grow, and end by
  time alone.
- Domains with a request that could go take turns, so that a full or paused domain costs the others nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from scrapy_ext.api.extraction.problems import Scope

T = TypeVar("T", bound=Hashable)

_LONG_AGO = float("-inf")
#: Seconds for which the smaller window of a domain is remembered when nothing more is sent to it.
_REMEMBERED = 600.0
#: So many times a domain's cap of its requests may sleep without counting for it: a few pages that the site bans
#: hold back nothing, and many do.
_SLEEPERS = 4
_LEAST_SLEEPERS = 32


class Window:
    """How many requests may be active at once; 0: any number."""

    __slots__ = ("_most", "_size", "cut_at")

    def __init__(self, most: int) -> None:
        self._most = most or math.inf
        self._size = self._most
        #: When it was made smaller last.
        self.cut_at = _LONG_AGO

    def is_cut(self, now: float) -> bool:
        """Whether it is smaller than it may be, and was made so lately."""
        return self._size < self._most and now < self.cut_at + _REMEMBERED

    def has_room(self, active: int) -> bool:
        """Whether one more may be active."""
        return active + 1 <= self._size

    def grow(self) -> None:
        """A request of it succeeded."""
        if self._size < self._most:
            self._size = min(self._most, self._size + 1 / self._size)

    def cut(self, active: int, sent: float, now: float) -> bool:
        """A request that was sent at ``sent`` met a limit, with so many active. What was sent before the last cut
        tells nothing about the window there has been since: then nothing is done, and False returned."""
        if sent < self.cut_at:
            return False
        self._size = max(1.0, min(self._size, active) / 2)
        self.cut_at = now
        return True


class _Domain(Generic[T]):
    __slots__ = ("active", "in_hand", "limited_until", "paused_until", "sleeping", "waiting", "window")

    def __init__(self, window: Window) -> None:
        self.waiting: OrderedDict[T, None] = OrderedDict()
        self.active = 0
        #: Extractions that have begun and not ended, without those that sleep between two attempts.
        self.in_hand = 0
        self.sleeping = 0
        #: Nothing is sent before, be it for a delay or for a limit; for a limit alone.
        self.paused_until = self.limited_until = _LONG_AGO
        self.window = window

    def is_forgettable(self, now: float) -> bool:
        is_busy = self.waiting or self.active or self.in_hand or self.sleeping or self.paused_until > now
        return not is_busy and not self.window.is_cut(now)


class Admission(Generic[T]):
    """The state machine. Requests are told apart by a ticket; a cap of 0 is none.

    ``caps`` overrides ``per_domain`` for single domains; ``delay_of(domain)`` is how many seconds pass between the
    starts of two requests to a domain.
    """

    def __init__(
        self,
        total: int,
        per_domain: int,
        caps: Mapping[str, int] | None = None,
        delay_of: Callable[[str], float] | None = None,
    ) -> None:
        self._window = Window(total)
        self._per_domain = per_domain
        self._caps = caps or {}
        self._delay_of = delay_of
        self._domains: dict[str, _Domain[T]] = {}
        #: Domains of which a request may go, as far as the domain is concerned, in the order of their turns.
        self._ready: OrderedDict[str, None] = OrderedDict()
        #: Heap of when a pause may end, or a domain may be forgotten.
        self._changes: list[tuple[float, str]] = []
        #: Domains with requests that wait.
        self._queued: dict[str, _Domain[T]] = {}
        self._all_paused_until = _LONG_AGO
        self._active = 0
        self._waiting = 0

    @property
    def active(self) -> int:
        """How many requests were admitted and have not finished."""
        return self._active

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._waiting

    def held(self, now: float) -> int:
        """Number of requests that wait for a limit of the service to end. Delays and caps of the caller do not count:
        a request that waits for these has its place among all, as in Scrapy's downloader."""
        if now < self._all_paused_until:
            return self._waiting
        return sum(
            len(known.waiting)
            for domain, known in self._queued.items()
            if domain not in self._ready and self._is_limited(domain, known, now)
        )

    def is_all_paused(self, now: float) -> bool:
        """Whether everything is held back."""
        return now < self._all_paused_until

    # ── extractions ──

    def take_up(self, domain: str) -> None:
        """An extraction begins: until it ends or sleeps it counts for :meth:`has_room`, whatever it does."""
        self._domain(domain).in_hand += 1

    def put_down(self, domain: str) -> None:
        """An extraction ends."""
        known = self._domains[domain]
        known.in_hand -= 1
        self._forget(domain, known)

    def fall_asleep(self, domain: str) -> bool:
        """An extraction waits for its next attempt. False: too many of its domain do, and it counts as before."""
        known = self._domains[domain]
        if known.sleeping >= self._most_asleep(domain):
            return False
        known.in_hand -= 1
        known.sleeping += 1
        return True

    def wake_up(self, domain: str) -> None:
        """One that fell asleep goes on."""
        known = self._domains[domain]
        known.in_hand += 1
        known.sleeping -= 1

    def is_limited(self, domain: str, now: float) -> bool:
        """Return whether the service limits a domain, or many of its requests wait for another attempt."""
        known = self._domains.get(domain)
        return known is not None and self._is_limited(domain, known, now)

    def has_room(self, domain: str, others: int, now: float) -> bool:
        """Whether an extraction that began now could be sent without waiting for its domain. ``others`` is how many of
        the domain the caller knows of: those that are here, and those that are on their way."""
        known = self._domains.get(domain)
        if known is None:
            return not others or self._new_window(domain).has_room(others)
        return now >= known.paused_until and known.window.has_room(max(known.in_hand, others - known.sleeping))

    # ── requests ──

    def enter_now(self, domain: str, now: float) -> bool:
        """Admit a request that need not wait at all; False: it must :meth:`enter`."""
        known = self._domain(domain)
        if known.waiting or now < self._all_paused_until or not self._window.has_room(self._active):
            return False
        if now < known.paused_until or not known.window.has_room(known.active):
            return False
        if self._ready:
            return False  # Others are before it.
        self._activate(domain, known, now)
        return True

    def enter(self, domain: str, ticket: T) -> None:
        """A request begins to wait."""
        known = self._domain(domain)
        known.waiting[ticket] = None
        self._queued[domain] = known
        self._waiting += 1
        self._offer(domain, known)

    def leave(self, domain: str, ticket: T) -> None:
        """A request gives up waiting."""
        known = self._domains.get(domain)
        if known is not None and ticket in known.waiting:
            del known.waiting[ticket]
            self._waiting -= 1
            if not known.waiting:
                self._ready.pop(domain, None)
                del self._queued[domain]
            self._forget(domain, known)

    def finish(self, domain: str) -> None:
        """An admitted request is done."""
        known = self._domains[domain]
        self._active -= 1
        known.active -= 1
        self._offer(domain, known)
        self._forget(domain, known)

    def succeeded(self, domain: str) -> None:
        """A request of the domain succeeded: told before it finishes."""
        self._window.grow()
        self._domain(domain).window.grow()

    def refused(self, scope: Scope, domain: str, sent: float, now: float) -> None:
        """A request that was sent at ``sent`` met a limit: told before it finishes."""
        if scope in (Scope.USER, Scope.GLOBAL):
            self._window.cut(self._active, sent, now)
        elif scope is not Scope.NONE:
            known = self._domain(domain)
            if known.window.cut(known.active, sent, now):
                heapq.heappush(self._changes, (now + _REMEMBERED, domain))
                if not known.window.has_room(known.active):
                    self._ready.pop(domain, None)

    def pause(self, scope: Scope, domain: str, until: float) -> float:
        """Hold back what a limit is about, until a point of time. Returns until when it is held back already."""
        if scope in (Scope.USER, Scope.GLOBAL):
            before = self._all_paused_until
            self._all_paused_until = max(before, until)
            return before
        known = self._domain(domain)
        before = known.paused_until
        if scope is not Scope.NONE and until > known.limited_until:
            known.limited_until = until
            self._hold(domain, known, until)
        return before

    def admit(self, now: float) -> list[tuple[str, T]]:
        """Domain and ticket of the requests that may go now. They are active from here on."""
        self.end_pauses(now)
        admitted: list[tuple[str, T]] = []
        if now < self._all_paused_until:
            return admitted
        while self._ready and self._window.has_room(self._active):
            domain, _ = self._ready.popitem(last=False)
            known = self._domains.get(domain)
            if known is None or not self._may_go(known, now):
                continue
            ticket, _ = known.waiting.popitem(last=False)
            if not known.waiting:
                del self._queued[domain]
            self._waiting -= 1
            self._activate(domain, known, now)
            admitted.append((domain, ticket))
            self._offer(domain, known, now)
        return admitted

    def next_change(self, now: float) -> float | None:
        """When :meth:`admit` and :meth:`end_pauses` may next do something by time alone; None: never."""
        if now < self._all_paused_until:
            return self._all_paused_until
        return self._changes[0][0] if self._changes else None

    def end_pauses(self, now: float) -> list[str]:
        """The domains whose pause has ended since the last call."""
        ended: list[str] = []
        while self._changes and self._changes[0][0] <= now:
            when, domain = heapq.heappop(self._changes)
            known = self._domains.get(domain)
            if known is None:
                continue
            # A pause that grew has a later entry.
            if known.paused_until == when:
                known.paused_until = known.limited_until = _LONG_AGO
                ended.append(domain)
                self._offer(domain, known, now)
            self._forget(domain, known, now)
        return ended

    def tickets(self) -> list[tuple[str, T]]:
        """Domain and ticket of every request that waits."""
        return [(name, ticket) for name, known in self._domains.items() for ticket in known.waiting]

    # ── inside ──

    def _hold(self, domain: str, known: _Domain[T], until: float) -> None:
        if until > known.paused_until:
            known.paused_until = until
            heapq.heappush(self._changes, (until, domain))
            self._ready.pop(domain, None)

    def _is_limited(self, domain: str, known: _Domain[T], now: float) -> bool:
        return now < known.limited_until or known.window.is_cut(now) or known.sleeping >= self._most_asleep(domain)

    def _most_asleep(self, domain: str) -> int:
        return max(_LEAST_SLEEPERS, _SLEEPERS * self._caps.get(domain, self._per_domain))

    def _domain(self, name: str) -> _Domain[T]:
        known = self._domains.get(name)
        if known is None:
            known = self._domains[name] = _Domain(self._new_window(name))
        return known

    def _new_window(self, domain: str) -> Window:
        return Window(self._caps.get(domain, self._per_domain))

    def _forget(self, name: str, known: _Domain[T], now: float = _LONG_AGO) -> None:
        """Without a time, a pause and a smaller window count for as long as they were not looked at."""
        if known.is_forgettable(now):
            del self._domains[name]
            self._ready.pop(name, None)

    def _activate(self, domain: str, known: _Domain[T], now: float) -> None:
        self._active += 1
        known.active += 1
        delay = self._delay_of(domain) if self._delay_of is not None else 0
        if delay > 0:
            self._hold(domain, known, now + delay)

    def _may_go(self, known: _Domain[T], now: float) -> bool:
        return bool(known.waiting) and now >= known.paused_until and known.window.has_room(known.active)

    def _offer(self, domain: str, known: _Domain[T], now: float | None = None) -> None:
        """Give a domain its turn. Without a time, a pause counts for as long as it was not ended."""
        is_paused = known.paused_until > (_LONG_AGO if now is None else now)
        if known.waiting and not is_paused and known.window.has_room(known.active):
            self._ready.setdefault(domain)

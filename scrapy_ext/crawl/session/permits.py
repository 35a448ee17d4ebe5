"""Permits of this worker: the part of each domain's limits that it may use, renewed by its reports.

A permit is used until some seconds after the *sending* of the report that was answered with it, on a clock that counts
suspend; the platform counts longer (:mod:`scrapy_ext.api.platform.permits`). Until the answer to the next report, no
more is used than that report says, and nothing is sent to a domain that it does not have. So the requests of all
workers that are open at a domain never exceed its limit, and a lost answer changes nothing.

A report has a limited number of domains. Those with open requests come first: each of them was in the report before, so
there are never too many. The others take turns.

If a domain has fewer permits than workers that want one, its holder gives it back soon when it has no request for it,
with the start times that are left.

Scrapy's downloader and the limiter of routed requests take a permit for each request that they send. The frontier hands
out requests of domains with room only.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.permits import AHEAD, LATE, MAX_DOMAIN, MOST_DOMAINS, DomainReport, Permit
from scrapy_ext.compatibility.python import elapsing

#: Seconds for which the permit of a domain without requests is kept, so that a request that follows need not wait.
_KEPT: Final = 2.5
#: The same, beyond the delay, if other workers wait for it.
_KEPT_WHEN_SHORT: Final = 0.5
#: Seconds for which a domain stays in the reports, if others wait to be in them: until reserved start times are used.
_TURN: Final = AHEAD / 1000
#: Seconds that a start may be late at least: timers of a busy event loop are late by that much.
_LATE: Final = 0.02
#: Bytes of a fingerprint in place of a name that is too long for a report.
_DIGEST: Final = 16


class SiteLimits(NamedTuple):
    """SiteLimits of a domain, as the settings or an extension of Scrapy have them. ``delay``: seconds."""

    concurrency: int
    delay: float = 0.0
    randomize: bool = False


class Demand(NamedTuple):
    """Requests of a domain that are being sent, and that wait."""

    domain: str
    open: int
    waiting: int


class _Domain(msgspec.Struct, eq=False):
    used: float
    #: Whether the last report has this domain; since when each report has had it; the time of the last one that had.
    is_reported: bool = False
    since: float = 0.0
    reported: float = 0.0
    concurrency: int = 0
    until: float = 0.0
    delay: float = 0.0
    starts: deque[float] = msgspec.field(default_factory=deque)
    #: Time before which nothing starts once this worker has no permits.
    not_before: float = 0.0
    #: Whether other workers wait for a permit, of which there is none for them.
    is_short: bool = False
    #: Seconds of a pause that no answer has confirmed, and whether the last report has it.
    pause: float = 0.0
    has_sent_pause: bool = False
    #: End of a pause, as far as this worker knows.
    paused_until: float = 0.0
    timer: asyncio.TimerHandle | None = None

    def room(self, now: float) -> int:
        """Return the number of requests that may be open."""
        return self.concurrency if self.is_reported and now < self.until else 0

    def drop_late(self, now: float) -> None:
        """Drop start times that have passed: the next worker's start is a delay after them."""
        late = max(LATE * self.delay, _LATE)
        while self.starts and self.starts[0] + late < now:
            self.starts.popleft()


class Permits:
    """Permits by domain. ``limits_of``: limits of a domain as in a crawl with one worker.

    ``hurry``: called when a report is due at once. ``sources``: functions that return the requests by domain.
    ``on_room``: called with a domain that may have room. ``on_pause``: with a domain and the seconds for which all
    workers leave it alone.
    """

    def __init__(
        self,
        limits_of: Callable[[str], SiteLimits],
        hurry: Callable[[], None],
        clock: Callable[[], float] = elapsing,
    ) -> None:
        self._limits_of = limits_of
        self._hurry = hurry
        self._clock = clock
        self._domains: dict[str, _Domain] = {}
        #: Domains of the last report by their names there, and the time when it was sent.
        self._reported: dict[str, str] = {}
        self._sent = 0.0
        self._has_ended = False
        self.sources: list[Callable[[], Iterable[Demand]]] = []
        self.on_room: list[Callable[[str], None]] = []
        self.on_pause: list[Callable[[str, float], None]] = []

    def has_room(self, domain: str, active: int) -> bool:
        """Return whether one more request may be sent to a domain soon, besides the ``active`` ones."""
        if self._has_ended or not domain:
            return True
        return self._wanted(domain).room(self._clock()) > active

    def take(self, domain: str, active: int) -> bool:
        """Take the permit to send a request now, besides the ``active`` ones; false: it waits for ``on_room``."""
        if not domain:
            return active < self._limits_of(domain).concurrency
        now, state = self._clock(), self._wanted(domain)
        if self._has_ended:
            return active < 1 and self._take_alone(domain, state, now)
        state.used = now
        if state.room(now) <= active:
            return False
        if now < state.paused_until:
            self._set_timer(domain, state, state.paused_until - now)
            return False
        if not state.delay:
            return True
        state.drop_late(now)
        if not state.starts:
            return False
        if state.starts[0] > now:
            self._set_timer(domain, state, state.starts[0] - now)
            return False
        state.starts.popleft()
        return True

    def pause(self, domain: str, seconds: float) -> None:
        """Let all workers leave a domain alone for some seconds."""
        if domain:
            state = self._wanted(domain)
            state.pause, state.has_sent_pause = seconds, False
            state.paused_until = max(state.paused_until, self._clock() + seconds)
            self._hurry()

    def end(self) -> None:
        """Use no permits any more: the crawl has failed. The requests of a domain that are under way are sent one by
        one, with its delay."""
        if not self._has_ended:
            self._has_ended = True
            for domain, state in list(self._domains.items()):
                state.not_before = max(self._clock() + self._delay(domain, state), state.paused_until)
                self._notify(domain)

    def close(self) -> None:
        """Cancel the timers."""
        for state in self._domains.values():
            if state.timer is not None:
                state.timer.cancel()

    # ── reports ──

    def reported(self) -> dict[str, DomainReport]:
        """Return what a report has that is sent now, and use no more than that until its answer."""
        now = self._sent = self._clock()
        demands = self._demands()
        for domain in demands.keys() - self._domains.keys():
            self._domains[domain] = _Domain(now)
        active = {domain for domain, (number, _) in demands.items() if number}
        ranked = sorted(self._domains, key=lambda domain: self._rank(domain, domain in active))[:MOST_DOMAINS]
        self._reported = {_name(domain): domain for domain in ranked}
        found = {
            name: self._report(domain, *demands.get(domain, (0, 0)), now) for name, domain in self._reported.items()
        }
        self._note_reported(set(ranked))
        return found

    def _rank(self, domain: str, is_active: bool) -> tuple[bool, bool, bool, float]:
        """Return the place of a domain among those that a report can have; the lowest first.

        A request must be counted as long as it is open. Those that have waited the longest replace those whose turn is
        over.
        """
        state = self._domains[domain]
        has_turn = state.is_reported and self._sent < state.since + _TURN
        return not is_active, not state.pause, not has_turn, state.reported

    def _note_reported(self, domains: Set[str]) -> None:
        for domain, state in self._domains.items():
            if domain not in domains:
                state.is_reported = False
                continue
            if not state.is_reported:
                state.is_reported, state.since = True, self._sent
            state.reported = self._sent

    def _report(self, domain: str, active: int, waiting: int, now: float) -> DomainReport:
        state = self._domains[domain]
        if active or waiting:
            state.used = now
        kept = _KEPT_WHEN_SHORT + state.delay if state.is_short else _KEPT
        want = active + waiting or int(now < state.used + kept)
        held = state.concurrency = max(active, min(state.room(now), want))
        state.drop_late(now)
        starts = len(state.starts)
        if not held:
            # Given back with this report; if it is lost, they are lost.
            state.starts.clear()
        state.has_sent_pause = True
        limits = self._limits_of(domain)
        return DomainReport(
            limit=max(limits.concurrency, 1),
            want=want,
            held=held,
            open=active,
            delay=round(limits.delay * 1000),
            randomize=limits.randomize,
            starts=starts,
            pause=state.pause,
        )

    def answered(self, permits: Mapping[str, Permit]) -> None:
        """Take the permits of the answer to the last report."""
        now = self._clock()
        for name, permit in permits.items():
            domain = self._reported.get(name, "")
            state = self._domains.get(domain)
            if state is None:
                continue
            if state.has_sent_pause:
                state.pause = 0.0
            state.concurrency, state.until = permit.concurrency, self._sent + permit.seconds
            state.delay = permit.delay / 1000
            state.is_short = permit.short
            state.starts.extend(now + start / 1000 for start in permit.starts)
            if permit.pause:
                state.paused_until = max(state.paused_until, now + permit.pause)
                for notify in self.on_pause:
                    notify(domain, permit.pause)
            if not permit.seconds and state.timer is None:
                del self._domains[domain]
            self._notify(domain)

    @property
    def are_short(self) -> bool:
        """Return true if a worker waits for a permit of a domain of the last report: this one, or another one."""
        states = (self._domains.get(domain) for domain in self._reported.values())
        return any(state is not None and (state.is_short or not state.concurrency) for state in states)

    def _demands(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for source in self.sources:
            for domain, active, waiting in source():
                if domain and (active or waiting):
                    # Direct and routed requests have the limit each, as with one worker.
                    former = found.get(domain, (0, 0))
                    found[domain] = max(former[0], active), former[1] + waiting
        return found

    def _wanted(self, domain: str) -> _Domain:
        """Return the state of a domain; report at once that a new one is wanted."""
        state = self._domains.get(domain)
        if state is None:
            state = self._domains[domain] = _Domain(self._clock())
            self._hurry()
        return state

    def _take_alone(self, domain: str, state: _Domain, now: float) -> bool:
        """Return whether a request may be sent now by a worker that has no permits."""
        if now < state.not_before:
            self._set_timer(domain, state, state.not_before - now)
            return False
        state.not_before = now + self._delay(domain, state)
        return True

    def _delay(self, domain: str, state: _Domain) -> float:
        return max(self._limits_of(domain).delay, state.delay)

    def _set_timer(self, domain: str, state: _Domain, seconds: float) -> None:
        if state.timer is None:
            state.timer = asyncio.get_running_loop().call_later(seconds, self._due, domain, state)

    def _due(self, domain: str, state: _Domain) -> None:
        state.timer = None
        self._notify(domain)

    def _notify(self, domain: str) -> None:
        for notify in self.on_room:
            notify(domain)


def _name(domain: str) -> str:
    """Return the name of a domain in a report."""
    if len(domain) <= MAX_DOMAIN and "\0" not in domain:
        return domain
    return hashlib.blake2b(domain.encode(errors="surrogatepass"), digest_size=_DIGEST).hexdigest()

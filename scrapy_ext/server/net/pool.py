"""Pool of the operator's proxies: the choice of one for a request, by its success at the site.

Rules of the choice:

* Proxies that fit ``geolocation`` and ``ipType`` best come first (a *tier*). Those that fit less are used only when all
  of the better tiers were tried or cool down. A request without these fields begins with the proxies for ``*:*``, or
  with the server's own address where there is none; after a ban, proxies for ``*`` of any type follow, since the
  contract lets the service pick the type that avoids bans.
* Within a tier the choice is random, by weight and success at the site.
* A proxy that a site bans is not used for that site for :data:`FIRST_COOL_DOWN`, twice as long after each further ban,
  up to :data:`LONGEST_COOL_DOWN`. A proxy that fails is avoided for :data:`FAILURE_COOL_DOWN` likewise, but used when
  no other is left, because trying costs nothing.
* A session keeps its proxy while that one is available.

The server's own address takes part in the figures, under the name :data:`DIRECT`, but never cools down. All figures are
those of this process since its start; sites and sessions are bounded, the least recently used are forgotten.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from scrapy_ext.api.platform.proxies import ProxyFigures
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.net.upstream import ANY, ProxyRuleError, Upstream

DIRECT: Final = "direct"
#: Seconds.
FIRST_COOL_DOWN: Final = 60.0
LONGEST_COOL_DOWN: Final = 3600.0
FAILURE_COOL_DOWN: Final = 10.0
LONGEST_FAILURE_COOL_DOWN: Final = 600.0
SESSION_EXPIRY: Final = 3600.0
#: Bounds of what is remembered.
MOST_SITES: Final = 2000
MOST_SESSIONS: Final = 10_000
#: Failures in a row, at one site or another, after which a proxy counts as failing for all sites.
_FAILURES: Final = 3
#: Weight of the newest answer in the success at a site, and the least success, with which a proxy is still tried.
_NEWEST: Final = 0.3
_LEAST: Final = 0.02

#: Proxies that a request may use, the best first; None is the server's own address.
Tiers = tuple[tuple["Upstream | None", ...], ...]
_ALONE: Final[Tiers] = ((None,),)


class Health:
    """Answers of one proxy, at one site or at all."""

    __slots__ = ("banned", "failed", "in_a_row", "passed", "success", "until")

    def __init__(self) -> None:
        #: Numbers of requests by result.
        self.passed = 0
        self.banned = 0
        self.failed = 0
        #: Recent success, from 0 to 1; a proxy without answers is tried like one that always passes.
        self.success = 1.0
        #: Bans, or failures, in a row.
        self.in_a_row = 0
        #: End of the cool-down.
        self.until = 0.0

    def lower(self) -> None:
        self.success *= _NEWEST

    def cool_down(self, now: float, first: float, longest: float) -> None:
        """Begin or extend a cool-down; answers to requests that were under way when it began do not extend it."""
        if now >= self.until:
            self.until = now + min(first * 2.0 ** min(self.in_a_row, 20), longest)
            self.in_a_row += 1

    def recover(self) -> None:
        self.in_a_row = 0
        self.until = 0.0
        self.success += _NEWEST * (1 - self.success)


class ProxyPool:
    """The proxies of a server. Raises :class:`ProxyRuleError` for an invalid one. ``clock`` is for tests."""

    def __init__(self, rules: Iterable[str] = (), *, clock: Callable[[], float] = time.monotonic) -> None:
        # Each once: the command line adds to the environment, which the settings of a project may repeat.
        self._all = [Upstream(rule) for rule in dict.fromkeys(map(str.strip, rules))]
        self._labels: dict[Upstream | None, str] = {None: DIRECT, **_labels(self._all)}
        self._clock = clock
        #: In the order of last use.
        self._sites: OrderedDict[str, dict[Upstream | None, Health]] = OrderedDict()
        self._totals: dict[Upstream | None, Health] = {upstream: Health() for upstream in self._labels}
        self._sessions: OrderedDict[str, tuple[float, Upstream | None]] = OrderedDict()

    # ── the choice ──

    def tiers(self, country: str | None, ip_type: str | None) -> tuple[Tiers, list[Violation]]:
        """Return the proxies for a request, or the reason why there are none."""
        fits: dict[int, list[Upstream | None]] = {}
        for upstream in self._all:
            place, kind = _fit(country, upstream.country), _fit(ip_type, upstream.ip_type)
            if place and kind:
                fits.setdefault(place + kind, []).append(upstream)
        if country is not None or ip_type is not None:
            if not fits:
                return (), [self._none(country, ip_type)]
            return tuple(tuple(fits[fit]) for fit in sorted(fits, reverse=True)), []
        first = fits.get(2 * _EXACT, [None])
        others = [each for each in self._all if each.country == ANY and each.ip_type != ANY]
        if not others and first == [None]:
            return _ALONE, []
        return (tuple(first), tuple(others)) if others else (tuple(first),), []

    def choose(
        self, site: str, tiers: Tiers, *, tried: Iterable[Upstream | None] = (), session: str | None = None
    ) -> tuple[Upstream | None] | None:
        """Return a proxy in a tuple, or None when all were tried or cool down after bans.

        ``session``: key of a session, which keeps its proxy.
        """
        left = [[each for each in tier if each not in tried] for tier in tiers]
        kept = self._of_session(session, site, left)
        if kept is not None:
            return kept
        for failing in (False, True):
            for tier in left:
                ready = [each for each in tier if self._is_ready(site, each, failing=failing)]
                if ready:
                    chosen = random.choices(ready, [self._share(site, each) for each in ready])[0]
                    self._keep_session(session, chosen)
                    return (chosen,)
        return None

    def next_free(self, site: str, tiers: Tiers) -> float:
        """Return the seconds until a cool-down of these proxies at a site ends."""
        known = self._sites.get(site, {})
        ends = [known[each].until for tier in tiers for each in tier if each in known]
        return max(min(ends, default=0.0) - self._clock(), 0.0)

    def _is_ready(self, site: str, upstream: Upstream | None, *, failing: bool) -> bool:
        if upstream is None:
            return True
        now = self._clock()
        health = self._sites.get(site, {}).get(upstream)
        if health is not None and now < health.until:
            return False
        return failing or now >= self._totals[upstream].until

    def _share(self, site: str, upstream: Upstream | None) -> float:
        if upstream is None:
            return 1.0
        health = self._sites.get(site, {}).get(upstream)
        return upstream.weight * max((health.success if health else 1.0) ** 2, _LEAST)

    # ── sessions ──

    def _of_session(
        self, session: str | None, site: str, left: list[list[Upstream | None]]
    ) -> tuple[Upstream | None] | None:
        if session is None:
            return None
        until, upstream = self._sessions.get(session, (0.0, None))
        if until <= self._clock() or not any(upstream in tier for tier in left):
            return None
        if not self._is_ready(site, upstream, failing=False):
            return None
        self._keep_session(session, upstream)
        return (upstream,)

    def _keep_session(self, session: str | None, upstream: Upstream | None) -> None:
        if session is None:
            return
        self._sessions[session] = (self._clock() + SESSION_EXPIRY, upstream)
        self._sessions.move_to_end(session)
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)

    def end_session(self, session: str) -> None:
        """Forget the proxy of a session."""
        self._sessions.pop(session, None)

    # ── results ──

    def passed(self, site: str, upstream: Upstream | None, *, recovered: bool = False) -> None:
        """Note an answer of a site that is no ban; ``recovered``: it ends a cool-down, as the newest answer."""
        health, total = self._health(site, upstream), self._totals[upstream]
        for each in (health, total):
            each.passed += 1
        # The site's proxies that pass during a cool-down were asked before it.
        if recovered or self._clock() >= health.until:
            health.recover()
        total.recover()

    def banned(self, site: str, upstream: Upstream | None) -> None:
        """Note a ban by a site."""
        health, total = self._health(site, upstream), self._totals[upstream]
        for each in (health, total):
            each.banned += 1
            each.lower()
        # The proxy itself works.
        total.in_a_row, total.until = 0, 0.0
        if upstream is not None:
            health.cool_down(self._clock(), FIRST_COOL_DOWN, LONGEST_COOL_DOWN)

    def failed(self, site: str, upstream: Upstream | None, *, everywhere: bool) -> None:
        """Note that a proxy failed, at this site, or ``everywhere``."""
        health, total = self._health(site, upstream), self._totals[upstream]
        for each in (health, total):
            each.failed += 1
            each.lower()
        if upstream is None:
            return
        if everywhere or total.in_a_row >= _FAILURES:
            total.cool_down(self._clock(), FAILURE_COOL_DOWN, LONGEST_FAILURE_COOL_DOWN)
        else:
            total.in_a_row += 1

    def _health(self, site: str, upstream: Upstream | None) -> Health:
        known = self._sites.get(site)
        if known is None:
            known = self._sites[site] = {}
            if len(self._sites) > MOST_SITES:
                self._sites.popitem(last=False)
        else:
            self._sites.move_to_end(site)
        health = known.get(upstream)
        if health is None:
            health = known[upstream] = Health()
        return health

    # ── figures ──

    def label(self, upstream: Upstream | None) -> str:
        """Return the name of a proxy in figures, different for each."""
        return self._labels[upstream]

    def totals(self) -> Iterator[ProxyFigures]:
        """Yield the figures of each proxy at all sites, the server's own address first."""
        for upstream, health in self._totals.items():
            yield self._figures(upstream, None, health)

    def by_site(self) -> Iterator[ProxyFigures]:
        """Yield the figures of each proxy at each site, the most recently used site first."""
        for site in reversed(self._sites):
            for upstream, health in self._sites[site].items():
                yield self._figures(upstream, site, health)

    def cooling(self) -> int:
        """Return the number of cool-downs: of proxies that fail, and of pairs of a proxy and a site."""
        now = self._clock()
        both = (self._totals, *self._sites.values())
        return sum(now < health.until for each in both for health in each.values())

    def _figures(self, upstream: Upstream | None, site: str | None, health: Health) -> ProxyFigures:
        address = upstream.address if upstream is not None else ""
        left = max(health.until - self._clock(), 0.0)
        numbers = (health.passed, health.banned, health.failed, round(health.success, 2))
        return ProxyFigures(self.label(upstream), address, site, *numbers, cooling=-int(-left // 1))

    def _none(self, country: str | None, ip_type: str | None) -> Violation:
        # If the country alone is available, the type is the missing part.
        by_type = country is None or any(_fit(country, upstream.country) for upstream in self._all)
        name, value = ("ipType", ip_type) if by_type else ("geolocation", country)
        if country is not None and by_type:
            value = f"{ip_type} in {country}"
        has = ", ".join(sorted({upstream.name for upstream in self._all}))
        rule = f"and this server has proxies for {has} only" if has else "and this server has no proxies to send from"
        remedy = "Leave it out to send from the server's own address." if not has else "Ask for one of these."
        return Violation(name, f"asks for an address of {value}, {rule}", remedy, 422)


_EXACT: Final = 2


def _fit(asked: str | None, has: str) -> int:
    """Return 0 for no fit, 1 for a fit, 2 for an exact fit (``*`` without a wish)."""
    if (asked or ANY) == has:
        return _EXACT
    return int(asked is None or has == ANY)


def _labels(upstreams: list[Upstream]) -> dict[Upstream | None, str]:
    """Return a name for each proxy: the operator's, else country and type, numbered where several have the same."""
    labels: dict[Upstream | None, str] = {}
    for upstream in upstreams:
        label, number = upstream.given_name or upstream.name, 1
        while label in labels.values() or label == DIRECT:
            if upstream.given_name:
                raise ProxyRuleError(f"proxy {upstream.name} has the name {label!r} of another one. Choose another.")
            number += 1
            label = f"{upstream.name} #{number}"
        labels[upstream] = label
    return labels

"""Pool of the operator's proxies: the choice of one for a request, by its success at the site.

Rules of the choice:

* Proxies that fit ``geolocation`` and ``ipType`` best come first (a *tier*). Those that fit less are used only when all
  of the better tiers were tried or cool down. A request without these fields begins with the proxies for ``*:*``, or
  with the server's own address where there is none; after a ban, proxies for ``*`` of any type follow, since the
  contract lets the service pick the type that avoids bans.
* Within a tier the choice is random, by weight and success at the site.
* A proxy that a site bans cools down (:mod:`~scrapy_ext.server.net.health`): it is not used for requests of the same
  :class:`Scope`. One that fails, or of which a site demands a pause, is avoided, but used when no other is left. A site
  that no proxy reaches is the fault of none.
* When all cool down, :meth:`ProxyPool.nearest` is the one to probe.
* A session keeps its proxy while that one is available. A further try by another one moves it only when that one gets
  the page.

The server's own address takes part, under the name :data:`DIRECT`, and cools down where there are others. Where it is
the only way, it is always used. All figures are those of this process since its start; sites and sessions are bounded,
the least recently used are forgotten.
"""

from __future__ import annotations

import math
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from scrapy_ext.api.extraction.records import ProxyFigures
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.net.health import SINGLE, Health, Rests
from scrapy_ext.server.net.upstream import ANY, ProxyRuleError, Upstream

DIRECT: Final = "direct"
#: Seconds.
FAILURE_COOL_DOWN: Final = 10.0
LONGEST_FAILURE_COOL_DOWN: Final = 600.0
SESSION_EXPIRY: Final = 3600.0
#: Bounds of what is remembered.
MOST_SITES: Final = 2000
_MOST_RESTS: Final = 20_000
MOST_SESSIONS: Final = 10_000
#: Failures in a row where another proxy got an answer, after which a further one counts as that of all sites.
_FAILURES: Final = 3
#: The least success at a site, with which a proxy is still tried.
_LEAST: Final = 0.02

#: Proxies that a request may use, the best first; None is the server's own address.
Tiers = tuple[tuple["Upstream | None", ...], ...]
_ALONE: Final[Tiers] = ((None,),)
_PORTS: Final = {"http": 80, "https": 443}


class Scope(NamedTuple):
    """Requests whose bans count together: those of one organisation to a site, by HTTP or by the browser.

    So no organisation can shut a site for another one, and a challenge that only a browser passes shuts none for it.
    """

    #: Host, with its port unless that is the usual one.
    site: str
    #: ``http`` or ``browser``.
    by: str = "http"
    organisation: str = ""


def site_of(url: str) -> str:
    """Return the host of a URL, with its port unless that is the usual one."""
    parts = urlsplit(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port
    host = f"[{host}]" if ":" in host else host
    return host if port in (None, _PORTS.get(parts.scheme)) else f"{host}:{port}"


class ProxyPool:
    """The proxies of a server. Raises :class:`ProxyRuleError` for an invalid one. ``clock`` is for tests."""

    def __init__(self, rules: Iterable[str] = (), *, clock: Callable[[], float] = time.monotonic) -> None:
        # Each once: the command line adds to the environment, which the settings of a project may repeat.
        self._all = [Upstream(rule) for rule in dict.fromkeys(map(str.strip, rules))]
        self._labels: dict[Upstream | None, str] = {None: DIRECT, **_labels(self._all)}
        for upstream in self._all:
            upstream.label = self._labels[upstream]
        self._clock = clock
        #: By site and by HTTP or browser, in the order of last use.
        self._sites: OrderedDict[tuple[str, str], dict[Upstream | None, Health]] = OrderedDict()
        self._totals: dict[Upstream | None, Health] = {upstream: Health() for upstream in self._labels}
        #: Cool-downs after bans, and ends of the pauses that sites demand.
        self._rests: Rests[tuple[Scope, Upstream | None]] = Rests(_MOST_RESTS, clock)
        self._pauses: OrderedDict[tuple[Scope, Upstream | None], float] = OrderedDict()
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
        self, scope: Scope, tiers: Tiers, *, tried: Iterable[Upstream | None] = (), session: str | None = None
    ) -> tuple[Upstream | None] | None:
        """Return a proxy in a tuple, or None when all were tried or cool down after bans.

        ``session``: key of a session, which keeps its proxy.
        """
        left = [[each for each in tier if each not in tried] for tier in tiers]
        if tiers == _ALONE:
            return (None,) if left[0] else None
        kept = self._of_session(session, scope, left)
        if kept is not None:
            return kept
        for avoided in (False, True):
            for tier in left:
                ready = [each for each in tier if self._is_ready(scope, each, avoided=avoided)]
                if ready:
                    chosen = random.choices(ready, [self._share(scope, each) for each in ready])[0]
                    if self._proxy_of(session) not in [(each,) for each in tried]:
                        self.keep_session(session, chosen)
                    return (chosen,)
        return None

    def has_choice(self, tiers: Tiers) -> bool:
        """Return whether there is another way than the server's own address."""
        return tiers != _ALONE

    def nearest(self, scope: Scope, tiers: Tiers) -> tuple[Upstream | None]:
        """Return the proxy whose cool-down ends first, in a tuple."""
        return (min((each for tier in tiers for each in tier), key=lambda each: self._rests.left((scope, each))),)

    def next_free(self, scope: Scope, tiers: Tiers) -> float:
        """Return the seconds until one of these proxies neither cools down at the site nor has to pause."""
        now, is_alone = self._clock(), tiers == _ALONE
        return min(
            max(0.0 if is_alone else self._rests.left((scope, each)), self._pauses.get((scope, each), 0.0) - now, 0.0)
            for tier in tiers
            for each in tier
        )

    def _is_ready(self, scope: Scope, upstream: Upstream | None, *, avoided: bool) -> bool:
        if self._rests.is_cooling((scope, upstream)):
            return False
        now = self._clock()
        return avoided or now >= max(self._totals[upstream].until, self._pauses.get((scope, upstream), 0.0))

    def _share(self, scope: Scope, upstream: Upstream | None) -> float:
        health = self._sites.get((scope.site, scope.by), {}).get(upstream)
        weight = 1 if upstream is None else upstream.weight
        return weight * max((health.success if health else 1.0) ** 2, _LEAST)

    # ── sessions ──

    def _of_session(
        self, session: str | None, scope: Scope, left: list[list[Upstream | None]]
    ) -> tuple[Upstream | None] | None:
        kept = self._proxy_of(session)
        if session is None or kept is None:
            return None
        (upstream,) = kept
        if not any(upstream in tier for tier in left):
            return None
        if self._rests.is_cooling((scope, upstream)) or self._totals[upstream].until > self._clock():
            return None
        self.keep_session(session, upstream)
        return (upstream,)

    def _proxy_of(self, session: str | None) -> tuple[Upstream | None] | None:
        """Return the proxy of a session in a tuple, None if it has none."""
        until, upstream = self._sessions.get(session or "", (0.0, None))
        return (upstream,) if until > self._clock() else None

    def keep_session(self, session: str | None, upstream: Upstream | None) -> None:
        """Note the proxy of a session, if there is one."""
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

    def passed(self, scope: Scope, upstream: Upstream | None, *, recovered: bool = False) -> None:
        """Note an answer of a site that is no ban; ``recovered``: it was sent during a cool-down, and ends it."""
        for each in (self._health(scope, upstream), self._totals[upstream]):
            each.passed += 1
            each.recover()
        if self._all:
            self._rests.passed((scope, upstream), recovered=recovered)

    def banned(self, scope: Scope, upstream: Upstream | None, weight: int = SINGLE) -> None:
        """Note a ban by a site; ``weight`` is that of the cool-down."""
        total = self._totals[upstream]
        for each in (self._health(scope, upstream), total):
            each.banned += 1
            each.lower()
        total.works()
        self._rests.banned((scope, upstream), weight)

    def pause(self, scope: Scope, upstream: Upstream | None, seconds: float) -> None:
        """Note that a site demands a pause, by 429. It is kept in full, however long it is."""
        self._pauses[scope, upstream] = self._clock() + seconds
        self._pauses.move_to_end((scope, upstream))
        if len(self._pauses) > MOST_SITES:
            self._pauses.popitem(last=False)

    def failed(self, scope: Scope, upstream: Upstream | None, *, everywhere: bool) -> None:
        """Note that a proxy failed, at this site, or ``everywhere``."""
        for each in (self._health(scope, upstream), self._totals[upstream]):
            each.failed += 1
            each.lower()
        if everywhere:
            self._avoid(upstream)

    def outdone(self, upstream: Upstream | None) -> None:
        """Note that another proxy got an answer where this one failed, so that the site is not the reason."""
        total = self._totals[upstream]
        if total.in_a_row >= _FAILURES:
            self._avoid(upstream)
        else:
            total.in_a_row += 1

    def _avoid(self, upstream: Upstream | None) -> None:
        if upstream is not None:
            self._totals[upstream].avoid(self._clock(), FAILURE_COOL_DOWN, LONGEST_FAILURE_COOL_DOWN)

    def _health(self, scope: Scope, upstream: Upstream | None) -> Health:
        site = (scope.site, scope.by)
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
            yield self._figures(upstream, None, None, health, health.until - self._clock())

    def by_site(self) -> Iterator[ProxyFigures]:
        """Yield the figures of each proxy at each site, the most recently used site first, then as configured.

        A cool-down is the longest of those of all organisations.
        """
        left: dict[tuple[str, str, Upstream | None], float] = {}
        for (scope, upstream), seconds in self._rests.cooling():
            key = (scope.site, scope.by, upstream)
            left[key] = max(seconds, left.get(key, 0.0))
        for site, by in reversed(self._sites):
            healths = self._sites[site, by]
            for upstream in filter(healths.__contains__, self._labels):
                yield self._figures(upstream, site, by, healths[upstream], left.get((site, by, upstream), 0.0))

    def cooling(self) -> int:
        """Return the number of cool-downs: of proxies that fail, and of proxies at a site."""
        now = self._clock()
        return sum(now < health.until for health in self._totals.values()) + sum(1 for _ in self._rests.cooling())

    def _figures(
        self, upstream: Upstream | None, site: str | None, by: str | None, health: Health, left: float
    ) -> ProxyFigures:
        address = upstream.address if upstream is not None else ""
        numbers = (health.passed, health.banned, health.failed, round(health.success, 2))
        cooling = math.ceil(max(left, 0.0))
        return ProxyFigures(self.label(upstream), address, site, by, *numbers, cooling=cooling)

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
                raise ProxyRuleError(
                    f"proxy {upstream.name} has the name {label!r} of another one. Write ?name= with another name."
                )
            number += 1
            label = f"{upstream.name} #{number}"
        labels[upstream] = label
    return labels

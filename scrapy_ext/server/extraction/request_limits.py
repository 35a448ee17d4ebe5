"""Limits of requests: to a domain, at once and over time, of a key and of an organisation, and of the bytes they hold.

A site that hangs delays only its own requests: they hold at most ``limits.domain_requests`` permits of the server
and ``limits.domain_waiting`` more while they wait. Requests that find the queue full, or wait too long, get 429
``/limits/over-domain-limit``, so that clients continue with other sites.

The domain is the host of the requested URL. Resources that a page loads, and redirects and actions to other hosts,
belong to it: they use the permit of the page.

Rates are those of a key, of a domain, and of an organisation for a domain; a key without an organisation is one by
itself. Each is off unless it is set. A request that one of them refuses does not count for the others, and one that
violates a rule of the contract does not count. Rates hold for one process, with a burst of two seconds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from scrapy_ext.api.extraction.problems import ExtractionError, over_limit
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.auth.rates import RateLimits
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.config.extraction_limits import ServiceLimits

#: Domains whose last start is remembered for the delay.
_REMEMBERED: Final = 10_000


def domain_of(url: str) -> str:
    return (urlsplit(url).hostname or "").rstrip(".")


class _Domain:
    """The permits of one domain, and the starts of its requests: the last one, and how many wait for theirs."""

    def __init__(self, host: str, limits: ServiceLimits, permits: int) -> None:
        self.permits = FairSemaphore(
            f"requests to {host}", permits, limits.domain_waiting, limits.domain_patience, refuse=_too_many
        )
        self.last_start = -math.inf
        self.starting = asyncio.Lock()
        self.queued = 0

    @property
    def idle(self) -> bool:
        return not self.permits.inside and not self.permits.waiting


class DomainLimits:
    """The permits of all domains: ``requests`` of each at once (None: those of ``limits``), ``delay`` seconds apart."""

    def __init__(self, limits: ServiceLimits, requests: int | None = None, delay: float = 0.0) -> None:
        self._limits = limits
        self._requests = requests or limits.domain_requests
        self._delay = delay
        self._domains: dict[str, _Domain] = {}

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a permit of their domain."""
        return sum(domain.permits.waiting for domain in self._domains.values())

    @asynccontextmanager
    async def permit(self, host: str) -> AsyncIterator[None]:
        """Hold a permit of a domain for the time of the block; raises :class:`ExtractionError` (429)."""
        domain = self._domains.get(host)
        if domain is None:
            domain = self._domains[host] = _Domain(host, self._limits, self._requests)
        try:
            async with domain.permits.permit():
                if self._delay:
                    await self._delay_start(domain, host)
                yield
        finally:
            if domain.idle and not self._delay:
                self._domains.pop(host, None)
            elif len(self._domains) > _REMEMBERED:
                self._forget()

    async def next_start(self, host: str) -> None:
        """Wait, within the permit of a domain, for its next start; raises :class:`ExtractionError` (429)."""
        if self._delay:
            await self._delay_start(self._domains[host], host)

    async def _delay_start(self, domain: _Domain, host: str) -> None:
        clock = asyncio.get_running_loop().time
        wait = max(domain.last_start + self._delay - clock(), 0) + domain.queued * self._delay
        if wait > self._limits.domain_patience:
            raise _too_many(
                f"This server sends one request to {host} in {self._delay:g} s. Send the next one later.",
                math.ceil(wait),
            )
        domain.queued += 1
        try:
            # One after the other: a start that is late, as on a busy machine, delays those behind it.
            async with domain.starting:
                await asyncio.sleep(domain.last_start + self._delay - clock())
                domain.last_start = clock()
        finally:
            domain.queued -= 1

    def _forget(self) -> None:
        now = asyncio.get_running_loop().time()
        over = [
            host for host, domain in self._domains.items() if domain.idle and domain.last_start + self._delay <= now
        ]
        for host in over:
            del self._domains[host]

    def __len__(self) -> int:
        return len(self._domains)


def _too_many(detail: str, wait: int = 2) -> ExtractionError:
    return over_limit("/limits/over-domain-limit", detail, wait)


class ExtractionRates:
    """The configured rates of a server."""

    def __init__(self, config: ServerConfig) -> None:
        self._by_key = _limits(config.extract_rate)
        self._by_domain = _limits(config.domain_rate)
        self._by_both = _limits(config.key_domain_rate)

    def take(self, caller: Caller, host: str) -> None:
        """Count a request of a caller for a host; raises :class:`ExtractionError` (429) for one too many."""
        scopes = (
            (self._by_key, caller.name, "/limits/over-user-limit", "This key sends requests"),
            (self._by_domain, host, "/limits/over-domain-limit", f"{host} is requested"),
            (
                self._by_both,
                f"{caller.organisation} {host}",
                "/limits/over-org-domain-limit",
                f"This key or its organisation requests {host}",
            ),
        )
        for limits, bucket, problem, subject in scopes:
            wait = 0 if limits is None else limits.wait(bucket)
            if wait:
                raise over_limit(problem, f"{subject} more often than this server allows. Try again in {wait} s.", wait)
        for limits, bucket, *_ in scopes:
            if limits is not None:  # one without buckets is empty, and false
                limits.take(bucket)


def _limits(rate: float | None) -> RateLimits | None:
    return None if rate is None else RateLimits(rate, math.ceil(2 * rate))


# ── bytes that a request holds ──

#: Counts bytes that a request holds until it is answered; raises :class:`ExtractionError` (503) for too many.
Hold = Callable[[int], None]

#: Bytes of a body that are not counted: the number of requests bounds their sum, and small pages are never refused
#: because of large ones.
UNCOUNTED: Final = 64 * 1024


def no_count(_size: int) -> None:
    """Count nothing."""


def growing(hold: Hold) -> Hold:
    """Return a function that counts one growing body; call it with the size so far."""
    counted = UNCOUNTED

    def count(size: int) -> None:
        nonlocal counted
        if size > counted:
            hold(size - counted)
            counted = size

    return count

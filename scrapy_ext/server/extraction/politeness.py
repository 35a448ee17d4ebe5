"""How many requests one domain gets at once, and how soon after one another.

A site that hangs keeps its own requests waiting and nobody else's: they hold at most :attr:`Limits.domain_requests`
places of the server and :attr:`Limits.domain_waiting` more while they wait. Those that find no room, or wait too long,
get 429 ``/limits/over-domain-limit``, which tells their senders to go on with other sites.

The domain is the host of the URL that was asked for. What a page loads, and where it redirects to or is led by actions,
is part of it: these hold the place of the page that began, and a script may lead anywhere.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from scrapy_ext.api.extraction.errors import ExtractionError, over_limit
from scrapy_ext.server.config.extraction_limits import Limits
from scrapy_ext.server.extraction.fair_semaphore import Turnstile

#: Domains whose last start is remembered for the sake of the delay.
_REMEMBERED: Final = 10_000


class _Domain:
    """One domain: its places, and when the next request may start."""

    def __init__(self, host: str, limits: Limits, places: int) -> None:
        self.places = Turnstile(
            f"requests to {host}", places, limits.domain_waiting, limits.domain_patience, refuse=_too_many
        )
        self.next_start = 0.0

    @property
    def idle(self) -> bool:
        return not self.places.inside and not self.places.waiting


class Politeness:
    """The places of all domains; ``requests`` of each at once (None: those of ``limits``), ``delay`` seconds apart."""

    def __init__(self, limits: Limits, requests: int | None = None, delay: float = 0.0) -> None:
        self._limits = limits
        self._requests = requests or limits.domain_requests
        self._delay = delay
        self._domains: dict[str, _Domain] = {}

    @property
    def waiting(self) -> int:
        """Requests that wait for a place of their domain."""
        return sum(domain.places.waiting for domain in self._domains.values())

    @asynccontextmanager
    async def place(self, host: str) -> AsyncIterator[None]:
        """A place of a domain for the time of the block; raises :class:`ExtractionError` (429)."""
        domain = self._domains.get(host)
        if domain is None:
            domain = self._domains[host] = _Domain(host, self._limits, self._requests)
        try:
            async with domain.places.place():
                if self._delay:
                    await self._turn(domain, host)
                yield
        finally:
            if domain.idle and not self._delay:
                self._domains.pop(host, None)
            elif len(self._domains) > _REMEMBERED:
                self._forget()

    async def _turn(self, domain: _Domain, host: str) -> None:
        now = asyncio.get_running_loop().time()
        start = max(now, domain.next_start)
        if start - now > self._limits.domain_patience:
            raise _too_many(f"This server asks {host} only once in {self._delay:g} s.", math.ceil(start - now))
        domain.next_start = start + self._delay
        await asyncio.sleep(start - now)

    def _forget(self) -> None:
        now = asyncio.get_running_loop().time()
        over = [host for host, domain in self._domains.items() if domain.idle and domain.next_start <= now]
        for host in over:
            del self._domains[host]

    def __len__(self) -> int:
        return len(self._domains)


def _too_many(detail: str, wait: int = 2) -> ExtractionError:
    return over_limit("/limits/over-domain-limit", detail, wait)

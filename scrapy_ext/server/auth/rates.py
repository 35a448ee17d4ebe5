"""Optional rate limit of requests: a token bucket per caller.

A bucket holds ``burst`` tokens and receives ``rate`` of them per second. Callers are known keys and jobs, so strangers
create no buckets; their number is bounded nevertheless. Each process has its own limit.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.types import Scope

_MAX_BUCKETS: Final = 10_000


class RateLimits:
    """Rate limits of ``rate`` requests per second for each caller, with bursts of ``burst``."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        #: Tokens and the time of their count, least recently used first.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int:
        """Use a token; return 0, or the seconds until the next token."""
        now = self._clock()
        tokens = self._tokens(caller, now)
        wait = self._until_one(tokens)
        self._buckets.pop(caller, None)
        self._buckets[caller] = (tokens - 1 if not wait else tokens, now)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return wait

    def wait(self, caller: str) -> int:
        """Return the seconds until :meth:`take` would succeed; 0 for now."""
        return self._until_one(self._tokens(caller, self._clock()))

    def _tokens(self, caller: str, now: float) -> float:
        tokens, counted = self._buckets.get(caller, (self._burst, now))
        return min(self._burst, tokens + (now - counted) * self._rate)

    def _until_one(self, tokens: float) -> int:
        return 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._rate))

    def __len__(self) -> int:
        return len(self._buckets)


# ── limit of the wrong keys that one address may present, over all services of a server ──
# A right key is never refused because of others, since many people share an address behind a NAT. An IPv6 network of
# 64 bits counts as one address, since its owner has all of them. The table is bounded (``rates``).

#: Wrong keys per second and at once. Programs that wait for a new key to take effect try about ten times a second for
#: :data:`~scrapy_ext.server.auth.api_keys.REFRESH_SECONDS`.
RATE: Final = 10.0
BURST: Final = 100
#: The key of the table in a request's scope.
SCOPE_KEY: Final = "scrapy_ext.wrong_keys"

_NETWORK: Final = 64


class WrongKeys:
    """Table of wrong keys by address, shared by all services of a server."""

    def __init__(self, rate: float = RATE, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = RateLimits(rate, burst, clock)

    def note(self, scope: Scope) -> int:
        """Count a wrong key; return 0, or the seconds until the address of this request may present another."""
        return self._rates.take(address_of(scope))

    def __len__(self) -> int:
        return len(self._rates)


def note_wrong_key(scope: Scope) -> int:
    """Count a wrong key in the request's table (:meth:`WrongKeys.note`); 0 without the request middleware."""
    table: WrongKeys | None = scope.get(SCOPE_KEY)
    return table.note(scope) if table is not None else 0


def too_many(wait: int) -> str:
    return f"Too many wrong keys from this address. Try again in {wait} s with the right key."


def address_of(scope: Scope) -> str:
    """Return the address that a request counts for: that of the client, or its network for IPv6."""
    text = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _NETWORK << _NETWORK)}/{_NETWORK}"

"""Optional rate limit of requests: a token bucket per caller.

A bucket holds ``burst`` tokens and receives ``rate`` of them per second. Callers are known keys and jobs, so strangers
create no buckets; their number is bounded nevertheless. Each process has its own limit.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

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

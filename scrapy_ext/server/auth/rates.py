"""How many requests a caller may make: a token bucket for each key, off unless it is switched on.

A bucket holds as many tokens as its caller may use at once, and gets ``rate`` of them a second. Callers are keys and
jobs, or what these ask for, so that strangers make no buckets; the number of buckets is bounded all the same.
The limit is that of one process.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MAX_BUCKETS: Final = 10_000


class RateLimits:
    """``rate`` requests a second for each caller, ``burst`` of them at once."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        #: Tokens and when they were counted, those used last at the end.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int:
        """Use a token; returns 0, or after how many seconds there will be one."""
        now = self._clock()
        tokens = self._tokens(caller, now)
        wait = self._until_one(tokens)
        self._buckets.pop(caller, None)
        self._buckets[caller] = (tokens - 1 if not wait else tokens, now)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return wait

    def wait(self, caller: str) -> int:
        """After how many seconds :meth:`take` would find a token; 0 for now."""
        return self._until_one(self._tokens(caller, self._clock()))

    def _tokens(self, caller: str, now: float) -> float:
        tokens, counted = self._buckets.get(caller, (self._burst, now))
        return min(self._burst, tokens + (now - counted) * self._rate)

    def _until_one(self, tokens: float) -> int:
        return 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._rate))

    def __len__(self) -> int:
        return len(self._buckets)

"""Number of requests that are read ahead of the downloader, by the distance of the platform.

While a read is under way, the downloader takes requests from memory. A crawl that takes ``rate`` requests a second, of
a platform whose answer takes ``seconds``, needs ``rate * seconds`` of them to go on without a pause. Reads begin when
half of what should be in memory is left, and either figure may double meanwhile, so four times as many are kept. A
crawl that waits for requests takes them as fast as they come, so its number grows until it no longer waits, or up to a
limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

#: Multiple of the requests that are taken during a read.
_ROUND_TRIPS: Final = 4
#: Limit, as a multiple of the setting.
_MOST: Final = 10
#: Weight of the newest read.
_NEWEST: Final = 0.3


class ReadAhead:
    """Read-ahead of a crawl. ``least`` is the number of requests for a platform that is near; ``clock`` returns
    seconds."""

    def __init__(self, least: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._least = least
        self._clock = clock
        self._taken = 0
        self._since: float | None = None
        self._rate = self._seconds = 0.0
        #: Number of requests that should be in memory.
        self.requests = least

    def now(self) -> float:
        return self._clock()

    def taken(self) -> None:
        """Record that the downloader has taken a request."""
        self._taken += 1

    def has_read(self, began: float) -> None:
        """Record that a read has ended, which began at a time of :meth:`now`."""
        now = self._clock()
        self._seconds = _smoothed(self._seconds, now - began)
        if self._since is not None and now > self._since:
            self._rate = _smoothed(self._rate, self._taken / (now - self._since))
        self._since, self._taken = now, 0
        needed = int(_ROUND_TRIPS * self._rate * self._seconds)
        self.requests = min(max(self._least, needed), _MOST * self._least)

    def most_of(self, usual: int) -> int:
        """Return the limit of one call that is ``usual`` for a platform that is near."""
        return usual * self.requests // self._least


def _smoothed(old: float, new: float) -> float:
    return new if not old else old + _NEWEST * (new - old)

"""Health of proxies: their success, and the cool-downs after bans.

Rules of a cool-down, of a proxy at a site or of another way to one:

* A ban lowers a *balance*, a pass raises it. At :data:`LEAST_BALANCE` the cool-down begins: after three bans in a row,
  or up to six after passes. So a page that bans everybody does not stop the pages around it.
* A ban where another proxy got the same page weighs as much as three: it is this proxy that is banned, not the page.
* The cool-down takes :data:`FIRST_COOL_DOWN`, twice as long after each further one, up to :data:`LONGEST_COOL_DOWN`. A
  pass sets all back.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

#: Seconds.
FIRST_COOL_DOWN: Final = 60.0
LONGEST_COOL_DOWN: Final = 3600.0
LEAST_BALANCE: Final = -3
_MOST_BALANCE: Final = 3

#: Weights of a ban: where another proxy got the page, of a page alone, and of one that says nothing about the proxy.
COMPARED: Final = 3
SINGLE: Final = 1
NONE: Final = 0

#: Weight of the newest answer in the success.
_NEWEST: Final = 0.3

K = TypeVar("K", bound=Hashable)


class Health:
    """Answers of one proxy, at one site or at all."""

    __slots__ = ("avoided", "banned", "failed", "in_a_row", "passed", "success", "until")

    def __init__(self) -> None:
        #: Numbers of requests by result.
        self.passed = 0
        self.banned = 0
        self.failed = 0
        #: Recent success, from 0 to 1; a proxy without answers is tried like one that always passes.
        self.success = 1.0
        #: Failures in a row where another proxy got an answer, how often in a row the proxy was avoided after such, and
        #: the end of that.
        self.in_a_row = 0
        self.avoided = 0
        self.until = 0.0

    def lower(self) -> None:
        self.success *= _NEWEST

    def avoid(self, now: float, first: float, longest: float) -> None:
        """Begin to avoid the proxy; requests that were under way when it began do not extend it."""
        if now >= self.until:
            self.until = now + min(first * 2.0 ** min(self.avoided, 20), longest)
            self.avoided += 1

    def works(self) -> None:
        """Note that the proxy led to a site, whatever that answered."""
        self.in_a_row = self.avoided = 0
        self.until = 0.0

    def recover(self) -> None:
        self.works()
        self.success += _NEWEST * (1 - self.success)


class _Rest:
    """Balance and cool-down of one key."""

    __slots__ = ("balance", "cool_downs", "until")

    def __init__(self) -> None:
        self.balance = 0
        #: In a row.
        self.cool_downs = 0
        self.until = 0.0


class Rests(Generic[K]):
    """Cool-downs by key, of the ``most`` keys that had an answer last."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._known: OrderedDict[K, _Rest] = OrderedDict()

    def left(self, key: K) -> float:
        """Return the seconds of a cool-down that are left."""
        rest = self._known.get(key)
        return max(rest.until - self._clock(), 0.0) if rest is not None else 0.0

    def is_cooling(self, key: K) -> bool:
        return self.left(key) > 0

    def banned(self, key: K, weight: int = COMPARED) -> None:
        """Note a ban. Those of requests that were under way when a cool-down began do not extend it."""
        if not weight or self.is_cooling(key):
            return
        rest = self._known.setdefault(key, _Rest())
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        rest.balance = max(rest.balance - weight, LEAST_BALANCE)
        if rest.balance <= LEAST_BALANCE:
            wait = min(FIRST_COOL_DOWN * 2.0 ** min(rest.cool_downs, 20), LONGEST_COOL_DOWN)
            rest.until = self._clock() + wait
            rest.cool_downs += 1

    def passed(self, key: K, *, recovered: bool = False) -> None:
        """Note a pass. One of a request that was under way when a cool-down began changes nothing, unless it is
        ``recovered``: sent during the cool-down."""
        rest = self._known.get(key)
        if rest is None:
            rest = self._known[key] = _Rest()
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        elif self.is_cooling(key) and not recovered:
            return
        self._known.move_to_end(key)
        rest.balance = min(max(rest.balance, 0) + 1, _MOST_BALANCE)
        rest.cool_downs, rest.until = 0, 0.0

    def forget(self, key: K) -> None:
        self._known.pop(key, None)

    def cooling(self) -> Iterator[tuple[K, float]]:
        """Yield the keys that cool down, and the seconds that are left."""
        now = self._clock()
        for key, rest in self._known.items():
            if rest.until > now:
                yield key, rest.until - now

    def __len__(self) -> int:
        return len(self._known)

"""Number of workers of a crawl: when it grows, and when it shrinks.

- A crawl grows while each of its workers is busy and has requests that wait: by a quarter every ten seconds, and by one
  if that is less. One and two workers wait longer, so that the number at most doubles in :data:`_DOUBLING` seconds.
- It shrinks by one when the others could do the work and would still be idle for a third of their time, so that it
  does not grow again soon. The shares of a worker's time are means over its last seconds (:data:`_MEMORY`), so that a
  pause or a burst of a few seconds changes nothing.
- Shrinking must not follow growth at once: after a change the crawl needs time until the shares are those of the new
  number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from scrapy_ext.api.platform.worker_bounds import Bounds

#: Seconds between two steps of growth, and in which the number at most doubles.
_GROWTH: Final = 10.0
_DOUBLING: Final = 30.0
#: Seconds without a change after which a crawl shrinks by a worker.
_SHRINKING: Final = 30.0
#: A worker that is idle for less of its time is busy; one that is left by another must be idle for so much.
_BUSY: Final = 0.2
_SPARE: Final = 0.35
#: Part of the requests at once that the sites allow from which on another worker would be of no use: some are between
#: the end of one request and the start of the next.
_FULL: Final = 0.75
#: Seconds in which the weight of an interval falls to a third.
_MEMORY: Final = 10.0


class Load(NamedTuple):
    """Mean shares of a worker's time: ``idle`` without a request to run, ``waiting`` with requests that it could not
    start yet. ``open``: mean number of its requests that are open at sites."""

    idle: float
    waiting: float
    open: float = 0.0

    def after(self, idle: float, waiting: float, seconds: float, requests: float = 0.0) -> Load:
        """Return the load after another interval with these shares and so many open requests."""
        kept = math.exp(-max(seconds, 0.0) / _MEMORY)
        now = (min(max(idle, 0.0), 1.0), min(max(waiting, 0.0), 1.0), requests)
        return Load(*(before * kept + value * (1 - kept) for before, value in zip(self, now, strict=True)))


#: Load of a worker that has just begun.
NEW: Final = Load(0.5, 0.5)


def proposal(target: int, bounds: Bounds, loads: Sequence[Load], unchanged: float, *, has_room: bool = True) -> int:
    """Return the number of workers that a crawl should have.

    ``target``: the present one, ``unchanged`` for so many seconds; ``loads``: of the workers that run, which may be
    fewer. ``has_room``: false while the limits of the sites allow no more requests at once, so that another worker
    would be of no use.
    """
    within = bounds.clamped(target)
    if within != target:
        return within
    if has_room and _is_busy(target, loads) and unchanged >= _step_time(target):
        return bounds.clamped(target + max(1, target // 4))
    if unchanged >= _SHRINKING and _is_idle(loads):
        return bounds.clamped(min(target, len(loads)) - 1)
    return target


def has_room(allowed: int | None, loads: Sequence[Load]) -> bool:
    """Return true if the limits of the sites allow more requests at once than the workers use, so that another worker
    would be of use. ``allowed``: by the limits of the sites that requests wait for; None if none has a limit."""
    return allowed is None or sum(load.open for load in loads) < _FULL * allowed


def _step_time(target: int) -> float:
    return max(_GROWTH, _DOUBLING / target)


def _is_busy(target: int, loads: Sequence[Load]) -> bool:
    """Return true if all workers run, and each is busy and has requests that wait."""
    return len(loads) >= target and all(load.idle < _BUSY and load.waiting > 1 - _BUSY for load in loads)


def _is_idle(loads: Sequence[Load]) -> bool:
    """Return true if one worker less would leave the others enough spare time."""
    work = sum(1.0 - load.idle for load in loads)
    return len(loads) > 1 and work / (len(loads) - 1) < 1 - _SPARE

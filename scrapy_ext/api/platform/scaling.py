"""Number of workers of a crawl: when it grows, and when it shrinks.

- A crawl grows while each of its workers has requests that wait and is busy: by a quarter every ten seconds, and by one
  if that is less. One and two workers wait longer, so that the number at most doubles in :data:`_DOUBLING` seconds.
- It shrinks by one when the others could do the work and none of them would be busy enough to grow again. The idle
  share of a worker is a mean over the last :data:`MEMORY` seconds, so that a pause of a few seconds changes nothing.
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
#: A worker that is idle for less of its time is busy.
_BUSY: Final = 0.2
#: Seconds in which the weight of an idle share falls to a third.
MEMORY: Final = 10.0


class Load(NamedTuple):
    """Load of a worker. ``idle``: mean share of its time without a request to run, None before its first report.

    ``waits``: it has requests that it could not start yet.
    """

    idle: float | None
    waits: bool


def mean_idle(before: float | None, share: float, seconds: float) -> float:
    """Return the mean idle share after another interval with a share. ``before``: None for the first interval."""
    share = min(max(share, 0.0), 1.0)
    if before is None:
        return share
    kept = math.exp(-max(seconds, 0.0) / MEMORY)
    return before * kept + share * (1 - kept)


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


def _step_time(target: int) -> float:
    return max(_GROWTH, _DOUBLING / target)


def _is_busy(target: int, loads: Sequence[Load]) -> bool:
    """Return true if all workers run, and each is busy and has requests that wait."""
    return len(loads) >= target and all(load.idle is not None and load.idle < _BUSY and load.waits for load in loads)


def _is_idle(loads: Sequence[Load]) -> bool:
    """Return true if one worker less would leave the others so much time that the crawl does not grow again."""
    work = sum(1.0 if load.idle is None else 1.0 - load.idle for load in loads)
    return len(loads) > 1 and work / (len(loads) - 1) < 1 - _BUSY

"""Growth of a number: a line through its samples, after a warm-up, with restarts accounted for.

Each life of a process has a level of its own, and all lives of one kind have one slope (a regression with an intercept
for each life). A number *grows* when its slope is above what is tolerated by more than twice its standard error, and
one life was seen to grow by half the tolerated amount; it is *flat* when its slope is below by as much; else the run
was too short to say: a thread more in five minutes are twelve an hour. Samples that follow each other are alike, so
that errors count as if only every fourth sample were one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

HOUR = 3600.0
#: Samples of a life that count, at least.
_FEW = 6
_ALIKE = 4.0


class Sample(NamedTuple):
    """A number at a time (seconds of the run). ``life``: of which process, or folder, or database it is."""

    at: float
    life: str
    value: float


class Rule(NamedTuple):
    """Tolerated growth in an hour: a part of the level, and at least an amount. ``warm_up``: seconds of each life that
    do not count; negative: this part of the run, for what fills up at first."""

    part: float
    amount: float
    warm_up: float


class Slope(NamedTuple):
    """The result: level, growth an hour and its standard error, and the tolerated growth; seconds that counted;
    whether one life grew by enough to be seen."""

    level: float
    growth: float
    error: float
    tolerated: float
    seconds: float
    is_seen: bool

    @property
    def word(self) -> str:
        if self.growth - 2 * self.error > self.tolerated and self.is_seen:
            return "grows"
        return "flat" if self.growth + 2 * self.error <= self.tolerated else "too short to say"


def slope_of(samples: Sequence[Sample], rule: Rule) -> Slope | None:
    """The slope of all lives together; None where there are not enough samples."""
    lives = _after_warm_up(samples, rule)
    if not lives:
        return None
    centred = []
    for life in lives.values():
        at, value = fmean(each.at for each in life), fmean(each.value for each in life)
        centred += [(each.at - at, each.value - value) for each in life]
    spread = sum(x * x for x, _ in centred)
    slope = sum(x * y for x, y in centred) / spread
    degrees = max(len(centred) / _ALIKE - len(lives) - 1, 1)
    residual = sum((y - slope * x) ** 2 for x, y in centred) / _ALIKE
    error = math.sqrt(residual / degrees / (spread / _ALIKE))
    level = fmean(each.value for life in lives.values() for each in life)
    seconds = sum(life[-1].at - life[0].at for life in lives.values())
    longest = max(life[-1].at - life[0].at for life in lives.values())
    tolerated = max(rule.part * abs(level), rule.amount)
    return Slope(level, slope * HOUR, error * HOUR, tolerated, seconds, slope * longest >= rule.amount / 2)


def _after_warm_up(samples: Sequence[Sample], rule: Rule) -> Mapping[str, Sequence[Sample]]:
    ordered = sorted(samples, key=lambda each: (each.life, each.at))
    end = max((each.at for each in samples), default=0.0)
    found = {}
    for name, group in groupby(ordered, key=lambda each: each.life):
        life = list(group)
        begin = life[0].at + rule.warm_up if rule.warm_up >= 0 else -rule.warm_up * end
        kept = [each for each in life if each.at >= begin]
        if len(kept) >= _FEW:
            found[name] = kept
    return found

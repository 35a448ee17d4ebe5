"""Confidence of a share and of an F1: intervals that hold the value for 95 of 100 samples of such pages."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

#: Standard deviations of a normal distribution that hold 95 %.
DEVIATIONS = 1.959964
SAMPLES = 1000

T = TypeVar("T")


class Outcome(NamedTuple):
    """The result of one field on one page.

    ``precision`` is the share of what was found that is right, None where nothing was found; ``recall`` that of what
    is true, None where nothing is. For a single value both are 0 or 1.
    """

    site: str
    precision: float | None
    recall: float | None


def wilson(share: float, number: int) -> tuple[float, float]:
    """Return Wilson's interval of a share of ``number`` pages; all that is possible for none."""
    if not number:
        return 0.0, 1.0
    square = DEVIATIONS**2
    middle = (share + square / (2 * number)) / (1 + square / number)
    width = DEVIATIONS * math.sqrt(share * (1 - share) / number + square / (4 * number**2)) / (1 + square / number)
    return max(0.0, middle - width), min(1.0, middle + width)


def f1_of(outcomes: Iterable[Outcome]) -> float:
    """Return the harmonic mean of the averages of precision and recall; 1.0 where nothing is true and nothing found."""
    right, found, met, true = _sums(outcomes)
    precision, recall = right / found if found else 1.0, met / true if true else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def bootstrap(outcomes: Iterable[Outcome]) -> tuple[float, float]:
    """Return the interval of the F1 by drawing sites, as pages of one site are right or wrong together."""
    return drawn_by_site(((outcome.site, outcome) for outcome in outcomes), f1_of)


def drawn_by_site(values: Iterable[tuple[str, T]], figure: Callable[[list[T]], float]) -> tuple[float, float]:
    """Return the interval of a figure of pages, of which each has a site and a value, by drawing sites."""
    by_site: defaultdict[str, list[T]] = defaultdict(list)
    for site, value in values:
        by_site[site].append(value)
    sites = [by_site[site] for site in sorted(by_site)]
    chance = random.Random(0)
    drawn = sorted(
        figure([value for site in chance.choices(sites, k=len(sites)) for value in site]) for _ in range(SAMPLES)
    )
    return drawn[int(0.025 * SAMPLES)], drawn[int(0.975 * SAMPLES) - 1]


def _sums(outcomes: Iterable[Outcome]) -> tuple[float, int, float, int]:
    right = met = 0.0
    found = true = 0
    for _, precision, recall in outcomes:
        if precision is not None:
            right, found = right + precision, found + 1
        if recall is not None:
            met, true = met + recall, true + 1
    return right, found, met, true

"""Tallies of fields over pages, with confidence intervals.

The interval is of a bootstrap over sites (or over pages, where the caller gives these as groups), as pages of one site
are right or wrong together. Where nothing is wrong, the bootstrap has no width; the lower end is then by the rule of
three.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

RESAMPLES: Final = 1_000


@dataclass(slots=True)
class Tally:
    """Counts of one field on one page, or on several.

    ``scores`` is the sum of the scores of texts (0 to 1), for fields that are not simply right or wrong.
    """

    right: int = 0
    wrong: int = 0
    missing: int = 0
    scores: float = 0.0
    scored: int = 0

    def add(self, other: Tally) -> None:
        self.right += other.right
        self.wrong += other.wrong
        self.missing += other.missing
        self.scores += other.scores
        self.scored += other.scored

    def value(self) -> float:
        """Return the mean score, or the F1 of a field that is right or wrong."""
        if self.scored:
            return self.scores / self.scored
        both = 2 * self.right + self.wrong + self.missing
        return 2 * self.right / both if both else 1.0

    def size(self) -> int:
        """Return the number of labels."""
        return self.scored or self.right + self.missing


@dataclass(slots=True)
class Table:
    """Tallies by field and by group (a site or a page)."""

    tallies: dict[str, dict[str, Tally]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Tally)))

    def judged(self, name: str, group: str, found: object, right: bool, *, labelled: bool = True) -> None:
        """Count one value: right, wrong, missing; a wrong one counts as missing, too."""
        tally = self.tallies[name][group]
        if found is None:
            tally.missing += labelled
        elif right:
            tally.right += 1
        else:
            tally.wrong += 1
            tally.missing += labelled

    def count(self, name: str, group: str, *, right: int = 0, wrong: int = 0, missing: int = 0) -> None:
        self.tallies[name][group].add(Tally(right, wrong, missing))

    def score(self, name: str, group: str, value: float) -> None:
        self.tallies[name][group].add(Tally(scores=value, scored=1))

    def of(self, name: str) -> Tally:
        return _sum(self.tallies[name].values())

    def interval(self, name: str) -> tuple[float, float]:
        """Return the bounds between which the value is with a confidence of 95 %."""
        groups = [each for each in self.tallies[name].values() if each.size() or each.wrong]
        if not groups:
            return 0.0, 1.0
        chance = random.Random(21)
        values = sorted(_sum(chance.choices(groups, k=len(groups))).value() for _ in range(RESAMPLES))
        low, high = values[RESAMPLES // 40], values[-RESAMPLES // 40]
        return (max(0.0, 1 - 3 / len(groups)) if low == 1.0 else low), high


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total

"""Verdicts on finished jobs: whether one needs somebody, and why. Each is given once, when the job has ended.

The rules, of which the worst that applies decides; cancelled jobs have no verdict, since somebody ended them:

========  ==============================================================================
verdict   reasons
========  ==============================================================================
red       it failed or was lost; a monitor failed; it has no items, and runs with its
          arguments had some; its log has more errors than it has items, and over 10
amber     it ended over a limit or for a reason of its spider; its log has errors; it has
          fewer than half as many items as runs with its arguments. Neither its end nor the
          number is a reason when it reached the number of items or pages that its user
          set (CLOSESPIDER_ITEMCOUNT, CLOSESPIDER_PAGECOUNT)
green     no other applies
========  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.comparison import median
from scrapy_ext.api.platform.jobs import OUTCOME_NAMES, Outcome, outcome_of

#: Number of runs that a job is compared with, and the number below which it is not: the last ones before it that have
#: its arguments and the close reason "finished". All medians of runs in the pages are theirs.
COMPARED: Final = 10
LEAST: Final = 3
#: Close reasons of runs that did all that their users wanted of them.
_AS_WANTED: Final = frozenset({"closespider_itemcount", "closespider_pagecount"})
#: Share of the median of the items below which a run has few.
_FEW: Final = 0.5
#: Errors in the log up to which a run without items is not red for them.
_SOME_ERRORS: Final = 10
#: Characters of a sentence.
_LONGEST: Final = 500


class Verdict(IntEnum):
    """The greater, the more it needs somebody."""

    #: Not judged yet, or cancelled.
    NONE = 0
    GREEN = 1
    AMBER = 2
    RED = 3

    @property
    def text(self) -> str:
        return self.name.lower()


#: Text for a finished job that has no verdict yet.
UNJUDGED: Final = "unjudged"
#: The verdicts that need somebody.
ATTENTION: Final = (Verdict.RED, Verdict.AMBER)


#: Kinds of reasons.
OUTCOME, ERRORS, ITEMS, MONITOR, MISSED = "outcome", "errors", "items", "monitor", "missed"


class Reason(msgspec.Struct, frozen=True):
    """One reason of a verdict. ``kind``: outcome, errors, items, monitor or missed."""

    kind: str
    verdict: Verdict
    sentence: str


class Finished(NamedTuple):
    """A run as its verdict sees it. ``median_items``: of runs with the same arguments; None: too few of them."""

    close_reason: str
    items: int
    errors: int
    median_items: float | None
    #: Names of monitors that failed, each with its sentence.
    failed_monitors: Sequence[tuple[str, str]] = ()


def reasons_of(run: Finished) -> list[Reason]:
    """Return the reasons of a run's verdict, the worst first; none for a green one."""
    found = [*_of_outcome(run), *_of_monitors(run), *_of_items(run), *_of_errors(run)]
    return sorted(found, key=lambda reason: -reason.verdict)


def verdict_of(reasons: Iterable[Reason], close_reason: str) -> Verdict:
    """Return the worst verdict of the reasons."""
    worst = max((reason.verdict for reason in reasons), default=Verdict.GREEN)
    return Verdict.NONE if outcome_of(close_reason) is Outcome.CANCELLED and worst < Verdict.RED else worst


def typical_items(items: Sequence[int]) -> float | None:
    """Return the median of the items of earlier runs; None for too few runs."""
    return median(items) if len(items) >= LEAST else None


def _of_outcome(run: Finished) -> Iterable[Reason]:
    outcome = outcome_of(run.close_reason)
    if outcome is Outcome.FAILED:
        yield _reason(OUTCOME, Verdict.RED, f"it failed: {run.close_reason}")
    elif outcome is Outcome.LIMIT and run.close_reason not in _AS_WANTED:
        yield _reason(OUTCOME, Verdict.AMBER, f"it ended {OUTCOME_NAMES[outcome]}: {run.close_reason}")
    elif outcome is Outcome.OTHER:
        yield _reason(OUTCOME, Verdict.AMBER, f"its spider ended it: {run.close_reason}")


def _of_monitors(run: Finished) -> Iterable[Reason]:
    for name, sentence in run.failed_monitors:
        yield _reason(MONITOR, Verdict.RED, f"monitor {name} failed: {sentence}")


def _of_items(run: Finished) -> Iterable[Reason]:
    middle = run.median_items
    if not middle or outcome_of(run.close_reason) is Outcome.CANCELLED:
        return
    if not run.items:
        yield _reason(ITEMS, Verdict.RED, f"no items, and runs with its arguments had {middle:,.0f} (median)")
    elif run.items < _FEW * middle and run.close_reason not in _AS_WANTED:
        share = f"{100 * run.items / middle:.0f} %"
        sentence = f"{run.items:,} items, {share} of the {middle:,.0f} of runs with its arguments (median)"
        yield _reason(ITEMS, Verdict.AMBER, sentence)


def _of_errors(run: Finished) -> Iterable[Reason]:
    if run.errors:
        many = run.errors > max(run.items, _SOME_ERRORS)
        noun = "error" if run.errors == 1 else "errors"
        against = f", and {run.items:,} items" if many else ""
        yield _reason(ERRORS, Verdict.RED if many else Verdict.AMBER, f"{run.errors:,} {noun} in the log{against}")


def _reason(kind: str, verdict: Verdict, sentence: str) -> Reason:
    line = " ".join(sentence.split())
    return Reason(kind, verdict, line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…")

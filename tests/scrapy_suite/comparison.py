"""Differences between a run in a wiring and the plain run, and the list of those that are known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from scrapy_ext.compatibility.toml import tomllib
from tests.scrapy_suite.runs import Run

KNOWN_DIFFERENCES: Final = Path(__file__).parent / "known_differences.toml"
_KEYS: Final = {"wirings", "tests", "reason"}


class KnownDifference(NamedTuple):
    """Tests of a wiring that do not pass there, and why that is right. ``*`` in the pattern stands for anything."""

    wiring: str
    pattern: str
    reason: str

    def holds_for(self, test: str) -> bool:
        """Return True if this entry is about that test."""
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("*"))), test) is not None


class Difference(NamedTuple):
    """A test that ends otherwise in a wiring than in plain Scrapy."""

    test: str
    plain: str
    wired: str


class Verdict(NamedTuple):
    """Verdict on a run in a wiring."""

    explained: list[Difference]
    unexplained: list[Difference]
    #: Entries of the list that are about no test that differs.
    stale: list[KnownDifference]


def read_known(path: Path, wirings: Iterable[str]) -> list[KnownDifference]:
    """The list of the known differences; raises :class:`ValueError` for an entry that is not whole."""
    known = set(wirings)
    return [
        each
        for entry in tomllib.loads(path.read_text("utf-8")).get("known_difference", [])
        for each in _read(entry, known)
    ]


def _read(entry: dict[str, object], known: set[str]) -> Iterator[KnownDifference]:
    match entry:
        case {"wirings": list(wirings), "tests": list(tests), "reason": str(reason)} if (
            entry.keys() == _KEYS and wirings and tests and reason.strip() and known.issuperset(wirings)
        ):
            for wiring in wirings:
                yield from (KnownDifference(wiring, test, reason) for test in tests)
        case _:
            raise ValueError(f"An entry needs wirings (of {sorted(known)}), tests and a reason, and no more: {entry}")


def differences(plain: Run, wired: Run) -> list[Difference]:
    """Tests that ended otherwise, but for those that fail in plain Scrapy too."""
    return [
        Difference(test, outcome, wired.outcomes.get(test, "not run"))
        for test, outcome in sorted(plain.outcomes.items())
        if outcome != "failed" and wired.outcomes.get(test, "not run") != outcome
    ]


def judge(found: Iterable[Difference], plain: Run, known: Sequence[KnownDifference]) -> Verdict:
    """Compare what was found in a wiring with the list for it."""
    verdict = Verdict([], [], [])
    for difference in found:
        is_known = any(entry.holds_for(difference.test) for entry in known)
        (verdict.explained if is_known else verdict.unexplained).append(difference)
    # What fails in plain Scrapy here says nothing about the list.
    fail_anyway = [test for test, outcome in plain.outcomes.items() if outcome == "failed"]
    tests = [*(difference.test for difference in verdict.explained), *fail_anyway]
    verdict.stale.extend(entry for entry in known if not any(map(entry.holds_for, tests)))
    return verdict

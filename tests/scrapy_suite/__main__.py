"""Run Scrapy's own tests plain and with the add-on switched on by default, and compare.

Only tests that make a crawler are run with the add-on: the plain run notes which these are. A difference fails the
command unless ``known_differences.toml`` has it with its reason, and so does an entry there without a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from tests.scrapy_suite import environment
from tests.scrapy_suite.comparison import KNOWN_DIFFERENCES, Difference, KnownDifference, differences, judge, read_known
from tests.scrapy_suite.environment import Environment
from tests.scrapy_suite.runs import Run, run_tests

#: The wirings, and stats that are 0 where the add-on takes no part in a crawl.
PROOFS: Final = {
    "frontier": ("scheduler/dequeued/frontier", "platform/items/count", "platform/requests/count"),
    "extraction": ("extract_api/success",),
    "everything": ("scheduler/dequeued/frontier", "platform/items/count", "extract_api/success"),
}


class Place(NamedTuple):
    """Folder of the runs of one version of Scrapy."""

    environment: Environment
    runs: Path
    #: Tests at once.
    workers: int

    def run(self, name: str, wiring: str | None = None, only: Collection[str] | None = None) -> Run:
        """Run tests and print how many ended how."""
        print(f"── Scrapy's tests, {name}", flush=True)
        began = time.monotonic()
        run = run_tests(self.environment, self.runs / name, wiring=wiring, only=only, workers=self.workers)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(Counter(run.outcomes.values()).items()))
        print(
            f"   {counts} in {(time.monotonic() - began) / 60:.1f} minutes; log: {self.runs / name / 'log'}", flush=True
        )
        return run

    def run_again(self, wiring: str, found: list[Difference]) -> Run:
        """Run tests that differ once more, one at a time: many have bounds of time."""
        only = {difference.test for difference in found}
        return run_tests(self.environment, self.runs / f"{wiring}-again", wiring=wiring, only=only, workers=0)


def main() -> int:
    """Run the command; returns its exit code."""
    options = _options()
    known = read_known(KNOWN_DIFFERENCES, PROOFS)
    found = _environment(options)
    place = Place(found, found.suite.parent / "runs", options.workers)
    noted = place.runs / "plain"
    plain = Run.read(noted) if options.again and noted.exists() else place.run("plain")
    switched_on = [stat for stats in PROOFS.values() for stat in stats if plain.stats[stat]]
    if switched_on:
        print(f"error: the plain run is not plain, by {switched_on[0]}", file=sys.stderr)
        return 1
    with_crawlers = Run(plain.folder, {test: plain.outcomes[test] for test in plain.with_crawlers})
    print(f"   {len(with_crawlers.outcomes)} of them make a crawler", flush=True)
    codes = [_try(wiring, place, with_crawlers, known) for wiring in options.wirings or PROOFS]
    return max(codes)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.scrapy_suite", description=__doc__)
    parser.add_argument(
        "wirings", nargs="*", metavar="WIRING", choices=[*PROOFS, []], help=f"of {', '.join(PROOFS)} (default: all)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--source",
        type=Path,
        help="test the Scrapy of this checkout, or source distribution, and not the installed one",
    )
    source.add_argument("--newest", action="store_true", help="test the newest Scrapy on PyPI, pre-releases included")
    parser.add_argument("-n", dest="workers", type=int, default=2, metavar="N", help="tests at once (default: 2)")
    parser.add_argument("--again", action="store_true", help="compare with the last plain run, and make no new one")
    return parser.parse_args()


def _environment(options: argparse.Namespace) -> Environment:
    if options.source is not None:
        return environment.of_source(options.source)
    return environment.newest() if options.newest else environment.installed()


def _try(wiring: str, place: Place, plain: Run, known: list[KnownDifference]) -> int:
    """Run the tests in a wiring and print what differs; returns the exit code for it."""
    of_wiring = [entry for entry in known if entry.wiring == wiring]
    aside = {test for test in plain.outcomes if any(entry.holds_for(test) for entry in of_wiring)}
    wired = place.run(wiring, wiring, plain.outcomes.keys() - aside)
    outcomes = wired.outcomes
    if aside:
        # By themselves: a test that fails in the middle of a crawl leaves the crawl to those after it.
        outcomes = outcomes | place.run(f"{wiring}-set-aside", wiring, aside).outcomes
    verdict = judge(differences(plain, Run(wired.folder, outcomes)), plain, of_wiring)
    again = place.run_again(wiring, verdict.unexplained) if verdict.unexplained else wired
    unexplained = [each for each in verdict.unexplained if again.outcomes.get(each.test) != each.plain]
    for difference in verdict.unexplained:
        if difference in unexplained:
            print(f"   DIFFERS: {difference.test}: {difference.plain} in plain Scrapy, {difference.wired} here")
        else:
            print(f"   differs, but not alone: {difference.test}")
    for entry in verdict.stale:
        print(f"   NO DIFFERENCE, take it off the list: {entry.pattern}")
    stats = {name: wired.stats[name] for name in PROOFS[wiring]}
    print("   " + ", ".join(f"{name}: {count}" for name, count in stats.items()))
    if not all(stats.values()):
        print("   NOT SWITCHED ON: one of these is 0")
    print(f"   {len(verdict.explained)} known differences, {len(unexplained)} unexplained", flush=True)
    return 1 if unexplained or verdict.stale or not all(stats.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

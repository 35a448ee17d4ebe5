"""Rounds: contenders take turns, so that other load of the machine affects all of them."""

from __future__ import annotations

import argparse
import atexit
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rig.processes import end_with_signal
from rig.results import Saving

T = TypeVar("T")
#: The run that :func:`report` saves, if ``--save`` was given.
_saving: Saving | None = None


def options(description: str | None, *, full: Mapping[str, Any], quick: Mapping[str, Any]) -> argparse.Namespace:
    """Parse the options of a script: ``--quick``, and one for each number of ``full``, whose default ``--quick``
    changes.

    Lists are given with commas. An option whose default is an empty text takes a folder of this machine, which is not
    saved with the result.
    """
    global _saving  # noqa: PLW0603 - options and report are called once each, at both ends of a script
    end_with_signal()
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, within a minute")
    for name, value in full.items():
        read = _listed(type(value[0])) if isinstance(value, list) else type(value)
        parser.add_argument(f"--{name.replace('_', '-')}", type=read, help=f"default: {value}; quick: {quick[name]}")
    saved = "save the result in benchmarks/results, VARIANT in its name"
    parser.add_argument("--save", nargs="?", const="", metavar="VARIANT", help=saved)
    given = parser.parse_args()
    if given.save is not None:
        explicit = {name: getattr(given, name) for name, value in full.items() if value not in ("", [""])}
        explicit = {name: value for name, value in explicit.items() if value is not None}
        _saving = Saving(Path(sys.argv[0]), given.save, explicit, quick=given.quick)
    defaults = quick if given.quick else full
    for name in full:
        if getattr(given, name) is None:
            setattr(given, name, defaults[name])
    return given


def _listed(kind: Callable[[str], T]) -> Callable[[str], list[T]]:
    def read(text: str) -> list[T]:
        return [kind(part) for part in text.split(",")]

    return read


def alternate(rounds: int, runs: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Call each of ``runs`` once a round, every other round in reverse."""
    results: dict[str, list[T]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in list(runs) if number % 2 == 0 else reversed(list(runs)):
            results[name].append(runs[name]())
    return results


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value at this quantile."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def report(benchmark: str, **fields: Any) -> None:
    """Print the JSON line of a benchmark, and save it on demand."""
    print(json.dumps({"benchmark": benchmark, **fields}), flush=True)
    if _saving is not None:
        # The processes that a script has started have ended by then, so that their time is known.
        atexit.register(_saving.save, fields)

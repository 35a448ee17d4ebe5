"""Rounds: contenders take turns, so that other load of the machine affects all of them."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rig.processes import end_with_signal

T = TypeVar("T")


def options(description: str | None, *, full: Mapping[str, Any], quick: Mapping[str, Any]) -> argparse.Namespace:
    """Parse the options of a script: ``--quick``, and one for each number of ``full``, whose default ``--quick``
    changes.

    Lists are given with commas.
    """
    end_with_signal()
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, within a minute")
    for name, value in full.items():
        read = _listed(type(value[0])) if isinstance(value, list) else type(value)
        parser.add_argument(f"--{name.replace('_', '-')}", type=read, help=f"default: {value}; quick: {quick[name]}")
    given = parser.parse_args()
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
    """Print the JSON line of a benchmark."""
    print(json.dumps({"benchmark": benchmark, **fields}), flush=True)

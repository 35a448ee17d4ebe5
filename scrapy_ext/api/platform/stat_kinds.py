"""Kinds of stats: how the values of one stat from two runs, or from two workers, become one.

The kind follows from the methods of the stats collector that changed the stat. A stat that is counted is added, one
that is set keeps the later value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

#: Bytes of JSON of all stats of a job. A platform accepts 1 MiB of metadata, which have other fields too.
MAX_BYTES: Final = 512 * 1024
#: Number of stats that were left out.
LEFT_OUT: Final = "platform/stats/left_out"
ELAPSED: Final = "elapsed_time_seconds"
ITEMS: Final = "item_scraped_count"
RESPONSES: Final = "downloader/response_count"
#: Integers that a reader of JSON can hold in 64 bits.
INTEGERS: Final = range(-(2**63), 2**64)
_START: Final = "start_time"
_FINISH: Final = "finish_time"
#: Rates a minute, and the stats that they are of.
_RATES: Final = (("items_per_minute", ITEMS), ("responses_per_minute", "response_received_count"))
#: Stats that are set, and count since the run began; exceptions of these, which are medians and the like.
_SET_COUNTS: Final = ("extract_api/",)
_LATENCIES: Final = ("extract_api/latency/",)


class StatKind(str, Enum):
    """The value of two: their sum, the larger or the smaller one, the later time (ms), or the last one that was set."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    TIME = "time"
    LAST = "last"


class Stat(msgspec.Struct, frozen=True, array_like=True):
    """A stat as a worker reports it: ``[kind, value]``."""

    kind: StatKind
    value: Any


class StatKinds:
    """Kinds of the stats of a collector. The methods that changed a stat are noted in ``set``, ``max`` and ``min``."""

    def __init__(self) -> None:
        self.set: set[Any] = set()
        self.max: set[Any] = set()
        self.min: set[Any] = set()

    def of(self, name: str) -> StatKind:
        """Return the kind of a stat."""
        if name == _START or name in self.min:
            return StatKind.MIN
        if name == _FINISH:
            return StatKind.TIME
        if name in self.max or name.startswith(_LATENCIES):
            return StatKind.MAX
        if name in self.set and not name.startswith(_SET_COUNTS):
            return StatKind.LAST
        return StatKind.SUM

    def reported(self, stats: Mapping[str, Any]) -> dict[str, Stat]:
        """Return stats with their kinds."""
        return {name: Stat(self.of(name), value) for name, value in stats.items()}


_COMBINE: Final[Mapping[StatKind, Callable[[Any, Any], Any]]] = {
    StatKind.SUM: lambda former, value: former + value,
    StatKind.MAX: max,
    StatKind.MIN: min,
    StatKind.TIME: max,
}


def combined(kind: StatKind, former: object, value: object) -> Any:
    """Return one value of two; the later one, ``value``, if either is no number, or both are no number of JSON."""
    combine = _COMBINE.get(kind)
    if combine is None or not (is_number(former) and is_number(value)):
        return value
    both = combine(former, value)
    return both if math.isfinite(both) and (isinstance(both, float) or both in INTEGERS) else value


def merged(former: Mapping[str, Stat], present: Mapping[str, Stat], *, keeps_last: bool = False) -> dict[str, Stat]:
    """Return the stats of both. ``keeps_last``: what was set keeps the value of ``former``."""
    both = {**former, **present}
    for name in former.keys() & present.keys():
        kind, value = present[name].kind, present[name].value
        if kind is StatKind.LAST and keeps_last:
            both[name] = former[name]
        else:
            both[name] = Stat(kind, combined(kind, former[name].value, value))
    return both


def with_durations(stats: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the stats of a whole job, with those that follow from the duration of its runs."""
    whole = dict(stats)
    whole[ELAPSED] = seconds
    for name, count in _RATES:
        if is_number(whole.get(name)) and is_number(whole.get(count)) and seconds > 0:
            whole[name] = whole[count] / (seconds / 60)
    return whole


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def sizes_of(stats: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes of JSON of each stat."""
    return {name: len(msgspec.json.encode({name: value})) for name, value in stats.items()}


def leave_out(stats: dict[str, Any], sizes: dict[str, int], most: int) -> int:
    """Remove stats until the others have at most ``most`` bytes of JSON; return how many.

    These are the last ones of the largest group: of those whose names are equal up to the first slash.
    """
    left_out = 0
    while (excess := sum(sizes.values()) - most) > 0:
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for name in sizes:
            groups[name.partition("/")[0]].append(name)
        largest = max(groups.values(), key=lambda names: sum(map(sizes.__getitem__, names)))
        for name in sorted(largest, reverse=True):
            excess -= sizes.pop(name)
            del stats[name]
            left_out += 1
            if excess <= 0:
                break
    return left_out

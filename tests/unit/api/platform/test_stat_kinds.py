"""Stats of two runs, or of two workers, become one by their kinds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.stat_kinds import (
    LEFT_OUT,
    Stat,
    StatKind,
    StatKinds,
    combined,
    leave_out,
    merged,
    sizes_of,
    with_durations,
)

SUM, MAX, MIN, TIME, LAST = StatKind

NOTED: dict[str, tuple[tuple[str, ...], StatKind]] = {
    "counted": ((), SUM),
    "page": (("set",), LAST),
    "memusage/max": (("max",), MAX),
    "least": (("min",), MIN),
    "start_time": (("set",), MIN),
    "finish_time": (("set",), TIME),
    "extract_api/attempts": (("set",), SUM),
    "extract_api/latency/p50": (("set",), MAX),
    "most, and set": (("set", "max"), MAX),
}


@pytest.mark.parametrize("name", NOTED)
def test_the_kind_follows_from_how_a_stat_was_changed(name: str) -> None:
    methods, kind = NOTED[name]
    kinds = StatKinds()
    for method in methods:
        getattr(kinds, method).add(name)
    assert kinds.reported({name: 1}) == {name: Stat(kind, 1)}


COMBINED: list[tuple[StatKind, Any, Any, Any]] = [
    (SUM, 2, 3, 5),
    (SUM, 2, 0.5, 2.5),
    (MAX, 2, 3, 3),
    (MAX, 3, 2, 3),
    (MIN, 2, 3, 2),
    (TIME, 1_700_000_000_000, 1_700_000_001_000, 1_700_000_001_000),
    (LAST, 2, 3, 3),
    (LAST, "a", "b", "b"),
    (SUM, "a", 3, 3),
    (SUM, 2, "b", "b"),
    (SUM, True, True, True),
    (MAX, None, 3, 3),
    (SUM, 2**63, 2**63, 2**63),
    (SUM, -(2**63), -1, -1),
    (SUM, 1e308, 1.5e308, 1.5e308),
]


@pytest.mark.parametrize(("kind", "former", "value", "both"), COMBINED)
def test_two_values_become_one(kind: StatKind, former: Any, value: Any, both: Any) -> None:
    assert combined(kind, former, value) == both


def test_merging_keeps_what_one_side_has_alone() -> None:
    former, present = {"a": Stat(SUM, 1), "b": Stat(LAST, "x")}, {"b": Stat(LAST, "y"), "c": Stat(MAX, 2)}
    assert merged(former, present) == {"a": Stat(SUM, 1), "b": Stat(LAST, "y"), "c": Stat(MAX, 2)}
    assert merged(former, present, keeps_last=True)["b"] == Stat(LAST, "x")
    assert merged({}, present) == present


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, TIME])
def test_the_order_of_workers_does_not_matter(kind: StatKind) -> None:
    one, two, three = ({"n": Stat(kind, value)} for value in (3, 1, 2))
    assert merged(merged(one, two), three) == merged(one, merged(three, two))


def test_a_kind_that_changes_is_the_later_one() -> None:
    assert merged({"n": Stat(SUM, 3)}, {"n": Stat(LAST, 2)}) == {"n": Stat(LAST, 2)}


def test_rates_follow_from_the_duration_of_all_runs() -> None:
    stats = {"item_scraped_count": 30, "items_per_minute": 1.0, "responses_per_minute": None, "page": 4}
    assert with_durations(stats, 90) == {**stats, "elapsed_time_seconds": 90, "items_per_minute": 20}
    assert with_durations({"items_per_minute": 2.0, "item_scraped_count": 1}, 0)["items_per_minute"] == 2.0


def test_of_too_many_stats_the_largest_group_loses_its_last_ones() -> None:
    stats: dict[str, Any] = {f"domains/{number:03}": 1 for number in range(100)} | {"item_scraped_count": 5}
    sizes = sizes_of(stats)
    left_out = leave_out(stats, sizes, 1000)
    assert left_out == 101 - len(stats)
    assert sum(sizes.values()) <= 1000
    assert stats["item_scraped_count"] == 5
    assert list(stats)[:-1] == [f"domains/{number:03}" for number in range(len(stats) - 1)]
    assert LEFT_OUT not in stats
    assert leave_out(stats, sizes_of(stats), 0) == len(sizes)
    assert stats == {}


def test_a_stat_is_a_pair_on_the_wire() -> None:
    stat = Stat(SUM, {"a": [1]})
    assert msgspec.json.encode(stat) == b'["sum",{"a":[1]}]'
    assert msgspec.json.decode(b'["sum",{"a":[1]}]', type=Stat) == stat

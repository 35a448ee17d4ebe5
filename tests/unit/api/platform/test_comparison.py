"""Comparison of jobs, outcomes, and common schedules: pure rules."""

from __future__ import annotations

import random
import re
import tracemalloc
from datetime import datetime, timezone

import msgspec
import pytest

from scrapy_ext.api.platform.common_schedules import COMMON, crons_of, next_times
from scrapy_ext.api.platform.comparison import (
    ItemIndex,
    changed_fields,
    changes,
    compare_items,
    median,
    suggested_field,
)
from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.jobs import Outcome, outcome_of
from scrapy_ext.api.platform.projects import NAME_PATTERN, name_of_project
from scrapy_ext.api.violations import ContractError


def index(*items: object, field: str = "id", ignored: tuple[str, ...] = ()) -> ItemIndex:
    found = ItemIndex(field, ignored)
    for number, item in enumerate(items):
        found.add(number, msgspec.json.encode(item))
    return found


def test_items_are_new_gone_changed_or_the_same() -> None:
    before = index({"id": 1, "a": 1}, {"id": 2, "a": 1}, {"id": 3, "a": 1}, {"a": 9}, {"id": None})
    after = index({"id": 4}, {"a": 2, "id": 2}, {"a": 1, "id": 3, "_type": "x"}, {"id": 3})
    found = compare_items(before, after)
    assert (found.new, found.gone, found.changed, found.same) == ([0], [0], [(1, 1)], 1)
    assert (before.without, after.repeated) == (2, 1)


def test_a_text_and_a_number_are_different_values() -> None:
    assert compare_items(index({"id": 1}), index({"id": "1"})).new == [0]


def test_fields_may_be_left_out_of_a_comparison() -> None:
    before = index({"id": 1, "seen": 1, "a": 1}, ignored=("seen",))
    after = index({"id": 1, "seen": 2, "a": 1}, ignored=("seen",))
    assert compare_items(before, after).same == 1
    assert changed_fields({"seen": 1, "a": 1, "_x": 1}, {"seen": 2, "a": 2}, ("seen",)) == changes({"a": 1}, {"a": 2})


def test_fields_that_differ_in_every_pair_are_left_out_and_named() -> None:
    def items(run: int) -> list[dict[str, object]]:
        return [{"id": n, "at": f"{run}{n}", "price": run if n == 3 else 0, f"only_{run}": 1} for n in range(6)]

    found = compare_items(index(*items(1)), index(*items(2)))
    assert (found.aside, found.same) == (("at",), 0), "a field that one job does not have is a change"
    same = [{**item, "only_1": 1, "only_2": 1} for item in items(1)], [{**item, "only_1": 1} for item in items(2)]
    found = compare_items(index(*same[0]), index(*same[1]))
    assert (found.aside, found.changed, found.same) == (("at",), [(3, 3)], 5)
    assert len(compare_items(index(*same[0]), index(*same[1]), every_field=True).changed) == 6


def test_fields_of_few_pairs_are_not_left_out() -> None:
    found = compare_items(index({"id": 1, "a": 1}), index({"id": 1, "a": 2}))
    assert (found.aside, found.changed) == ((), [(0, 0)])


def test_items_with_fields_in_any_order_take_no_more_memory_than_others() -> None:
    chance, names = random.Random(3), [f"field{n}" for n in range(40)]
    jobs = []
    for _ in range(2):
        items = [{"id": n} | dict.fromkeys(chance.sample(names, 40), chance.random()) for n in range(3000)]
        jobs.append([msgspec.json.encode(item | {chance.choice(names): n}) for n, item in enumerate(items)])
    tracemalloc.start()
    before, after = ItemIndex("id"), ItemIndex("id")
    for found, lines in zip((before, after), jobs, strict=True):
        for number, line in enumerate(lines):
            found.add(number, line)
    indexed = tracemalloc.get_traced_memory()[0]
    compared = compare_items(before, after)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a hash of eight bytes for each field; and what the comparison keeps of a pair
    assert indexed < 6000 * (40 * 8 * 1.6 + 250)
    assert peak - indexed < 3000 * 600
    assert len(compared.changed) + compared.same == 3000


def test_the_fields_of_a_changed_item_are_named_with_their_difference() -> None:
    found = {change.name: change for change in changes({"a": 1, "b": True, "c": "x"}, {"a": 3, "b": False, "d": 2})}
    assert {name: change.difference for name, change in found.items()} == {"a": 2, "b": None, "c": None, "d": 2}
    assert not changes({"a": 1}, {"a": True})[0].is_same


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({"name": 10, "url": 10, "price": 10}, {"name": 10, "url": 10}, "url"),
        ({"name": 10, "id": 2}, {"name": 10, "id": 10}, "name"),
        ({"color": 10, "size": 3}, {"color": 10, "size": 3}, "color"),
        ({"a": 1}, {"b": 1}, None),
        ({}, {}, None),
    ],
)
def test_the_field_that_identifies_items_is_suggested(
    before: dict[str, int], after: dict[str, int], field: str
) -> None:
    assert suggested_field(before, after) == field


def test_the_median_of_an_even_number_of_values_is_between_two() -> None:
    assert [median([]), median([3, 1, 2]), median([1, 2, 3, 10])] == [None, 2, 2.5]


def test_every_close_reason_has_an_outcome() -> None:
    assert outcome_of(None) is outcome_of("finished") is Outcome.OK
    assert outcome_of("shutdown") is Outcome.CANCELLED
    assert outcome_of("closespider_errorcount") is outcome_of("killed by oom") is Outcome.LIMIT
    assert outcome_of("killed by SIGSEGV") is outcome_of("platform_unavailable") is Outcome.FAILED
    assert outcome_of("no more pages") is Outcome.OTHER


def test_common_schedules_are_made_of_valid_expressions() -> None:
    for each in COMMON:
        crons = crons_of(each.name, "23:59")
        assert len(set(crons)) == len(crons)
        assert all(Cron.parse(cron) for cron in crons)
    with pytest.raises(ContractError, match="time of the day"):
        crons_of("daily", "24:00")
    with pytest.raises(ContractError, match="must be one of"):
        crons_of("never", "00:00")


def test_the_next_times_of_several_expressions_are_in_order_and_none_comes_twice() -> None:
    after = datetime(2026, 11, 27, 12, 0, tzinfo=timezone.utc)  # a Friday
    times = next_times([*crons_of("weekdays", "04:30"), "30 4 * * 1"], after, 5)
    assert [f"{time:%a %d}" for time in times] == ["Mon 30", "Tue 01", "Wed 02", "Thu 03", "Fri 04"]


def test_the_schema_of_a_projects_name_and_its_check_agree() -> None:
    good = ("books", "a b", "1a", "\u00fc", "x" * 80, "1\u00b2", "\u4e66")
    bad = ("12", "1 2", "a/b", "", " ", " a", "a ", "a\nb", "a\u202eb", "a\n", "\x85a")
    for name in good:
        assert re.search(NAME_PATTERN, name), name
        assert name_of_project(name) == name
    for name in bad:
        assert not re.search(NAME_PATTERN.replace("$", r"\Z"), name), name
        with pytest.raises(ContractError):
            name_of_project(name)

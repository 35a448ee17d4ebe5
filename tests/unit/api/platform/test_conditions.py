"""Conditions whose number of arguments and records are made to take long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform.conditions import MAX_SEARCHED, condition_of, filter_of
from scrapy_ext.api.violations import ContractError


def chooses(item: dict[str, Any], *conditions: list[Any]) -> bool:
    chosen = filter_of([condition_of(condition, "filter") for condition in conditions])
    assert chosen is not None
    return chosen.chooses(json.dumps(item).encode())


class Counted(int):
    """A number that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


@pytest.mark.parametrize("operator", ["haselement", "hasnotelement", "contains"])
def test_an_element_is_not_compared_with_each_argument(operator: str) -> None:
    Counted.compared = 0
    arguments = [Counted(number) for number in range(1000)]
    found = chooses({"a": list(range(5000, 6000))}, ["a", operator, arguments])
    assert found is (operator == "hasnotelement")
    assert Counted.compared <= 10_000


@pytest.mark.parametrize(
    ("element", "argument", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        (None, False, False),
        ("1", 1, False),
        ([1, "a"], [1.0, "a"], True),
        ([1], [1, 1], False),
        ([], {}, False),
        ({"a": [1], "b": {}}, {"b": {}, "a": [1]}, True),
        ({"a": 1}, [["a", 1]], False),
        ({"a": 1}, {"a": 2}, False),
        (10**30, 10**30, True),
    ],
)
def test_elements_that_are_the_same(element: object, argument: object, same: bool) -> None:
    assert chooses({"a": ["x", element]}, ["a", "haselement", [argument, "y"]]) is same


@pytest.mark.parametrize("operator", ["contains", "icontains", "hastext", "hasnottext"])
def test_too_many_texts_to_search_for_are_refused(operator: str) -> None:
    half = [f"{number}" for number in range(MAX_SEARCHED // 2)]
    assert chooses({"a": "x"}, ["a", operator, half], ["a", operator, half]) is (operator == "hasnottext")
    with pytest.raises(ContractError, match="may search for 1000 texts at most"):
        chooses({"a": "x"}, ["a", operator, half], ["a", operator, half], ["a", operator, ["x"]])


def test_many_values_that_are_compared_are_not_texts_to_search_for() -> None:
    many = list(range(1000))
    assert chooses({"a": 5}, *[["a", "=", many]] * 10)


@pytest.mark.parametrize(
    ("value", "argument", "found"),
    [
        (["ab", "cd"], "bc", False),
        (["ab", "cd"], "CD", True),
        (["ab", 5, None], "ab", True),
        ([], "", False),
        ([""], "", True),
        ("", "", True),
        ("ΑΣ", "ας", True),
        ({"x": ["ab"], "y": "cd"}, "abcd", False),
    ],
)
def test_a_text_is_searched_in_each_value_by_itself(value: object, argument: str, found: bool) -> None:
    assert chooses({"a": value}, ["*", "hastext", [argument]]) is found
    if not isinstance(value, dict):
        assert chooses({"a": value}, ["a", "icontains", [argument]]) is found

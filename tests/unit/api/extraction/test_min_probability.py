"""Items and entries of a lower probability than ``minProbability`` (extraction-api.rst, Probability)."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.extraction import check, parse
from scrapy_ext.api.extraction.min_probability import without_doubtful
from scrapy_ext.api.extraction.records import LeftOut

URL = "https://example.com/"


def entry(name: str, sure: float | None) -> dict[str, Any]:
    return {"name": name} if sure is None else {"name": name, "metadata": {"probability": sure}}


def faults(**fields: Any) -> list[str]:
    return [str(fault) for fault in check({"url": URL, **fields})]


def test_an_item_of_a_lower_probability_is_left_out() -> None:
    assert without_doubtful("product", entry("Lamp", 0.4), 0.5) == (None, {"product": LeftOut(1, 0.4)})


@pytest.mark.parametrize("sure", [0.5, 0.9, 1, None])
def test_one_of_the_same_or_a_higher_one_stays_and_so_does_one_without(sure: float | None) -> None:
    item = entry("Lamp", sure)
    assert without_doubtful("product", item, 0.5) == (item, {})


def test_entries_are_left_out_by_their_own_probabilities() -> None:
    items = [entry("a", 0.1), entry("b", 0.7), entry("c", 0.3), entry("d", None)]
    found = without_doubtful("articleNavigation", {"url": URL, "items": items, "subCategories": [entry("e", 0.2)]}, 0.5)
    assert found.item == {"url": URL, "items": [entry("b", 0.7), entry("d", None)]}
    assert found.left_out == {"items": LeftOut(2, 0.3), "subCategories": LeftOut(1, 0.2)}
    assert len(items) == 4


def test_values_of_other_forms_in_an_answer_stay() -> None:
    other = [{"metadata": {"probability": "low"}}, {"metadata": {"probability": 10**400}}, {"metadata": []}, 5]
    item = {"products": other, "items": {"metadata": None}}
    assert without_doubtful("productList", item, 1.0) == (item, {})


@pytest.mark.parametrize("least", [0, 0.0, 0.5, 1, 1.0])
def test_it_is_a_number_from_0_to_1(least: float) -> None:
    assert faults(product=True, minProbability=least) == []
    assert parse(f'{{"url": "{URL}", "product": true, "minProbability": {least}}}'.encode()).min_probability == least


@pytest.mark.parametrize(
    ("least", "rule"),
    [
        (-0.1, "must be 0 to 1, got -0.1"),
        (90, "must be 0 to 1, got 90"),
        pytest.param(10**400, "must be 0 to 1, got 10000000", id="long"),
        (float("nan"), "must be 0 to 1, got nan"),
        ("0.5", "must be a number, got a string"),
        (True, "must be a number, got a boolean"),
        (None, "must not be null"),
    ],
)
def test_other_values_are_refused_with_the_rule_and_a_remedy(least: object, rule: str) -> None:
    (fault,) = faults(product=True, minProbability=least)
    assert fault.startswith(f"minProbability: {rule}")
    assert len(fault) < 250


def test_the_remedy_of_a_request_without_a_kind_names_none_that_is_refused_as_well() -> None:
    (fault,) = faults(browserHtml=True, minProbability=0.5)
    named = fault.partition("Request one of ")[2].rstrip(".").split(", ")
    assert [kind for kind in named if faults(**{kind: True}, minProbability=0.5)] == []


def test_it_needs_a_kind_that_has_probabilities() -> None:
    assert "minProbability: needs a kind of automatic extraction" in faults(browserHtml=True, minProbability=0.5)[0]
    assert "minProbability: cannot be combined with serp" in faults(serp=True, minProbability=0.5)[0]

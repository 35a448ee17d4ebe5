"""The form of ``extractRules``: each fault names the field, the rule and the remedy."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scrapy_ext.api.extraction import check
from scrapy_ext.api.extraction.extract_rules import MAX_SEARCHED, fault_of_pattern

HTTP = {"url": "https://shop.example/", "product": True, "extractFrom": "httpResponseBody"}


@pytest.mark.parametrize(
    "rule",
    [
        {"css": "h1.title"},
        {"css": ".gallery img", "attribute": "src", "all": True},
        {"xpath": "//tr[th='Brand']/td", "regex": "(.+)"},
        {"value": "x"},
        {"remove": True},
        {"example": "x"},
        {"css": "h1", "remove": False},
    ],
)
def test_rules_are_accepted(rule: dict[str, Any]) -> None:
    assert not check({**HTTP, "extractRules": {"description": rule}})


@pytest.mark.parametrize(
    ("rule", "place", "message"),
    [
        ({}, "", "must have exactly one of css, xpath"),
        ({"css": "h1", "value": "x"}, "", "must have exactly one of css, xpath"),
        ({"remove": False}, "", "must have exactly one of css, xpath"),
        ({"css": ""}, ".css", "must be a string of 1 to 1000 characters"),
        ({"css": 1}, ".css", "must be a string"),
        ({"value": "x" * 1001}, ".value", "must be a string of 1 to 1000"),
        ({"css": "h1", "type": "price"}, ".type", "is not a part of a rule"),
        ({"css": "h1", "all": 1}, ".all", "must be true or false"),
        ({"value": "x", "regex": "a"}, ".regex", "needs css or xpath, not value"),
        ({"css": "h1", "attribute": "a b"}, ".attribute", "must be the name of an attribute"),
        ({"css": "h1", "regex": "("}, ".regex", "is no regular expression"),
        ({"xpath": "//a["}, ".xpath", "ends too early"),
    ],
)
def test_faults_name_the_place(rule: dict[str, Any], place: str, message: str) -> None:
    (fault,) = check({**HTTP, "extractRules": {"name": rule}})
    assert fault.field == f"extractRules.name{place}"
    assert message in fault.rule
    assert fault.remedy


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(.+)", r"Brand:\s*(.+)", r"[^)*+]+", r"\d{1,3}(?:,\d+)?", r"(?P<code>\w+)", r"a|b|c", r"\(\?x"),
        *(r"\d{4}-\d{2}-\d{2}", r"\d+(?:[.,]\d+)?\s?(?:EUR|USD)", r"\\1", "[(?=]x", r"\\(a)"),
    ],
)
def test_patterns_are_accepted(pattern: str) -> None:
    assert fault_of_pattern(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*$",
        "(?:a*){5}",
        "a?" * 9 + "a" * 9,
        "(a|b)" * 9,
        ".*.*.*x",
        "a{1,9}b{2,}c{,3}",
        "a{00000000000000,09999}" * 3,
        "a+?.+?[ab]+?(?:b|$b)",
        r"\\(?=a)",
        "(?<!a)b",
        "(?P<n>a)(?P=n)",
        r"(a)\1",
        "(?=a)",
        "(?i)a",
        "a" * 201,
    ],
)
def test_patterns_without_a_bound_are_refused(pattern: str) -> None:
    assert fault_of_pattern(pattern) is not None


@pytest.mark.parametrize("pattern", [".*.*x", "(?:a|aa)(?:a|aa)(?:a|aa)[ab]*[ab]*x"])
def test_the_slowest_accepted_patterns_end(pattern: str) -> None:
    """Without a bound this would take longer than the test may."""
    assert fault_of_pattern(pattern) is None
    assert re.search(pattern, "a" * MAX_SEARCHED) is None


def test_selectors_and_patterns_have_a_length_in_all() -> None:
    rule = {"css": "a " * 240 + ".x"}
    rules = {f"field{number}": rule for number in range(11)}
    (fault,) = check({**HTTP, "extractRules": rules})
    assert (fault.field, fault.status) == ("extractRules", 400)
    assert fault.rule == "must have at most 5000 characters of selectors and patterns, got 5302"


def test_nothing_is_parsed_for_an_unknown_field() -> None:
    (fault,) = check({**HTTP, "extractRules": {"naem": {"css": "a{"}}})
    assert (fault.field, fault.status) == ("extractRules.naem", 422)

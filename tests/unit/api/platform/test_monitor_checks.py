"""Checks of monitors: their text, and what they make of it."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.monitor_checks import Check, parse_check
from scrapy_ext.api.violations import ContractError

CANONICAL = [
    ("items>=100", "items >= 100"),
    ("  items  >=  100.50 ", "items >= 100.5"),
    ("items >= 0.8 x median", "items >= 0.8 x median"),
    ("items >= 0.8× median of 10 runs after 3", "items >= 0.8 x median"),
    ("items >= median", "items >= median"),
    ("duration <= 2*median of 5", "duration <= 2 x median of 5 runs"),
    ("requests <= median of 2", "requests <= median of 2 runs"),
    ("requests <= median of 5 runs after 1 run", "requests <= median of 5 runs after 1 run"),
    ("duration <= 2h", "duration <= 7200s"),
    ("duration <= 90", "duration <= 90s"),
    ("coverage price >= 95%", "coverage price >= 95%"),
    ("coverage price >= 0.999", "coverage price >= 99.9%"),
    ('coverage "list price" >= 1', 'coverage "list price" >= 100%'),
    ('coverage "a\\"b>=c" >= 0%', 'coverage "a\\"b>=c" >= 0%'),
    ("share 5xx+404 <= 0.5%", "share 5xx+404 <= 0.5%"),
    ("status 404 <= 3", "status 404 <= 3"),
    ("stat downloader/exception_count<=5", "stat downloader/exception_count <= 5"),
    ("stat balance >= -1.5", "stat balance >= -1.5"),
    ("outcome == finished", "outcome == finished"),
    ('outcome == "closespider timeout"', 'outcome == "closespider timeout"'),
    ("warnings == 0", "warnings == 0"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_a_check_has_one_canonical_text_that_means_the_same(text: str, canonical: str) -> None:
    check = parse_check(text)
    assert str(check) == canonical
    assert parse_check(canonical) == check


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be text of 1 to 500"),
        ("x" * 501, "must be text of 1 to 500"),
        ("items", "must have >=, <=, =="),
        ("items > 5", "must have >=, <=, =="),
        ("items >= ", "has no limit"),
        ("items >= many", "has no limit"),
        ("items >= 1e9", "has no limit"),
        ("items >= 5 5", "has no limit"),
        ("items >= -5", "with 0 or more"),
        ("items >= 5s", "without s"),
        ("pages >= 5", "has no measure 'pages'"),
        ("5 >= items", "has no measure"),
        ("coverage >= 95%", "needs a name: coverage FIELD"),
        ('coverage "price >= 95%', "quotes are not closed"),
        ("coverage price >= 101%", "0% to 100%"),
        ("coverage price >= 95", "0% to 100%"),
        ("status ok <= 5", "are no status codes"),
        ("status 40x <= 5", "are no status codes"),
        ("outcome >= finished", "only compare the outcome by =="),
        ("outcome == a b", "one close reason"),
        ("items >= 2 x", "has no limit"),
        ("items >= median of 101", "1 to 100 runs"),
        ("items >= median after 11", "after 1 to 10 runs"),
        ("items >= -1 x median", "a number of 0 or more"),
    ],
)
def test_a_wrong_check_is_refused_with_the_rule(text: str, rule: str) -> None:
    with pytest.raises(ContractError, match=rule) as raised:
        parse_check(text, "checks[3]")
    assert raised.value.violations[0].field == "checks[3]"


@pytest.mark.parametrize(
    ("operator", "value", "limit", "holds"),
    [
        (">=", 5.0, 5.0, True),
        (">=", 0.1 + 0.2, 0.3, True),
        (">=", 0.3, 0.1 + 0.2, True),
        (">=", 4.9, 5.0, False),
        ("<=", 5.1, 5.0, False),
        ("==", 0.0, 0.0, True),
        ("==", 1.0, 0.0, False),
        ("==", "finished", "finished", True),
        ("==", "failed", "finished", False),
    ],
)
def test_a_value_is_compared_with_the_limit(operator: str, value: float | str, limit: float | str, holds: bool) -> None:
    assert Check("items", operator).holds(value, limit) is holds

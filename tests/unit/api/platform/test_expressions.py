"""Time of slow searches is bounded for a read, and quick ones are free."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform import expressions
from scrapy_ext.api.platform.conditions import condition_of, filter_of
from scrapy_ext.api.platform.expressions import SlowTime
from scrapy_ext.api.violations import ContractError


def test_slow_searches_of_a_read_end_it_and_quick_ones_do_not() -> None:
    spent = SlowTime()
    for _ in range(100_000):
        spent.add(0.0009)
    assert not spent.is_any
    for _ in range(10):
        spent.add(0.5)
    assert spent.is_any
    with pytest.raises(ContractError, match="has spent 5 s in slow expressions"):
        spent.add(0.5)


def test_the_expressions_of_a_read_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_SLOW", -1.0)
    monkeypatch.setattr(expressions, "SLOW_SECONDS", 0.0)
    conditions = filter_of([condition_of(["a", "matches", ["b", "c"]], "filter")])
    assert conditions is not None
    with pytest.raises(ContractError, match="slow expressions"):
        conditions.chooses(b'{"a":"x"}')


@pytest.mark.parametrize("shape", [[10], [4, 6]])
def test_ten_expressions_are_allowed_and_one_more_is_not(shape: list[int]) -> None:
    some = [condition_of(["a", "matches", ["b"] * number], "filter") for number in shape]
    assert filter_of(some) is not None
    with pytest.raises(ContractError, match="10 regular expressions at most"):
        filter_of([*some, condition_of(["a", "matches", ["b"]], "filter")])
    with pytest.raises(ContractError, match="at most 10 expressions"):
        condition_of(["a", "matches", ["b"] * 11], "filter")

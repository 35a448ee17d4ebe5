"""Limits of a crawl by several workers."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ext.api.platform.workers import Totals
from scrapy_ext.crawl.session.close_limits import CloseLimits, take_over


def limits(**settings: Any) -> CloseLimits:
    given = Settings({f"CLOSESPIDER_{name}": value for name, value in settings.items()})
    take_over(given)
    assert not given.getint("CLOSESPIDER_TIMEOUT_NO_ITEM")
    assert not given.getint("CLOSESPIDER_PAGECOUNT_NO_ITEM")
    return CloseLimits(given)


@pytest.mark.parametrize(
    ("setting", "below", "reached"),
    [
        ("ITEMCOUNT", Totals(items=9), Totals(items=10)),
        ("PAGECOUNT", Totals(responses=9), Totals(responses=12)),
        ("ERRORCOUNT", Totals(errors=9), Totals(errors=10)),
        ("TIMEOUT", Totals(seconds=9.9), Totals(seconds=10.0)),
        ("TIMEOUT_NO_ITEM", Totals(seconds=99.0, item_seconds=9.0), Totals(item_seconds=10.0)),
        ("PAGECOUNT_NO_ITEM", Totals(items=1, responses=50), Totals(items=1, responses=60)),
    ],
)
def test_a_limit_counts_all_workers(setting: str, below: Totals, reached: Totals) -> None:
    both = limits(**{setting: 10})
    assert both.reason(below) is None
    assert both.reason(reached) == f"closespider_{setting.lower()}"
    assert limits().reason(reached) is None

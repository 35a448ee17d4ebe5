"""Existing spiders need no change: what they do with plain Scrapy, they do with the add-on.

Each spider runs by plain Scrapy and with the add-on in three wirings, and everything that a user can see is compared:
items, feeds, requests that the site gets, signals, stats, log, close reason. What differs all the same is in
``deviations.toml``, with the reason and the page of the documentation that says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.parity.comparison import Comparison
from tests.acceptance.parity.deviations import Deviation, deviations, out_of_date, unexplained
from tests.acceptance.parity.spiders import SPIDERS
from tests.acceptance.parity.wirings import PLAIN, WIRINGS

ROOT = Path(__file__).parents[3]

#: Those that run each time: where data would be lost first.
SHORT = {
    *("callback-raises", "cookies", "crawl-spider", "downloader-middleware", "errback-raises", "failures"),
    *("life-of-a-request", "methods", "no-filter", "pipelines", "redirects", "retries", "start-items"),
}
#: Those that run with ``--long``.
LONG = {
    *("async-callbacks", "back-to-page-one", "depth-first", "dont-redirect", "duplicate-start-urls", "feeds"),
    *("fragments", "headers-none", "item-classes", "lambdas", "login", "on-idle", "own-filter", "same-object"),
    *("shared-by-all", "spider-middleware", "statuses"),
}
OTHERS = [wiring for wiring in WIRINGS if wiring != PLAIN]


def _cases() -> Iterator[object]:
    for spider in SPIDERS:
        marks = () if spider in SHORT else pytest.mark.long if spider in LONG else pytest.mark.full
        yield pytest.param(spider, marks=marks, id=spider)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("parity", OTHERS)
@pytest.mark.parametrize("spider", _cases())
def test_a_spider_does_what_it_does_with_plain_scrapy(spider: str, parity: str, comparison: Comparison) -> None:
    found = comparison.differences(spider, parity)
    new = {field: found[field] for field in unexplained(spider, parity, found)}
    assert not new, "\n".join(
        f"{field}\n    Scrapy:  {_short(plain)}\n    add-on:  {_short(ours)}" for field, (plain, ours) in new.items()
    )
    assert not out_of_date(spider, parity, found), "remove from deviations.toml what no longer deviates"


@pytest.mark.parametrize("deviation", deviations(), ids=lambda deviation: deviation.reason[:60])
def test_a_deviation_is_documented(deviation: Deviation) -> None:
    page = " ".join((ROOT / deviation.docs).read_text("utf-8").split())
    assert deviation.says in page
    assert set(deviation.spiders) <= set(SPIDERS)
    assert set(deviation.wirings) <= set(OTHERS)


def _short(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 1500 else text[:1500] + "…"

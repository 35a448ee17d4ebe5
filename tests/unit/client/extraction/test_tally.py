from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest

from scrapy_ext.client.extraction.tally import DOMAINS, LONGEST, SHORTEST, SHOWN, STATS, Tally

SHOP, BOOKS = "shop.example", "books.example"
BAN = "/download/temporary-error"


@pytest.fixture
def tally() -> Tally:
    return Tally()


def fail(tally: Tally, domain: str = SHOP, kind: str = "http", reason: str = BAN, **given) -> None:
    given = {"seconds": 1.0, "retried": False, "ambiguous": False, "cost": 0.0, **given}
    tally.failed(domain, kind, given.pop("seconds"), reason, **given)


def pattern(name: str) -> re.Pattern[str]:
    return re.compile("".join("[^/]+(/.+)?" if part[:1] == "<" else re.escape(part) for part in parts(name)))


def parts(name: str) -> Iterable[str]:
    return re.split(r"(<\w+>)", name)


# ── stats ──


def test_without_requests_there_are_no_stats_and_no_table(tally):
    tally.throttled(SHOP, 0.0)
    assert tally.stats() == {}
    assert tally.table() == ""


def test_attempts_results_errors_and_retries_are_counted(tally):
    tally.answered(SHOP, "http", 1.0, 0.0)
    fail(tally, retried=True)
    fail(tally, retried=True, reason="/limits/over-user-limit")
    fail(tally, reason="UnreachableServiceError", ambiguous=True)
    stats = tally.stats(domains=False)
    assert {name: value for name, value in stats.items() if "latency" not in name and "seconds" not in name} == {
        "extract_api/attempts": 4,
        "extract_api/success": 1,
        "extract_api/retries": 2,
        "extract_api/retries/download/temporary-error": 1,
        "extract_api/retries/limits/over-user-limit": 1,
        "extract_api/errors/download/temporary-error": 1,
        "extract_api/errors/limits/over-user-limit": 1,
        "extract_api/errors/UnreachableServiceError": 1,
        "extract_api/ambiguous": 1,
        "extract_api/kinds/http/attempts": 4,
    }


def test_cost_is_added_up_by_kind_and_domain(tally):
    tally.answered(SHOP, "http", 1.0, 0.1)
    tally.answered(SHOP, "browser", 1.0, 1.0)
    tally.answered(BOOKS, "browser", 1.0, 1.0)
    fail(tally, BOOKS, "http", ambiguous=True, cost=0.2)
    costs = {name: value for name, value in tally.stats().items() if name.endswith("cost")}
    assert costs == {
        "extract_api/cost": 2.3,
        "extract_api/kinds/http/cost": 0.3,
        "extract_api/kinds/browser/cost": 2.0,
        "extract_api/domains/shop.example/cost": 1.1,
        "extract_api/domains/books.example/cost": 1.2,
    }


def test_seconds_are_added_up(tally):
    tally.throttled(SHOP, 1.5)
    tally.throttled(BOOKS, 2.0)
    fail(tally, seconds=0.25)
    stats = tally.stats()
    assert stats["extract_api/throttled_seconds"] == 3.5
    assert stats["extract_api/domains/shop.example/throttled_seconds"] == 1.5
    assert stats["extract_api/failed_seconds"] == 0.25


def test_escalations_are_counted_by_reason(tally):
    for reason in ("selector", "selector", "status"):
        tally.escalated(reason)
    assert tally.stats() == {
        "extract_api/escalations": 3,
        "extract_api/escalations/selector": 2,
        "extract_api/escalations/status": 1,
    }


def test_every_stat_is_in_the_table_of_names(tally):
    tally.answered(SHOP, "http", 1.0, 1.0)
    fail(tally, retried=True, ambiguous=True)
    tally.throttled(SHOP, 1.0)
    tally.escalated("selector")
    given = set(tally.stats())
    assert {name for name in given if not any(pattern(each).fullmatch(name) for each in STATS)} == set()
    assert {each for each in STATS if not any(pattern(each).fullmatch(name) for name in given)} == set()


# ── latency ──


@pytest.mark.parametrize("mean", [-4, -0.5, 4])
def test_percentiles_are_right_within_two_percent(tally, mean):
    dice = random.Random(1)
    seconds = sorted(dice.lognormvariate(mean, 1) for _ in range(5000))
    for each in seconds:
        tally.answered(SHOP, "http", each, 0.0)
    stats = tally.stats()
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        exact = seconds[round(share * len(seconds)) - 1]
        # 2 % by the histogram, and half of the third digit.
        assert stats[f"extract_api/latency/{name}"] == pytest.approx(exact, rel=0.025)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, SHORTEST, LONGEST, 1e9, float("inf"), float("nan")])
def test_any_latency_can_be_counted(tally, seconds):
    tally.answered(SHOP, "http", seconds, 0.0)
    assert tally.stats()["extract_api/latency/p99"] == pytest.approx(
        SHORTEST if seconds <= SHORTEST else LONGEST, rel=0.03
    )


def test_latency_is_that_of_results(tally):
    tally.answered(SHOP, "http", 2.0, 0.0)
    for _ in range(99):
        fail(tally, seconds=0.002)
    assert tally.stats()["extract_api/latency/p50"] == pytest.approx(2.0, rel=0.03)


# ── many domains ──


def test_the_largest_domains_have_stats_of_their_own_and_the_others_are_one(tally):
    for number in range(50):
        for _ in range(number + 1):
            tally.answered(f"{number}.example", "http", 1.0, 0.5)
        fail(tally, f"{number}.example", "browser", cost=0.5)
        tally.throttled(f"{number}.example", 1.0)
    stats = tally.stats()
    attempts = {
        name.split("/")[2]: value
        for name, value in stats.items()
        if name.startswith("extract_api/domains/") and name.endswith("/attempts")
    }
    own = {f"{number}.example": number + 2 for number in range(50 - SHOWN, 50)}
    assert attempts == {**own, "others": sum(range(2, 52)) - sum(own.values())}
    assert stats["extract_api/domains/others/errors"] == 30
    assert stats["extract_api/domains/others/throttled_seconds"] == 30
    assert stats["extract_api/domains/others/cost"] == attempts["others"] / 2
    assert not [name for name in tally.stats(domains=False) if "domains" in name]


def test_any_number_of_domains_takes_a_bounded_number_of_rows(tally):
    for number in range(DOMAINS + 500):
        tally.answered(f"{number}.example", "http", 1.0, 0.0)
        tally.throttled(f"{number}.example", 1.0)
    for _ in range(3):
        tally.answered("late.example", "browser", 1.0, 0.0)
        tally.answered("0.example", "http", 1.0, 0.0)
    assert len(tally._domains) == DOMAINS + 1
    stats = tally.stats()
    assert stats["extract_api/attempts"] == DOMAINS + 506
    assert stats["extract_api/domains/0.example/attempts"] == 4
    assert stats["extract_api/domains/others/attempts"] == DOMAINS + 506 - (SHOWN - 1) - 4
    assert stats["extract_api/kinds/browser/attempts"] == 3


# ── the table for the log ──


def test_the_table_has_domains_and_kinds_with_the_largest_first(tally):
    for _ in range(3):
        tally.answered(SHOP, "http", 0.5, 0.001)
    tally.answered(SHOP, "browser", 120.0, 0.01)
    fail(tally, retried=True)
    tally.throttled(SHOP, 12.0)
    tally.answered(BOOKS, "http", 20.0, 0.001)
    fail(tally, BOOKS, "browser")
    assert tally.table() == "\n".join(
        (
            "domain         kind     requests  retries  errors  throttled     p50     p95    cost",
            "shop.example   browser         1        0       0     12.0 s   121 s   121 s  0.0100",
            "               http            4        1       1             0.50 s  0.50 s  0.0030",
            "books.example  browser         1        0       1          -       -       -  0.0000",
            "               http            1        0       0             20.0 s  20.0 s  0.0010",
            "total                          7        1       2     12.0 s  0.50 s   121 s  0.0140",
        )
    )


def test_without_prices_the_table_has_no_costs_and_one_line_needs_no_total(tally):
    tally.answered(SHOP, "http", 0.5, 0.0)
    assert tally.table() == "\n".join(
        (
            "domain        kind  requests  retries  errors  throttled     p50     p95",
            "shop.example  http         1        0       0          -  0.50 s  0.50 s",
        )
    )


def test_the_table_is_as_wide_as_it_may_be(tally):
    name = f"{'long-' * 30}.example"
    tally.answered(name, "browser", 0.5, 123.0)
    tally.answered(SHOP, "http", 0.5, 0.0)
    assert {len(line) for line in tally.table(100).splitlines()} == {100}
    assert {len(line) for line in tally.table(90).splitlines()} == {90}
    assert f"\n{name[:20]}" in tally.table(100)
    assert f"\n{name}  browser" in tally.table(1000)


def test_the_table_of_many_domains_is_short(tally):
    for number in range(1000):
        tally.answered(f"{number}.example", "http", 1.0, 0.0)
    lines = tally.table().splitlines()
    assert len(lines) == SHOWN + 3
    assert lines[-2].split() == ["others", "http", "980", "0", "0", "-", "1.01", "s", "1.01", "s"]
    assert lines[-1].split()[:2] == ["total", "1000"]

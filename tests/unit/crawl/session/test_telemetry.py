"""Stats of a crawl as metrics."""

from datetime import datetime, timezone

from scrapy_ext.crawl.session.telemetry import families


def test_numbers_are_exported_and_nothing_else() -> None:
    stats = {
        "extract_api/attempts": 3,
        "elapsed_time_seconds": 1.5,
        "finish_reason": "finished",
        "start_time": datetime.now(timezone.utc),
        "ok": True,
        "rate": float("nan"),
        "extract_api/domains/shop.example/attempts": 3,
        "own stat/ä": 1,
    }
    found = {family.name: family.samples for family in families(stats, {"scrapy.job": "1/2/3"})}
    labels = {"scrapy.job": "1/2/3"}
    assert found == {
        "scrapy.stats.extract_api.attempts": [(labels, 3)],
        "scrapy.stats.elapsed_time_seconds": [(labels, 1.5)],
        "scrapy.stats.own_stat._": [(labels, 1)],
    }


def test_the_number_of_exported_stats_is_bounded() -> None:
    assert len(list(families({f"url/{number}": 1 for number in range(5000)}, {}))) == 1000

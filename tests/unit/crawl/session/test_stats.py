"""Stats of several runs become one, and are exported as metrics."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from scrapy_ext.api.platform.stat_kinds import StatKind
from scrapy_ext.crawl.session.stats import Kinds, families, totals, with_responses
from tests.support.crawlers import get_crawler


def merged(former: dict[str, Any], stored_items: int | None = None) -> dict[str, Any]:
    """Totals with the run of a spider that uses each way of counting."""
    stats: Any = get_crawler().stats
    stats.inc_value("counted", 2)
    kinds = Kinds(stats)
    stats.inc_value("counted", 3)
    stats.set_value("page", 7)
    stats.max_value("most", 4)
    stats.min_value("least", 4)
    stats.set_value("extract_api/attempts", 5)
    stats.set_value("extract_api/latency/p50", 0.5)
    stats.set_value("finish_reason", "finished")
    stats.set_value("start_time", 2000)
    stats.set_value("elapsed_time_seconds", 3.0)
    stats.inc_value("item_scraped_count", 2)
    stats.inc_value("platform/items/count", 2)
    stats.set_value("items_per_minute", 40.0)
    return totals(kinds, former, stats.get_stats(), stored_items=stored_items, seconds=60)


def test_a_collector_of_the_project_may_lack_methods() -> None:
    class Collector:
        def set_value(self, key: str, value: object, spider: object = None) -> None:
            pass

    stats: Any = Collector()
    kinds = Kinds(stats)
    stats.set_value("page", 7)
    assert (kinds.of("page"), kinds.of("counted")) == (StatKind.LAST, StatKind.SUM)


def test_counters_are_added_and_other_stats_keep_what_holds_for_all_runs() -> None:
    both = merged(
        {
            "counted": 10,
            "page": 9,
            "most": 8,
            "least": 8,
            "extract_api/attempts": 1,
            "extract_api/latency/p50": 0.1,
            "start_time": 1000,
            "finish_reason": "shutdown",
            "of the first run": 1,
        }
    )
    assert both["counted"] == 15
    assert (both["page"], both["most"], both["least"]) == (7, 8, 4)
    assert (both["extract_api/attempts"], both["extract_api/latency/p50"]) == (6, 0.5)
    assert (both["start_time"], both["finish_reason"], both["of the first run"]) == (1000, "finished", 1)
    assert both["elapsed_time_seconds"] == 60


def test_items_follow_the_stored_ones() -> None:
    # The first run was killed before it wrote the last five of its nine items to its stats, or scraped two again.
    assert merged({"item_scraped_count": 4, "platform/items/count": 4}, 11)["item_scraped_count"] == 11
    assert merged({"item_scraped_count": 11, "platform/items/count": 11}, 11)["item_scraped_count"] == 11
    # One of the first run was dropped behind the storage.
    assert merged({"item_scraped_count": 8, "platform/items/count": 9}, 11)["item_scraped_count"] == 10
    assert merged({}, 11)["items_per_minute"] == 11
    # The storage had counted one less when the first run was killed.
    assert merged({"item_scraped_count": 9, "platform/items/count": 8}, 11)["item_scraped_count"] == 11
    assert (
        merged({"item_scraped_count": 10, "platform/items/count": 9, "platform/items/refused": 1}, 11)[
            "item_scraped_count"
        ]
        == 12
    )


def test_responses_that_a_killed_run_has_not_counted_are_counted_from_its_records() -> None:
    counted = with_responses({"downloader/response_count": 1}, [{"status": 200}, {"status": 404, "method": "POST"}])
    assert counted["downloader/response_count"] == 3
    assert counted["downloader/response_status_count/404"] == 1
    assert counted["downloader/request_method_count/POST"] == 1


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

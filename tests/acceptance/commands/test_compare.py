"""``scrapy platform compare``: the items of two jobs from the command line."""

from __future__ import annotations

from typing import Any

from scrapy_ext.api.platform import JobKey
from tests.support.terminal_commands import Platform, lines, plain


def with_items(platform: Platform, items: list[dict[str, Any]]) -> JobKey:
    key = platform.job()
    platform.call(lambda client: client.items.write(key, lines(items), 0))
    return key


def test_new_gone_and_changed_items_are_shown(platform: Platform) -> None:
    before = with_items(platform, [{"sku": n, "price": n, "seen": 1} for n in range(4)])
    after = with_items(platform, [{"sku": n, "price": 9 if n == 2 else n, "seen": 2} for n in range(1, 6)])
    found = platform.lines("compare", str(before), str(after), "--without", "seen")
    assert [(row["change"], row["value"], row["item"]) for row in found] == [
        ("changed", 2, f"{after}/1"),
        ("new", 4, f"{after}/3"),
        ("new", 5, f"{after}/4"),
        ("gone", 0, f"{before}/0"),
    ]
    assert found[0]["fields"] == [{"field": "price", "before": 2, "after": 9}]
    assert len(platform.lines("compare", str(before), str(after), "--by", "price", "--count", "1")) == 3
    table = plain(platform.terminal("compare", str(before), str(after), "--without", "seen"))
    assert "items by sku: new: 2, gone: 1, changed: 1, same: 2" in table
    assert "price: 2 → 9" in table
    most = platform.run("compare", str(before), str(after), "--most", "2")
    assert f"Only the first 2 items of job {before} were compared" in most.stderr


def test_jobs_without_a_common_field_are_reported(platform: Platform) -> None:
    before, after = with_items(platform, [{"a": 1}]), with_items(platform, [{"b": 1}])
    assert "have no field in common" in platform.refused("compare", str(before), str(after))

"""Whatever a spider puts into its stats, they can be stored."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.stat_kinds import LEFT_OUT, MAX_BYTES
from scrapy_ext.crawl.session.plain_stats import KEPT, plain_reason, plain_stats


class Unshown:
    def __str__(self) -> str:
        raise OSError("no")


def itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["itself"] = value
    return value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"x": value}
    return value


def shared(levels: int) -> Any:
    """A list of two lists that are one, and so on: little memory, and very many values."""
    value: Any = 1
    for _ in range(levels):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [Unshown(), itself(), nested(600), shared(40), 10**5000, {Unshown(): 1, "itself": itself()}],
    ids=["raises", "itself", "nested", "shared", "number", "names"],
)
def test_a_value_that_has_no_form_says_so_and_leaves_the_others_alone(value: Any) -> None:
    plain = plain_stats({"before": 1, "odd": value, "after": 2})
    assert plain.stats["before"] == 1
    assert plain.stats["after"] == 2
    assert "not stored" in plain.stats["odd"]
    assert plain.shortened == ["odd"]


def test_values_and_names_of_every_kind_have_a_form() -> None:
    stats = {
        "oldest": dt.datetime(1, 1, 1),  # noqa: DTZ001
        "day": dt.date(2026, 1, 2),
        "nan": float("nan"),
        "big": 2**70,
        "half \ud800": "\ud800",
        1: (1, {2}),
        None: None,
    }
    plain = plain_stats(stats).stats
    assert plain["oldest"] == "0001-01-01T00:00:00"
    assert (plain["day"], plain["nan"], plain["big"]) == ("2026-01-02", "nan", str(2**70))
    assert (plain["half ?"], plain["1"], plain["None"]) == ("?", [1, [2]], None)


def test_a_large_value_is_shortened_with_a_mark_and_the_counters_stay() -> None:
    plain = plain_stats({"page": "x" * 3 * MAX_BYTES, "list": ["y" * 100] * 10_000, "item_scraped_count": 3})
    assert plain.stats["item_scraped_count"] == 3
    assert plain.stats["page"] == "x" * KEPT + f"... (shortened from {3 * MAX_BYTES} characters)"
    assert plain.shortened == ["list", "page"]
    assert len(msgspec.json.encode(plain.stats)) <= MAX_BYTES


def test_of_too_many_small_stats_those_of_the_largest_group_are_left_out() -> None:
    many = {f"coverage/{number:05}/{'y' * 50}": number for number in range(30_000)}
    plain = plain_stats({**many, "item_scraped_count": 3, "downloader/response_count": 4})
    assert plain.stats["item_scraped_count"] == 3
    assert plain.stats["downloader/response_count"] == 4
    assert plain.stats[LEFT_OUT] == plain.left_out == 30_003 - len(plain.stats)
    assert len(msgspec.json.encode(plain.stats)) <= MAX_BYTES + 100


def test_a_close_reason_is_text_of_a_bounded_length() -> None:
    assert plain_reason("finished") == "finished"
    assert plain_reason(ValueError("no \ud800")) == "no ?"
    assert len(plain_reason("x" * 10_000_000)) < KEPT + 60
    assert "Unshown" in plain_reason(Unshown())

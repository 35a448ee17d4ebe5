"""Charts: rates of counters, on axes with round numbers, escaped."""

from __future__ import annotations

import lxml.html

from scrapy_ext.server.ui import charts


def whole(value: float) -> str:
    return f"{value:.0f}"


def test_a_rate_is_what_was_added_in_a_minute() -> None:
    grown = [(60_000.0, 100.0), (120_000.0, 300.0)]
    assert charts.rates(grown, 0, 120_000, 2) == [(30_000, 100), (90_000, 200)]
    assert [rate for _, rate in charts.rates(grown, 0, 120_000, 4)] == [100, 100, 200, 200]


def test_what_begins_again_has_no_negative_rate() -> None:
    grown = [(0.0, 0.0), (60_000.0, 100.0), (120_000.0, 10.0)]
    assert [rate for _, rate in charts.rates(grown, 0, 120_000, 2)] == [100, 0]


def test_nothing_is_drawn_of_nothing() -> None:
    assert charts.rates([], 0, 1000, 5) == []
    assert charts.rates([(5.0, 1.0)], 5, 5, 5) == []
    assert charts.lines("t", [charts.Series("a", [(1, 1)])], whole) == ""
    assert charts.bars("t", [], whole) == ""


def test_axes_have_round_numbers_and_lines_stay_between_them() -> None:
    points = [(1_800_000_000_000 + n * 60_000.0, float(n * 7)) for n in range(31)]
    svg = lxml.html.fragment_fromstring(charts.lines("Load", [charts.Series("a", points)], whole))
    assert svg.xpath(".//text[@class='label']/text()") == ["0", "100", "200", "300", "400"]
    assert svg.xpath(".//text[@class='time']/text()") == ["08:00", "08:05", "08:10", "08:15", "08:20", "08:25"]
    ends = [tuple(map(float, pair.split(","))) for pair in svg.xpath(".//polyline/@points")[0].split()]
    assert all(0 <= x <= 720 and 0 <= y <= 190 for x, y in ends)


def test_names_are_escaped_in_every_place() -> None:
    name = "<script>'\"&"
    drawn = charts.lines(name, [charts.Series(name, [(1, 1), (2, 2)])] * 2, whole) + charts.bars(
        name, [charts.Bar(name, 1, name)], whole
    )
    assert "<script" not in drawn
    assert drawn.count("&lt;script&gt;&#39;&#34;&amp;") == 11

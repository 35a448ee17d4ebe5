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
    assert drawn.count("&lt;script&gt;&#39;&#34;&amp;") == 15


def test_the_values_of_each_time_are_a_title_over_it() -> None:
    minute = 60_000.0
    svg = lxml.html.fragment_fromstring(
        charts.lines(
            "Load",
            [
                charts.Series("a", [(0, 1), (minute, 2), (2 * minute, None), (3 * minute, 4)]),
                charts.Series("b", [(0, 5), (minute, 6)]),
            ],
            whole,
        )
    )
    assert svg.xpath(".//g[@class='values']/rect/title/text()") == [
        "00:00:00 UTC: a 1, b 5",
        "00:01:00 UTC: a 2, b 6",
        "00:03:00 UTC: a 4",
    ]
    assert svg.xpath(".//svg/@tabindex") == ["0"]


def test_a_line_is_broken_at_a_gap() -> None:
    points = [(0.0, 1.0), (1000.0, 2.0), (2000.0, None), (3000.0, 4.0)]
    svg = lxml.html.fragment_fromstring(charts.lines("Load", [charts.Series("a", points)], whole))
    assert [len(path.split()) for path in svg.xpath(".//polyline/@points")] == [2, 1]


def test_a_chart_within_a_second_has_a_label_of_its_time() -> None:
    svg = lxml.html.fragment_fromstring(charts.lines("Load", [charts.Series("a", [(100, 1), (200, 2)])], whole))
    assert svg.xpath(".//text[@class='time']/text()") == ["00:00:00"]


def test_bars_and_columns_lead_to_their_pages_and_the_median_is_named() -> None:
    values = [charts.Bar(f"job {n}", n, "", f"/ui/{n}") for n in (1, 2, 9)]
    for drawn in (charts.bars("t", values, whole), charts.columns("t", values, whole, ("a", "b"), 2)):
        svg = lxml.html.fragment_fromstring(drawn)
        assert svg.xpath(".//svg//a/@href") == ["/ui/1", "/ui/2", "/ui/9"]
        assert svg.xpath(".//svg/@role") == ["group"]
    assert svg.xpath("string(.//figcaption/ul)") == "median 2"


def test_the_dates_under_few_columns_do_not_touch() -> None:
    values = [charts.Bar("", n, "", "") for n in (1, 2)]
    svg = lxml.html.fragment_fromstring(charts.columns("t", values, whole, ("2026-11-24", "2026-11-28"), None))
    first, last = (float(each) for each in svg.xpath(".//text[. = '2026-11-24' or . = '2026-11-28']/@x"))
    # The first begins at its place, the last ends there; a digit of 19 pixels is 11 wide.
    assert last - first > 20 * 11

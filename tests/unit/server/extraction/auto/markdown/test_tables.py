"""Tables of data as tables of Markdown, and tables for layout as what is in them."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto import extract_more
from scrapy_ext.server.extraction.auto.markdown.grids import MAX_COLUMNS
from tests.support.markdown import read


def test_a_table_has_its_header_and_caption() -> None:
    html = "<table><caption>Prices</caption><thead><tr><th>Name<th>Price</thead><tr><td>Oak|ash<td>5<br>EUR</table>"
    assert _markdown(html) == "Prices\n\n| Name | Price |\n| --- | --- |\n| Oak\\|ash | 5 EUR |\n"


def test_a_table_without_a_row_of_headers_has_an_empty_one() -> None:
    assert _rows("<table><tr><th>Brand<td>Acme<tr><th>Width<td>5</table>") == [
        ["", ""],
        ["Brand", "Acme"],
        ["Width", "5"],
    ]
    assert _rows("<table><tr><td>a<td>b<tr><td>c<td>d</table>") == [["", ""], ["a", "b"], ["c", "d"]]


def test_cells_that_span_are_in_their_first_place() -> None:
    html = (
        "<table><tr><th>a<th colspan=2>b<th>c<tr><td rowspan=2>1<td>2<td>3<td>4<tr><td colspan=2>5<td>6"
        "<tr><td>7<td>8<td>9<td>10</table>"
    )
    assert _rows(html) == [
        ["a", "b", "", "c"],
        ["1", "2", "3", "4"],
        ["", "5", "", "6"],
        ["7", "8", "9", "10"],
    ]


@pytest.mark.parametrize("rows", ["0", "9", "99999"])
def test_cells_span_no_more_than_their_group(rows: str) -> None:
    html = (
        f"<table><thead><tr><th>a<th>b<tbody><tr><td rowspan={rows}>1<td>2<tr><td>3"
        "<tbody><tr><td>4<td>5<tfoot><tr><td>6<td>7</table>"
    )
    assert _rows(html) == [["a", "b"], ["1", "2"], ["", "3"], ["4", "5"], ["6", "7"]]


def test_cells_span_rows_without_cells_of_their_own() -> None:
    html = "<table><tr><th>a<th>b<tr><td rowspan=2>1<td rowspan=2>2<tr></tr><tr><td>3<td>4</table>"
    assert _rows(html) == [["a", "b"], ["1", "2"], ["3", "4"]]


def test_roles_make_a_table_of_other_elements() -> None:
    def row(role: str, *cells: str) -> str:
        return "<div role=row>" + "".join(f"<span role={role}>{cell}</span>" for cell in cells) + "</div>"

    rows = f"<div role=rowgroup>{row('columnheader', 'a', 'b')}</div>{row('cell', '1', '2')}{row('gridcell', '3', '4')}"
    for role in ("table", "grid"):
        assert _rows(f"<div role={role}>{rows}</div>") == [["a", "b"], ["1", "2"], ["3", "4"]]


def test_a_head_is_first_and_a_foot_last() -> None:
    html = "<table><tfoot><tr><td>sum<td>3</tfoot><tbody><tr><td>1<td>2</tbody><thead><tr><th>a<th>b</thead></table>"
    assert _rows(html) == [["a", "b"], ["1", "2"], ["sum", "3"]]


def test_rows_of_unequal_length_are_filled() -> None:
    assert _rows("<table><tr><th>a<th>b<th>c<tr><td>1<tr><td><td>2</table>") == [
        ["a", "b", "c"],
        ["1", "", ""],
        ["", "2", ""],
    ]


def test_blocks_in_a_cell_are_words_of_one_line() -> None:
    html = "<table><tr><th>a<th>b<tr><td><p>one</p><ul><li>two<li>three</ul><td><b>x</b><div>y</div></table>"
    assert _rows(html) == [["a", "b"], ["one two three", "x y"]]


def test_tables_for_layout_are_what_is_in_them() -> None:
    nested = "<table><tr><td><table><tr><th>a<th>b<tr><td>1<td>2</table><td><h2>c</h2><p>d</p></table>"
    assert [block[0] for block in read(_markdown(nested))] == ["table", "h2", "paragraph"]
    assert _markdown("<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>") == "a\n\nb\n\nc\n\nd\n"
    assert _markdown("<table><tr><td>a<td>b</table>") == "a\n\nb\n"
    assert _markdown("<table><tr><td>a<tr><td>b</table>") == "a\n\nb\n"
    assert _markdown("<table><tr><td>a<td><pre>b</pre></table>") == "a\n\n```\nb\n```\n"


def test_a_table_in_an_item_stays_in_it() -> None:
    html = "<ol><li>x<table><tr><th>a<th>b<tr><td>1<td>2</table></ol>"
    assert read(_markdown(html)) == [("list", 1, [[("paragraph", "x"), ("table", [["a", "b"], ["1", "2"]])]])]


def test_a_table_that_is_too_wide_is_read_cell_by_cell() -> None:
    row = "<tr>" + "<td>x" * (MAX_COLUMNS + 1)
    assert {block[0] for block in read(_markdown(f"<table>{row * 2}</table>"))} == {"paragraph"}


def test_calendars_and_layouts_with_roles_of_tables_are_what_is_in_them() -> None:
    days = [f"<div role=gridcell><button>{day}</button></div>" for day in range(1, 29)]
    weeks = "".join(f"<div role=row>{''.join(days[at : at + 7])}</div>" for at in range(0, 28, 7))
    cells = [f"<td role=gridcell>{day}</td>" for day in range(1, 29)]
    rows = "".join(f"<tr>{''.join(cells[at : at + 7])}</tr>" for at in range(0, 28, 7))
    card = f"<div role=gridcell>{'<p>Line of a card.</p>' * 7}</div>"
    inner = "<div role=table><div role=row><span role=cell>a</span><span role=cell>b</span></div></div>"
    for html in (
        f"<div role=grid>{weeks}</div>",
        f"<table role=grid><tr>{'<th>Mo</th>' * 7}</tr>{rows}</table>",
        f"<div role=grid><div role=row>{card * 2}</div></div>",
        "<div role=grid><div role=row><div role=gridcell>Ida</div><div role=gridcell>Hello</div></div></div>",
    ):
        assert "table" not in {block[0] for block in read(_markdown(html))}, html
    nested = f"<div role=table><div role=row><div role=cell>Left {inner}</div><div role=cell>Right</div></div></div>"
    assert "| Left" not in _markdown(nested)


def test_a_grid_with_headers_is_a_table() -> None:
    html = (
        "<div role=grid><div role=row><span role=columnheader>Port</span><span role=columnheader>Depth</span></div>"
        "<div role=row><span role=gridcell>Bergen</span><span role=gridcell>12 m</span></div></div>"
    )
    assert _rows(html) == [["Port", "Depth"], ["Bergen", "12 m"]]


def _markdown(html: str) -> str:
    return extract_more(None, html, "https://e.example/", markdown={"content": "all"}).markdown or ""


def _rows(html: str) -> list[list[str]]:
    (table,) = read(_markdown(html))
    assert table[0] == "table"
    rows: list[list[str]] = table[1]
    return rows

"""Tables of data as grids of cells, apart from tables that only lay out a page.

A cell that spans several columns or rows is in the first of them; the others are empty, so that the columns below and
beside it keep their places. The rows come as a browser shows them: head first, foot last.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.text import whole_number

#: Columns of a table that is shown as one; wider ones are read cell by cell.
MAX_COLUMNS: Final = 60
_NO_DATA: Final = frozenset({"presentation", "none"})
#: Elements that the cell of a table of data does not have.
_LAYOUT: Final = frozenset({
    "table", "form", "pre", "h1", "h2", "h3", "h4", "article", "section", "nav", "header", "footer", "main", "aside",
    "blockquote", "iframe", "textarea",
})  # fmt: skip
_BLOCKS: Final = frozenset({"p", "div", "li", "dt", "dd", "hr"})
#: A cell with so many blocks is a part of a layout, unless the table has headers.
_MANY: Final = 6
#: Groups of rows, and their order; rows outside of one count as a body.
_GROUPS: Final = {"thead": 0, "tbody": 1, "tfoot": 2}
_CELLS: Final = frozenset({"td", "th"})
#: Roles of elements that make a table of other elements, and what they are in one.
_ROLES: Final = {
    "table": "table", "grid": "table", "rowgroup": "tbody", "row": "tr", "cell": "td", "gridcell": "td",
    "columnheader": "th", "rowheader": "th",
}  # fmt: skip


#: Elements that people operate: a grid of them is a calendar or a choice.
_OPERATED: Final = frozenset({"button", "input", "select", "textarea"})
#: Days of a month, shown as a grid.
_DAYS: Final = frozenset(range(1, 32))
_WEEK: Final = 7


def part_of_table(outline: Outline, position: int) -> str:
    """Return the tag of an element, or that of the part of a table which it is by its role."""
    role = outline.attributes[position].get("role")
    return outline.tags[position] if role is None else _ROLES.get(role.strip().lower(), outline.tags[position])


class Grid(NamedTuple):
    """Rows of positions of cells, all of equal length; None where a cell before it spans the place."""

    outline: Outline
    rows: list[list[int | None]]
    has_header: bool
    caption: int | None

    def is_header(self, cell: int | None) -> bool:
        return cell is not None and part_of_table(self.outline, cell) == "th"


def grid_of(outline: Outline, position: int) -> Grid | None:
    """Return the grid of a table of data; None for a layout."""
    if outline.attributes[position].get("role", "").strip().lower() in _NO_DATA:
        return None
    caption, rows = rows_of(outline, position)
    filled = [row for row in rows if row.cells]
    if not filled or not _is_data(outline, position, filled):
        return None
    grid = _grid(outline, rows)
    if grid is None or len(grid[0]) < 2:
        return None
    first = filled[0]
    is_header = first.group == "thead" or all(part_of_table(outline, cell) == "th" for cell in first.cells)
    return Grid(outline, grid, is_header, caption)


class _Row(NamedTuple):
    """The cells of a row. ``left``: the rows of its group from this one on, which is what a cell can span."""

    group: str
    cells: list[int]
    left: int


def rows_of(outline: Outline, position: int) -> tuple[int | None, list[_Row]]:
    """Return the caption and the rows."""
    caption, groups = None, list[tuple[str, list[int]]]()
    for child in outline.children(position):
        tag = part_of_table(outline, child)
        if tag == "caption":
            caption = child
        elif tag in _GROUPS:
            groups.append((tag, [row for row in outline.children(child) if part_of_table(outline, row) == "tr"]))
        elif tag == "tr":
            if not groups or groups[-1][0]:
                groups.append(("", []))
            groups[-1][1].append(child)
    groups.sort(key=lambda group: _GROUPS.get(group[0], 1))
    rows = [
        _Row(tag, [cell for cell in outline.children(row) if part_of_table(outline, cell) in _CELLS], len(group) - at)
        for tag, group in groups
        for at, row in enumerate(group)
    ]
    return caption, rows


def _is_data(outline: Outline, position: int, rows: list[_Row]) -> bool:
    inside = outline.tags[position + 1 : outline.ends[position]]
    if not _LAYOUT.isdisjoint(inside):
        return False
    if outline.tags[position] != "table":
        return _is_data_by_roles(outline, position, rows)
    if outline.attributes[position].get("role", "").strip().lower() == "grid" and _is_calendar(outline, rows):
        return False
    if "th" in inside or "thead" in inside:
        return True
    return len(rows) > 1 and _are_small(outline, rows)


def _are_small(outline: Outline, rows: list[_Row]) -> bool:
    return all(
        sum(tag in _BLOCKS for tag in outline.tags[cell : outline.ends[cell]]) < _MANY
        for row in rows
        for cell in row.cells
    )


def _is_data_by_roles(outline: Outline, position: int, rows: list[_Row]) -> bool:
    """Return whether other elements than those of tables make one of data.

    A grid is as often one of pictures, cards or days: only headers show that it is one of data.
    """
    has_headers = False
    for at in range(position + 1, outline.ends[position]):
        part = part_of_table(outline, at)
        # The parts of a table within it are not read again for each one around it.
        if part == "table":
            return False
        has_headers = has_headers or part == "th"
    if not _are_small(outline, rows):
        return False
    is_grid = outline.attributes[position].get("role", "").strip().lower() == "grid"
    return not is_grid or (has_headers and not _is_calendar(outline, rows))


def _is_calendar(outline: Outline, rows: list[_Row]) -> bool:
    """Return whether the cells of a grid are the days of a month in their order, or all are operated."""
    cells = [cell for row in rows for cell in row.cells if part_of_table(outline, cell) == "td"]
    if not cells:
        return False
    if all(not _OPERATED.isdisjoint(outline.tags[cell : outline.ends[cell]]) for cell in cells):
        return True
    numbers = [whole_number("".join(outline.texts_in(cell)).strip(), 2) for cell in cells]
    days = [number for number in numbers if number in _DAYS]
    follow = sum(later in (earlier + 1, 1) for earlier, later in pairwise(days))
    return len(days) > len(cells) // 2 and len(days) >= _WEEK and follow == len(days) - 1


def _grid(outline: Outline, rows: list[_Row]) -> list[list[int | None]] | None:
    """Return the rows with a place for each column; None for more than :data:`MAX_COLUMNS`."""
    grid: list[list[int | None]] = []
    #: For each column, the rows below that a cell above spans.
    spanned: dict[int, int] = {}
    for _, cells, left in rows:
        row: list[int | None] = []
        below: dict[int, int] = {}
        for cell in cells:
            while spanned.get(len(row)):
                row.append(None)
            if len(row) >= MAX_COLUMNS:
                return None
            # 0 rows are all of the group.
            down = min(_span(outline, cell, "rowspan") or left, left)
            columns = min(_span(outline, cell, "colspan") or 1, MAX_COLUMNS - len(row))
            below.update(dict.fromkeys(range(len(row), len(row) + columns), down - 1))
            row += [cell, *[None] * (columns - 1)]
        spanned = {at: more - 1 for at, more in spanned.items() if more > 1 and at not in below} | {
            at: more for at, more in below.items() if more
        }
        if cells:
            grid.append(row)
    width = max(map(len, grid))
    return [row + [None] * (width - len(row)) for row in grid]


def _span(outline: Outline, cell: int, name: str) -> int:
    number = whole_number(outline.attributes[cell].get(name, "").strip(), 9)
    return 1 if number is None else number

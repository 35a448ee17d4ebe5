"""Tables of data as grids of cells, apart from tables that only lay out a page.

A cell that spans several columns or rows is in the first of them; the others are empty, so that the columns below
and beside it keep their places.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page.outline import Outline

#: Columns of a table that is shown as one; wider ones are read cell by cell.
MAX_COLUMNS: Final = 60
_NO_DATA: Final = frozenset({"presentation", "none"})
#: Elements that the cell of a table of data does not have.
_LAYOUT: Final = frozenset({
    "table", "form", "pre", "h1", "h2", "h3", "h4", "article", "section", "nav", "header", "footer", "main", "aside",
    "blockquote", "iframe", "textarea",
})  # fmt: skip
_BLOCKS: Final = frozenset({"p", "div", "li", "dt", "dd", "hr"})
#: Blocks in a cell from which it is a part of a layout, unless the table has headers.
_MANY: Final = 6
_GROUPS: Final = frozenset({"thead", "tbody", "tfoot"})
_CELLS: Final = frozenset({"td", "th"})


class Grid(NamedTuple):
    """Rows of positions of cells, all of equal length; None where a cell before it spans the place."""

    outline: Outline
    rows: list[list[int | None]]
    has_header: bool
    caption: int | None

    def is_header(self, cell: int | None) -> bool:
        return cell is not None and self.outline.tags[cell] == "th"


def grid_of(outline: Outline, position: int) -> Grid | None:
    """Return the grid of a table of data; None for a layout."""
    if outline.attributes[position].get("role", "").strip().lower() in _NO_DATA:
        return None
    caption, heads, rows = _rows_of(outline, position)
    if not rows or not _is_data(outline, position, rows):
        return None
    grid = _grid(outline, rows)
    if grid is None or len(grid[0]) < 2:
        return None
    first = [outline.tags[cell] == "th" for cell in rows[0][1]]
    return Grid(outline, grid, bool(first) and (rows[0][0] in heads or all(first)), caption)


def _rows_of(outline: Outline, position: int) -> tuple[int | None, set[int], list[tuple[int, list[int]]]]:
    """Return the caption, the rows of the head, and each row with its cells."""
    caption, heads, rows = None, set(), []
    for child in outline.children(position):
        tag = outline.tags[child]
        if tag == "caption":
            caption = child
        for row in outline.children(child) if tag in _GROUPS else (child,):
            if outline.tags[row] == "tr":
                cells = [cell for cell in outline.children(row) if outline.tags[cell] in _CELLS]
                if cells:
                    rows.append((row, cells))
                    if tag == "thead":
                        heads.add(row)
    return caption, heads, rows


def _is_data(outline: Outline, position: int, rows: list[tuple[int, list[int]]]) -> bool:
    inside = outline.tags[position + 1 : outline.ends[position]]
    if not _LAYOUT.isdisjoint(inside):
        return False
    if "th" in inside or "thead" in inside:
        return True
    if len(rows) < 2:
        return False
    return all(
        sum(tag in _BLOCKS for tag in outline.tags[cell : outline.ends[cell]]) < _MANY
        for _, cells in rows
        for cell in cells
    )


def _grid(outline: Outline, rows: list[tuple[int, list[int]]]) -> list[list[int | None]] | None:
    """Return the rows with a place for each column; None for more than :data:`MAX_COLUMNS`."""
    grid: list[list[int | None]] = []
    #: For each column, the rows below that a cell above spans.
    spanned: dict[int, int] = {}
    for _, cells in rows:
        row: list[int | None] = []
        below: dict[int, int] = {}
        for cell in cells:
            while spanned.get(len(row)):
                row.append(None)
            if len(row) >= MAX_COLUMNS:
                return None
            columns, down = _span(outline, cell, "colspan"), _span(outline, cell, "rowspan")
            columns = min(columns, MAX_COLUMNS - len(row))
            below.update(dict.fromkeys(range(len(row), len(row) + columns), down - 1))
            row += [cell, *[None] * (columns - 1)]
        spanned = {at: left - 1 for at, left in spanned.items() if left > 1 and at not in below} | {
            at: left for at, left in below.items() if left
        }
        grid.append(row)
    width = max(map(len, grid))
    return [row + [None] * (width - len(row)) for row in grid]


def _span(outline: Outline, cell: int, name: str) -> int:
    stated = outline.attributes[cell].get(name, "").strip()
    return max(1, int(stated)) if stated.isascii() and stated.isdigit() and len(stated) <= 4 else 1

"""The tables of the documentation, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def rows_of(page: str, title: str) -> Iterator[list[str]]:
    """The rows of the list-table below a title, without its header: the text of each cell on one line."""
    below = page.split(f"\n{title}\n", 1)[1].split(".. list-table::", 1)[1]
    table = re.split(r"\n(?=\S)", below, maxsplit=1)[0]
    rows = re.split(r"^   \* - ", table, flags=re.MULTILINE)[2:]
    for row in rows:
        yield [" ".join(cell.split()) for cell in re.split(r"^     - ", row, flags=re.MULTILINE)]


def tables_of(name: str) -> dict[str, list[list[str]]]:
    """The rows of the list-tables of a page, each by the title of its section."""
    page = (DOCS / name).read_text("utf-8")
    sections = re.split(r"^(.+)\n=+\n", page, flags=re.MULTILINE)
    titled = zip(sections[1::2], sections[2::2], strict=True)
    return {title: list(rows_of(page, title)) for title, section in titled if ".. list-table::" in section}

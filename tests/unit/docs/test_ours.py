"""The page on parts that stay ours names parts that exist, with their sizes."""

from __future__ import annotations

import re
from pathlib import Path

import scrapy_ext
from tests.support.docs_tables import DOCS

PACKAGE = Path(scrapy_ext.__file__).parent
_ROW = re.compile(r"^ {3}\* - ([^`\n]*``[\w/]+``(?:, ``[\w/]+``)*)\n {5}- (\d+)$", re.MULTILINE)
_PATH = re.compile(r"``([\w/]+)``")
CODE = (".py", ".js", ".css")


def lines(path: str) -> int:
    """The lines of the files of a folder or a module."""
    folder, module = PACKAGE / path, PACKAGE / f"{path}.py"
    files = [file for file in folder.rglob("*") if file.suffix in CODE] if folder.is_dir() else [module]
    return sum(file.read_text("utf-8").count("\n") for file in files)


def test_the_sizes_of_the_page_are_those_of_the_code_within_a_fifth() -> None:
    page = (DOCS / "architecture" / "ours.rst").read_text("utf-8")
    rows = {row: int(size) for row, size in _ROW.findall(page)}
    assert len(rows) == page.count("\n   * - ") - page.count("   * - Ours")
    found = {row: sum(map(lines, _PATH.findall(row))) for row in rows}
    assert {row: found[row] for row, size in rows.items() if abs(found[row] - size) > size / 5} == {}

"""Real pages are not part of the repository: without their folder, one line says that the tests did not run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "SCRAPY_EXT_REAL_PAGES"
ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data" / "real-pages")

if not (FOLDER / "index.json").is_file():
    collect_ignore = ["test_real_pages.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not (FOLDER / "index.json").is_file():
        terminalreporter.write_line(
            f"not run: tests/real_pages, which need a folder of real pages with an index.json; name it in {VARIABLE}"
        )


@pytest.fixture(scope="session")
def folder() -> Path:
    return FOLDER

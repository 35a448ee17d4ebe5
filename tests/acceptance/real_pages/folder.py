"""Folder of the real pages. They are not part of the repository, so there may be none."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "SCRAPY_EXT_REAL_PAGES"
FOLDER = Path(os.environ.get(VARIABLE) or Path(__file__).parents[4] / "shared" / "data" / "real-pages")
FOUND = (FOLDER / "index.json").is_file()
NOT_FOUND = (
    f"not run: tests/acceptance/real_pages, which need a folder of real pages with an index.json; name it in {VARIABLE}"
)

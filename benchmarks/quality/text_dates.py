"""Dates of the text alone against those of the markup of the same pages.

``python benchmarks/quality/text_dates.py FOLDER...`` prints a JSON line a folder: on how many pages with a date of
publication in their markup (JSON-LD, microdata, metadata, ``datetime`` of elements) the page without it has the same
day, another one, or none. A folder holds ``*.html.gz``. ``--wrong`` lists the pages with another day. Another version
is measured with its sources in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from markup_off import without_markup

from scrapy_ext.server.extraction.auto import extract, preload

URL = "https://site.example/a"
_METAS = re.compile(r"<meta\b[^>]*>", re.IGNORECASE)
_DATETIMES = re.compile(r"""\s(?:datetime|content|data-[\w-]*)\s*=\s*(?:"[^"]*"|'[^']*')""", re.IGNORECASE)


def main() -> int:
    arguments = argparse.ArgumentParser(description="Dates of the text alone against those of the markup.")
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--wrong", action="store_true", help="list the pages that differ")
    asked = arguments.parse_args()
    preload()
    for folder in asked.folders:
        print(json.dumps(measured(folder, listed=asked.wrong), ensure_ascii=False), flush=True)
    return 0


def measured(folder: Path, *, listed: bool) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    differing = []
    for file in sorted(folder.glob("*.html.gz")):
        html = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
        stated = extract("article", html, URL)
        bare = extract("article", _METAS.sub("", _DATETIMES.sub("", without_markup(html))), URL)
        truth, date = stated.get("datePublished"), bare.get("datePublished")
        # Where the markup adds nothing, both have the date of the text.
        if not truth or stated.get("datePublishedRaw") == bare.get("datePublishedRaw"):
            counts["not stated"] += 1
            continue
        outcome = "none" if not date else "same" if date[:10] == truth[:10] else "other"
        counts[outcome] += 1
        if outcome == "other":
            differing.append([file.name[:12], truth, date, bare.get("datePublishedRaw")])
    return {
        "pages": sum(counts.values()),
        **dict(sorted(counts.items())),
        **({"differing": differing} if listed else {}),
    }


if __name__ == "__main__":
    sys.exit(main())

"""Fields of articles, products and jobs by the language of the page, on saved real pages kept out of the repository.

``python benchmarks/quality/languages.py DIR`` prints a row for each language: the pages, and of each field the values
right of those labelled, on the pages that rules were tuned on and on the untouched ones apart. The markup is taken off
before, as ``markup_truth.py`` does. ``--wrong`` lists the wrong and missing values of the tuned pages, and of no other.

``DIR`` holds ``index.json``: a list of ``file`` (gzip), ``url``, ``kind``, ``language`` (ISO 639-1), ``split``
(``tuned`` or ``untouched``) and ``labels``: a list of right values for each field that the page shows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

from field_values import FOUND, outcome_of
from intervals import f1_of
from markup_truth import plain

from scrapy_ext.server.extraction.auto import extract, preload

SPLITS: Final = ("tuned", "untouched")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--wrong", action="store_true", help="list what is wrong on the tuned pages")
    asked = arguments.parse_args()
    logging.disable(logging.CRITICAL)
    preload()
    entries = json.loads((asked.folder / "index.json").read_text("utf-8"))
    rows: defaultdict[tuple[str, str], Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for entry in entries:
        html = gzip.decompress((asked.folder / entry["file"]).read_bytes()).decode("utf-8", "replace")
        item = extract(entry["kind"], plain(html).html, entry["url"])
        for language in (entry["language"], "all"):
            row = rows[entry["kind"], language]
            row[entry["split"], "pages", ""] += 1
            for field, true in entry["labels"].items():
                row[entry["split"], field, "labelled"] += 1
                row[entry["split"], field, "right"] += is_right(field, true, item)
        for field, true in entry["labels"].items() if asked.wrong and entry["split"] == "tuned" else ():
            if not is_right(field, true, item):
                print(
                    entry["language"], field, entry["file"], entry["url"], "| true", true, "| found", FOUND[field](item)
                )
    for (kind, language), row in sorted(rows.items()) if not asked.wrong else ():
        fields = sorted({field for _, field, counted in row if counted})
        print(kind, language, *(f"| {split}: {_cells(row, split, fields)}" for split in SPLITS))


def is_right(field: str, true: list[str], item: dict[str, Any]) -> bool:
    outcome = outcome_of(field, "", true, item)
    return outcome is not None and f1_of([outcome]) == 1


def _cells(row: Counter[tuple[str, str, str]], split: str, fields: list[str]) -> str:
    counts = (f"{field} {row[split, field, 'right']}/{row[split, field, 'labelled']}" for field in fields)
    return ", ".join([f"{row[split, 'pages', '']} pages", *counts])


if __name__ == "__main__":
    main()

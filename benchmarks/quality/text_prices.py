"""Prices of the text alone against those of the markup of the same pages.

``python benchmarks/quality/text_prices.py FOLDER...`` prints a JSON line a folder: on how many product pages with a
price in their markup (JSON-LD, microdata, OpenGraph; as extruct reads it) the page without it has the same price,
another one, or none, and the same against the labels. A folder holds ``html/*.html.gz`` and ``labels.json`` or
``ground-truth.json``, with the URL of each page and the prices that are right, as
scrapinghub/product-extraction-benchmark has them. ``--wrong`` lists the other prices and the missing ones; ``--skip
FOLDER`` leaves out the pages of another folder. Another version is measured with its sources in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from data import page, timed
from product import comparable, of_markup_alone, without_markup
from scores import median_ms

from scrapy_ext.server.extraction.auto import preload


def main() -> int:
    arguments = argparse.ArgumentParser(description="Prices of the text alone against those of the markup.")
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--skip", type=Path, help="a folder whose pages are left out")
    arguments.add_argument("--wrong", action="store_true", help="list the pages that differ")
    asked = arguments.parse_args()
    preload()
    skipped = _labels(asked.skip).keys() if asked.skip else ()
    for folder in asked.folders:
        labels = {name: label for name, label in _labels(folder).items() if name not in skipped}
        print(json.dumps(measured(folder, labels, listed=asked.wrong)), flush=True)
    return 0


def measured(folder: Path, labels: dict[str, Any], *, listed: bool) -> dict[str, Any]:
    against = {"markup": Counter[str](), "labels": Counter[str]()}
    times, differing = [], []
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        truths = {"markup": _listed(of_markup_alone(html, label["url"]).get("price")), "labels": label.get("price", [])}
        item, spent = timed("product", without_markup(html), label["url"])
        times.append(spent)
        for source, truth in truths.items():
            outcome = _outcome(truth, item.get("price"))
            against[source][outcome] += 1
            if outcome in {"other", "none"}:
                differing.append([name[:8], label["url"][:80], source, truth, item.get("price")])
    counts = {source: dict(sorted(found.items())) for source, found in against.items()}
    return {"pages": len(labels), **counts, "ms": median_ms(times), **({"differing": differing} if listed else {})}


def _outcome(truth: list[str], price: str | None) -> str:
    if not truth:
        return "not stated"
    if price is None:
        return "none"
    return "same" if comparable("price", price) in {comparable("price", each) for each in truth} else "other"


def _labels(folder: Path) -> dict[str, Any]:
    files = (folder / name for name in ("labels.json", "ground-truth.json"))
    return dict(json.loads(next(file for file in files if file.exists()).read_text("utf-8")))


def _listed(value: str | None) -> list[str]:
    return [value] if value else []


if __name__ == "__main__":
    sys.exit(main())

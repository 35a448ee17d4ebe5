"""``serp``: results on written pages in the shapes of search engines, and on real pages of other types.

The written pages show that the rules do what they are meant to do; ``saved_pages.py`` measures real pages of results.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from data import page, timed
from scores import median_ms, scored

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.serp_pages import PAGES, RESULTS

#: Minimum results for a page to count as a page of results.
SEVERAL = 5


def measure_serp(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for written in PAGES.values():
        found = timed("serp", written.html, written.url)[0].get("organicResults", ())
        results = {(each.get("name"), each.get("url"), each.get("description")) for each in found}
        right = len(results & set(RESULTS))
        counts.update(right=right, wrong=len(results) - right, missing=len(RESULTS) - right)
    taken, times = 0, []
    for name, label in sorted(labels.items()):
        item, spent = timed("serp", page(folder, name), label["url"])
        times.append(spent)
        taken += len(item.get("organicResults", ())) >= SEVERAL
    return {
        "kind": "serp",
        "written_pages": len(PAGES),
        "results_of_written_pages": scored(counts),
        "pages_of_other_types": len(labels),
        "taken_for_results": taken,
        "ms": median_ms(times),
    }

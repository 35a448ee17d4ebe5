"""``productList`` and ``articleList``: on how many pages of their type one is found, and what is in it."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from data import page, timed
from scores import mean, median_ms, words


def measure_list(folder: Path, kind: str, member: str, name: str, labels: dict[str, Any]) -> dict[str, Any]:
    found, shares, times = 0, [], []
    for page_name, label in sorted(labels.items()):
        item, spent = timed(kind, page(folder, page_name), label["url"])
        times.append(spent)
        items = item.get(member, ())
        found += bool(items)
        content = " ".join(words(label["main_content"]))
        if items and content:
            shares.append(statistics.fmean(" ".join(words(item.get(name))) in content for item in items))
    return {
        "kind": kind,
        "pages": len(labels),
        "with_a_list": found,
        "names_in_labelled_content": {"mean": mean(shares), "median": round(statistics.median(shares), 4)},
        "ms": median_ms(times),
    }

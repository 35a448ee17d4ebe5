"""``pageContent``: the main content of pages of every type."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from data import page, timed, trafilatura_text, type_of
from scores import mean, median_ms, word_f1


def measure_content(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    by_type: dict[str, list[float]] = defaultdict(list)
    peers, times = [], []
    for name, label in sorted(labels.items()):
        html = page(folder, name)
        item, spent = timed("pageContent", html, label["url"])
        times.append(spent)
        by_type[type_of(label)].append(word_f1(item.get("itemMain"), label["main_content"]))
        peers.append(word_f1(trafilatura_text(html, precise=False), label["main_content"]))
    return {
        "kind": "pageContent",
        "pages": len(labels),
        "word_f1": mean([score for scores in by_type.values() for score in scores]),
        "trafilatura_word_f1": mean(peers),
        "word_f1_by_type": {kind: mean(scores) for kind, scores in sorted(by_type.items())},
        "ms": median_ms(times),
    }

"""``pageContent`` and ``markdown``: the main content of pages of every type, beside that of other libraries."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from data import (
    page,
    resiliparse_text,
    text_of_markdown,
    timed,
    timed_markdown,
    trafilatura_markdown,
    trafilatura_text,
    type_of,
)
from scores import mean, median_ms, word_f1

#: Page types of the benchmark's test split, half of them articles; the shares of the others are estimates.
TEST_SPLIT = {
    "article": 0.50,
    "service": 0.12,
    "forum": 0.10,
    "documentation": 0.08,
    "listing": 0.08,
    "collection": 0.07,
    "product": 0.05,
}
#: About a hundred kilobytes, in characters.
HUNDRED_KB = range(60_000, 160_000)

Scores = dict[str, list[float]]


def measure_content(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    """Print scores of the packaged model, which was trained on these pages: those of other pages are lower."""
    ours: Scores = defaultdict(list)
    peers: dict[str, Scores] = {"trafilatura": defaultdict(list), "resiliparse": defaultdict(list)}
    times, times_of_hundred_kb = [], []
    for name, label in sorted(labels.items()):
        html, kind, truth = page(folder, name), type_of(label), label["main_content"]
        item, spent = timed("pageContent", html, label["url"])
        times.append(spent)
        if len(html) in HUNDRED_KB:
            times_of_hundred_kb.append(spent)
        ours[kind].append(word_f1(item.get("itemMain"), truth))
        peers["trafilatura"][kind].append(word_f1(trafilatura_text(html, precise=False), truth))
        peers["resiliparse"][kind].append(word_f1(resiliparse_text(html), truth))
    return {
        "kind": "pageContent",
        "pages": len(labels),
        **_of_all(ours),
        **{peer: _of_all(scores) for peer, scores in peers.items()},
        "ms": median_ms(times),
        "ms_100_kb": median_ms(times_of_hundred_kb),
    }


def measure_markdown(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    """Print scores of the text of Markdown, once its signs are taken off, and the structure that it keeps."""
    ours: Scores = defaultdict(list)
    peer: Scores = defaultdict(list)
    times, blocks, blocks_of_peer = [], Counter[str](), Counter[str]()
    for name, label in sorted(labels.items()):
        html, kind, truth = page(folder, name), type_of(label), label["main_content"]
        markdown, spent = timed_markdown(html, label["url"])
        times.append(spent)
        for scores, counts, written in (
            (ours, blocks, markdown),
            (peer, blocks_of_peer, trafilatura_markdown(html, label["url"])),
        ):
            text, found = text_of_markdown(written)
            scores[kind].append(word_f1(text, truth))
            counts.update(found)
    return {
        "kind": "markdown",
        "pages": len(labels),
        **_of_all(ours),
        "blocks": dict(sorted(blocks.items())),
        "trafilatura": {**_of_all(peer), "blocks": dict(sorted(blocks_of_peer.items()))},
        "ms": median_ms(times),
    }


def _of_all(scores: Scores) -> dict[str, Any]:
    by_type = {kind: mean(found) for kind, found in sorted(scores.items())}
    known = sum(TEST_SPLIT[kind] for kind in by_type)
    return {
        "word_f1": mean([score for found in scores.values() for score in found]),
        "word_f1_weighted": round(sum(TEST_SPLIT[kind] * score for kind, score in by_type.items()) / known, 4),
        "word_f1_by_type": by_type,
    }

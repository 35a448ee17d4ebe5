"""Scores: fields against labels, texts as bags of words."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from typing import Any


def count(counts: Counter[str], true: set[Any], found: object) -> None:
    if found is None:
        counts["missing"] += bool(true)
    elif found in true:
        counts["right"] += 1
    else:
        counts["wrong"] += 1
        counts["missing"] += bool(true)


def scored(counts: Counter[str]) -> dict[str, float]:
    right, wrong, missing = counts["right"], counts["wrong"], counts["missing"]
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = right / (right + missing) if right + missing else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"f1": round(f1, 3), "precision": round(precision, 3), "recall": round(recall, 3), **counts}


def words(text: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", (text or "").casefold()))


def word_f1(found: str | None, true: str | None) -> float:
    found_words, true_words = Counter(words(found)), Counter(words(true))
    both = (found_words & true_words).total()
    if not both:
        return float(not found_words and not true_words)
    return 2 * both / (found_words.total() + true_words.total())


def tokens(text: str | None) -> list[str]:
    return re.findall(r"\w+", text or "")


def shingle_scores(found: str | None, true: str | None) -> tuple[float, float]:
    """Return precision and recall of runs of four tokens, counted as often as they occur."""
    shingles = [
        Counter(tuple(part[at : at + 4]) for at in range(max(1, len(part) - 3)) if part)
        for part in (tokens(found), tokens(true))
    ]
    both = (shingles[0] & shingles[1]).total()
    sizes = [shingle.total() for shingle in shingles]
    if not any(sizes):
        return 1.0, 1.0
    return (both / sizes[0] if sizes[0] else 0.0), (both / sizes[1] if sizes[1] else 0.0)


def text_scores(pairs: list[tuple[str | None, str | None]]) -> dict[str, float]:
    """Return precision and recall of shingles averaged over pages, their F1, and the share of equal texts."""
    scores = [shingle_scores(found, true) for found, true in pairs]
    # A page without a result has no precision, as in that benchmark.
    precision = statistics.fmean(score[0] for score, (found, _) in zip(scores, pairs, strict=True) if tokens(found))
    recall = statistics.fmean(score[1] for score in scores)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    exact = statistics.fmean(tokens(found) == tokens(true) for found, true in pairs)
    return {
        name: round(value, 4)
        for name, value in zip(("f1", "precision", "recall", "exact"), (f1, precision, recall, exact), strict=True)
    }


def mean(values: list[float]) -> float:
    return round(statistics.fmean(values), 4)


def median_ms(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    middle, high = ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))]
    return {"median": round(1000 * middle, 1), "p95": round(1000 * high, 1)}

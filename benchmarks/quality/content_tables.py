"""Tables of the text of ``pageContent`` by type of page, with intervals, and beside another version of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from intervals import drawn_by_site
from page_content import TEST_SPLIT
from scores import mean


class PageScore(NamedTuple):
    """The scores of the words of a page's text."""

    name: str
    site: str
    kind: str
    precision: float
    recall: float
    f1: float


def write_scores(path: Path, scores: Iterable[PageScore]) -> None:
    path.write_text("".join(f"{json.dumps(score)}\n" for score in scores), "utf-8")


def read_scores(path: Path) -> list[PageScore]:
    return [PageScore(*json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def table_of(scores: list[PageScore], before: list[PageScore] | None = None) -> dict[str, Any]:
    """Return a row for each type of page, for all pages, and for the mix of types of the test split."""
    earlier = {score.name: score for score in before or ()}
    rows = {}
    for kind in ("all", "mix", *TEST_SPLIT):
        some = [score for score in scores if kind in ("all", "mix", score.kind)]
        rows[kind] = {
            "pages": len(some),
            "precision": round(_figure(kind, [(each.kind, each.precision) for each in some]), 4),
            "recall": round(_figure(kind, [(each.kind, each.recall) for each in some]), 4),
            **_with_interval("f1", kind, [(each, each.f1) for each in some]),
        }
        if earlier:
            gains = [(each, each.f1 - earlier[each.name].f1) for each in some]
            rows[kind]["before"] = round(_figure(kind, [(each.kind, earlier[each.name].f1) for each in some]), 4)
            rows[kind] |= _with_interval("gain", kind, gains)
    return rows


def _with_interval(name: str, kind: str, values: list[tuple[PageScore, float]]) -> dict[str, Any]:
    low, high = drawn_by_site(
        ((page.site, (page.kind, value)) for page, value in values), lambda drawn: _figure(kind, drawn)
    )
    figure = _figure(kind, [(page.kind, value) for page, value in values])
    return {name: round(figure, 4), f"{name}_95": [round(low, 3), round(high, 3)]}


def _figure(kind: str, values: list[tuple[str, float]]) -> float:
    """Return the average of the values of pages; for ``mix`` with the share of each type in the test split."""
    if not values:
        return 0.0
    if kind != "mix":
        return mean([value for _, value in values])
    by_kind: defaultdict[str, list[float]] = defaultdict(list)
    for each, value in values:
        by_kind[each].append(value)
    known = sum(TEST_SPLIT[each] for each in by_kind)
    return sum(TEST_SPLIT[each] * mean(found) for each, found in by_kind.items()) / known

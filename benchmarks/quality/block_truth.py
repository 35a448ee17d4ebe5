"""Content blocks of a labelled page: labels are plain text, so each block is searched in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from scores import words

#: Words per searched run. Shorter blocks must match completely.
RUN = 4
#: A block of at least this many words with a smaller share of them in the label matches by chance.
LONG, CHANCE = 8, 0.3
#: A match of one or two words counts only if this share of its neighbourhood is content.
ALONE = 0.02
NEAR = 6

Words = tuple[str, ...]


def truths(texts: Sequence[str], label: str) -> list[float]:
    """Return the share of each block that is content, from 0 to 1."""
    blocks = [words(text) for text in texts]
    wanted = words(label)
    whole = f" {' '.join(wanted)} "
    runs = set(_runs(wanted))
    found = [_part_in(block, runs) if len(block) >= RUN else 0.0 for block in blocks]
    sure = list(found)
    same: dict[Words, list[int]] = defaultdict(list)
    for at, block in enumerate(blocks):
        same[block].append(at)
    for block, places in same.items():
        have = whole.count(f" {' '.join(block)} ")
        if len(block) >= RUN:
            # Text that is more frequent on the page than in the label is content where most of its neighbours are.
            if len(places) > max(1, have):
                _keep(max(1, have), places, found, sure, blocks)
            continue
        for at in places:
            found[at] = float(have > 0)
        if 0 < have < len(places):
            _keep(have, places, found, sure, blocks)
        for at in places:
            if len(block) < RUN - 1 and _near(at, sure, blocks) < ALONE:
                found[at] = 0.0
    return found


def _runs(block: Words) -> list[Words]:
    return [block[at : at + RUN] for at in range(len(block) - RUN + 1)]


def _part_in(block: Words, runs: set[Words]) -> float:
    hit = [False] * len(block)
    for at, run in enumerate(_runs(block)):
        if run in runs:
            hit[at : at + RUN] = [True] * RUN
    part = sum(hit) / len(block)
    return 0.0 if len(block) >= LONG and part < CHANCE else part


def _near(at: int, sure: Sequence[float], blocks: Sequence[Words]) -> float:
    around = [
        other
        for other in range(max(0, at - NEAR), min(len(blocks), at + NEAR + 1))
        if other != at and len(blocks[other]) >= RUN
    ]
    weights = [min(20, len(blocks[other])) for other in around]
    total = sum(weights)
    return sum(sure[other] * weight for other, weight in zip(around, weights, strict=True)) / total if total else 0.0


def _keep(
    count: int, places: Sequence[int], found: list[float], sure: Sequence[float], blocks: Sequence[Words]
) -> None:
    for at in sorted(places, key=lambda at: -_near(at, sure, blocks))[count:]:
        found[at] = 0.0


def scores_of(taken: Sequence[bool], blocks: Sequence[Words], label: Counter[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the words of the chosen blocks."""
    found: Counter[str] = Counter()
    for block, is_taken in zip(blocks, taken, strict=True):
        if is_taken:
            found.update(block)
    both = (found & label).total()
    if not both:
        right = float(not found and not label)
        return right, right, right
    return both / found.total(), both / label.total(), 2 * both / (found.total() + label.total())

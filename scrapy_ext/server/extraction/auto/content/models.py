"""Models of pages and blocks: gradient-boosted trees over the features of both.

The trees are plain numbers in ``block_model.json`` and ``kind_model.json``, made by
``benchmarks/quality/train_block_model.py`` from labelled pages (the labels are those of the WCXB of Murrough Foley,
CC-BY-4.0; the models contain nothing of the pages). A tree is a leaf (a number, summed over all trees) or
``[feature, threshold, below, above]``, where rows with a number of at most ``threshold`` continue with ``below``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

BLOCK_DATA: Final = "block_model.json"
KIND_DATA: Final = "kind_model.json"
#: A block whose sum over the first trees is further than SURE from zero gets twice that, instead of the sum over all
#: trees: this saves a third of the time, and changes the choice for two words in 10,000.
FIRST_TREES: Final = 60
SURE: Final = 2.0


class BlockModel(NamedTuple):
    """The names of the numbers of a row, in order, and the trees over them."""

    features: tuple[str, ...]
    trees: tuple[Any, ...]

    def likelihoods(self, rows: Sequence[Sequence[float]], of_page: Sequence[float] = ()) -> list[float]:
        """Return the probability (0 to 1) of each row's block to be content; ``of_page`` is appended to every row."""
        # Evaluated once for the page rather than for every row: a third of all comparisons.
        first = len(self.features) - len(of_page)
        trees = [_partly_evaluated(tree, first, of_page) for tree in self.trees]
        begin, rest = _parted(trees[:FIRST_TREES]), _parted(trees[FIRST_TREES:])
        return [_likelihood(row, begin, rest) for row in rows]


class KindModel(NamedTuple):
    """The names of the numbers of a page, in order, and the trees of each kind over them."""

    features: tuple[str, ...]
    trees: Mapping[str, tuple[Any, ...]]

    def likelihoods(self, of_page: Sequence[float]) -> dict[str, float]:
        """Return the probability of each kind of page; together they are 1."""
        scores = {
            kind: sum(_partly_evaluated(tree, 0, of_page) for tree in trees) for kind, trees in self.trees.items()
        }
        highest = max(scores.values())
        weights = {kind: math.exp(score - highest) for kind, score in scores.items()}
        total = sum(weights.values())
        return {kind: weight / total for kind, weight in weights.items()}


def _parted(trees: Sequence[Any]) -> tuple[float, list[Any]]:
    """Return the sum of the trees that are leaves, and the other ones."""
    known = float(sum(tree for tree in trees if tree.__class__ is not tuple))
    return known, [tree for tree in trees if tree.__class__ is tuple]


def _likelihood(row: Sequence[float], begin: tuple[float, list[Any]], rest: tuple[float, list[Any]]) -> float:
    total = _sum_of(row, *begin)
    total = total + _sum_of(row, *rest) if -SURE <= total <= SURE else 2 * total
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def _sum_of(row: Sequence[float], known: float, trees: list[Any]) -> float:
    total = known
    for tree in trees:
        node = tree
        while node.__class__ is tuple:
            node = node[2] if row[node[0]] <= node[1] else node[3]
        total += node
    return total


def _partly_evaluated(node: Any, first: int, known: Sequence[float]) -> Any:
    """Evaluate the comparisons of a tree whose numbers are known: those from ``first`` on."""
    while node.__class__ is tuple and node[0] >= first:
        node = node[2] if known[node[0] - first] <= node[1] else node[3]
    if node.__class__ is not tuple:
        return node
    return (node[0], node[1], _partly_evaluated(node[2], first, known), _partly_evaluated(node[3], first, known))


@cache
def block_model() -> BlockModel:
    """Return the model of blocks of the package, read once."""
    return read_block_model(_text_of(BLOCK_DATA))


@cache
def kind_model() -> KindModel:
    """Return the model of kinds of pages of the package, read once."""
    return read_kind_model(_text_of(KIND_DATA))


def read_block_model(text: str) -> BlockModel:
    """Return the model of blocks that a file holds."""
    data = json.loads(text)
    return BlockModel(tuple(data["features"]), tuple(map(_tree, data["trees"])))


def read_kind_model(text: str) -> KindModel:
    """Return the model of kinds of pages that a file holds."""
    data = json.loads(text)
    trees = {kind: tuple(map(_tree, of_kind)) for kind, of_kind in data["trees"].items()}
    return KindModel(tuple(data["features"]), trees)


def _text_of(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _tree(node: Any) -> Any:
    """Convert a tree to tuples, which are faster than lists."""
    if not isinstance(node, list):
        return float(node)
    feature, threshold, below, above = node
    return (int(feature), float(threshold), _tree(below), _tree(above))

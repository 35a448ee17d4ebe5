"""How likely each block of a page is content: gradient-boosted trees over what is counted of it.

The trees are plain numbers in ``block_model.json``, made by ``benchmarks/quality/train_block_model.py`` from labelled
pages (the labels are those of the WCXB of Murrough Foley, CC-BY-4.0; nothing of the pages is in the model). A tree is a
leaf (a number, summed over all trees) or ``[feature, threshold, below, above]``, where rows with a number of at most
``threshold`` go on ``below``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

DATA: Final = "block_model.json"


class Model(NamedTuple):
    """The names of the numbers that a row holds, in order, and the trees over them."""

    features: tuple[str, ...]
    trees: tuple[Any, ...]

    def likelihoods(self, rows: Sequence[Sequence[float]], of_page: Sequence[float] = ()) -> list[float]:
        """How likely the block of each row is content, from 0 to 1; ``of_page`` goes on every row."""
        # Settled once for the page rather than for every row: a third of all comparisons.
        first = len(self.features) - len(of_page)
        trees = [_settled(tree, first, of_page) for tree in self.trees]
        return [_likelihood(row, trees) for row in rows]


def _likelihood(row: Sequence[float], trees: Sequence[Any]) -> float:
    total = 0.0
    for tree in trees:
        node = tree
        while node.__class__ is tuple:
            node = node[2] if row[node[0]] <= node[1] else node[3]
        total += node
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def _settled(node: Any, first: int, known: Sequence[float]) -> Any:
    """A tree without the comparisons of the numbers that are known, which are those from ``first`` on."""
    while node.__class__ is tuple and node[0] >= first:
        node = node[2] if known[node[0] - first] <= node[1] else node[3]
    if node.__class__ is not tuple:
        return node
    return (node[0], node[1], _settled(node[2], first, known), _settled(node[3], first, known))


@cache
def block_model() -> Model:
    """The model of the package, read once."""
    data = json.loads(files(__package__).joinpath(DATA).read_text("utf-8"))
    return Model(tuple(data["features"]), tuple(map(_tree, data["trees"])))


def _tree(node: Any) -> Any:
    """A tree of tuples, which are walked faster than lists."""
    if not isinstance(node, list):
        return float(node)
    feature, threshold, below, above = node
    return (int(feature), float(threshold), _tree(below), _tree(above))

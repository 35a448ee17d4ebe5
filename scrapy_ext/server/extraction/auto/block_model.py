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

    def likelihood(self, row: Sequence[float]) -> float:
        """How likely a block with this row is content, from 0 to 1."""
        total = 0.0
        for tree in self.trees:
            node = tree
            while node.__class__ is tuple:
                node = node[2] if row[node[0]] <= node[1] else node[3]
            total += node
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


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

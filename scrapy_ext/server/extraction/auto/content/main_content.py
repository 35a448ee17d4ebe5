"""Main content of any page: the blocks of text that a model finds likely enough to be it.

The model consists of gradient-boosted trees over the features of each block. The trees are plain numbers in
``block_model.json``, made by ``benchmarks/quality/train_block_model.py`` from labelled pages (the labels are those of
the WCXB of Murrough Foley, CC-BY-4.0; the model contains nothing of the pages). A tree is a leaf (a number, summed over
all trees) or ``[feature, threshold, below, above]``, where rows with a number of at most ``threshold`` continue with
``below``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.content.blocks import Blocks, TextBlock
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.page import Page

DATA: Final = "block_model.json"


class Model(NamedTuple):
    """The names of the numbers of a row, in order, and the trees over them."""

    features: tuple[str, ...]
    trees: tuple[Any, ...]

    def likelihoods(self, rows: Sequence[Sequence[float]], of_page: Sequence[float] = ()) -> list[float]:
        """Return the probability (0 to 1) of each row's block to be content; ``of_page`` is appended to every row."""
        # Evaluated once for the page rather than for every row: a third of all comparisons.
        first = len(self.features) - len(of_page)
        trees = [_partly_evaluated(tree, first, of_page) for tree in self.trees]
        return [_likelihood(row, trees) for row in rows]


def _likelihood(row: Sequence[float], trees: Sequence[Any]) -> float:
    total = 0.0
    for tree in trees:
        node = tree
        while node.__class__ is tuple:
            node = node[2] if row[node[0]] <= node[1] else node[3]
        total += node
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def _partly_evaluated(node: Any, first: int, known: Sequence[float]) -> Any:
    """Evaluate the comparisons of a tree whose numbers are known: those from ``first`` on."""
    while node.__class__ is tuple and node[0] >= first:
        node = node[2] if known[node[0] - first] <= node[1] else node[3]
    if node.__class__ is not tuple:
        return node
    return (node[0], node[1], _partly_evaluated(node[2], first, known), _partly_evaluated(node[3], first, known))


@cache
def block_model() -> Model:
    """Return the model of the package, read once."""
    data = json.loads(files(__package__).joinpath(DATA).read_text("utf-8"))
    return Model(tuple(data["features"]), tuple(map(_tree, data["trees"])))


def _tree(node: Any) -> Any:
    """Convert a tree to tuples, which are faster than lists."""
    if not isinstance(node, list):
        return float(node)
    feature, threshold, below, above = node
    return (int(feature), float(threshold), _tree(below), _tree(above))


#: The blocks of a page that are classified; the rest of a longer page is left out. Of several hundred real pages, the
#: longest has 9,000.
MAX_BLOCKS: Final = 4_000
#: The share of the words that the element of the content must contain.
MOST: Final = 0.97
#: Tags whose blocks follow each other line by line, rather than as paragraphs.
_LINES: Final = frozenset({"li", "dt", "dd", "tr", "option", "summary", "label", "caption"})
_CELLS: Final = frozenset({"td", "th"})


class Content(NamedTuple):
    """The main text of a page, and the smallest element with nearly all of it, where there is one."""

    text: str
    node: HtmlElement | None


def main_content(page: Page) -> Content:
    """Return the primary content of a page; an empty text where there is none."""
    blocks = Blocks(page, MAX_BLOCKS)
    chosen = content_blocks(page, blocks)
    return Content(text_of(chosen), place_of(chosen))


def content_blocks(page: Page, blocks: Blocks) -> list[TextBlock]:
    """Return the blocks of the content, in the order of the page."""
    if not blocks:
        return []
    model = block_model()
    features = Features(page, blocks)
    if features.names != model.features:
        raise RuntimeError("block_model.json was trained on other numbers: run benchmarks/quality/train_block_model.py")
    chances = model.likelihoods(features.rows, features.of_page)
    return [
        block
        for block, taken in zip(blocks, most_likely(chances, [block.words for block in blocks]), strict=True)
        if taken
    ]


def most_likely(chances: Sequence[float], words: Sequence[int]) -> list[bool]:
    """Choose the blocks with the highest expected F1 of their words.

    With reliable blocks on a page, a doubtful one adds little and may cost much; where all are doubtful, half of them
    are
    better than none. So the threshold depends on the page: it is half of the highest F1.
    """
    order = sorted(range(len(chances)), key=lambda at: -chances[at])
    expected = sum(chance * count for chance, count in zip(chances, words, strict=True))
    best = found = taken = 0.0
    least = 2.0
    for at in order:
        found += chances[at] * words[at]
        taken += words[at]
        score = 2 * found / (taken + expected)
        if score > best:
            best, least = score, chances[at]
    return [chance >= least for chance in chances]


def text_of(blocks: Sequence[TextBlock]) -> str:
    """Return the text of blocks: an empty line between paragraphs, items line by line, cells of a row in one line."""
    pieces: list[str] = []
    before: TextBlock | None = None
    for block in blocks:
        if before is not None:
            pieces.append(_between(before, block))
        pieces.append(block.text)
        before = block
    return "".join(pieces)


def _between(before: TextBlock, block: TextBlock) -> str:
    if before.box.tag in _CELLS and block.box.tag in _CELLS:
        return " " if before.box.parent is block.box.parent else "\n"
    return "\n" if before.box.tag in _LINES and block.box.tag in _LINES else "\n\n"


def place_of(blocks: Sequence[TextBlock]) -> HtmlElement | None:
    """Return the smallest element with nearly all words of these blocks."""
    if not blocks:
        return None
    total = sum(block.words for block in blocks)
    held: dict[HtmlElement, int] = {}
    depths: dict[HtmlElement, int] = {}
    for block in blocks:
        for box in block.box.chain():
            held[box.node] = held.get(box.node, 0) + block.words
            depths[box.node] = box.depth
    return max((node for node, words in held.items() if words >= MOST * total), key=lambda node: depths[node])

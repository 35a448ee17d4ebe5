"""The main content of a page of any kind: the blocks of text that a reader came for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.content.block_features import Features
from scrapy_ext.server.extraction.auto.content.block_model import block_model
from scrapy_ext.server.extraction.auto.content.blocks import Block, Blocks
from scrapy_ext.server.extraction.auto.page.page import Page

#: The blocks that are judged; what follows them on a longer page is judged no more. Of several hundred real pages, the
#: longest has 9,000.
MAX_BLOCKS: Final = 4_000
#: The part of the words that the element of the content must hold.
MOST: Final = 0.97
#: Tags whose blocks follow each other line by line, rather than as paragraphs.
_LINES: Final = frozenset({"li", "dt", "dd", "tr", "option", "summary", "label", "caption"})
_CELLS: Final = frozenset({"td", "th"})


class Content(NamedTuple):
    """The main text of a page, and the smallest element that holds nearly all of it, where that can be told."""

    text: str
    node: HtmlElement | None


def main_content(page: Page) -> Content:
    """The primary content of a page of any kind; an empty text where there is none."""
    blocks = Blocks(page, MAX_BLOCKS)
    chosen = content_blocks(page, blocks)
    return Content(text_of(chosen), place_of(chosen))


def content_blocks(page: Page, blocks: Blocks) -> list[Block]:
    """The blocks of the content, in the order of the page."""
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
    """Which blocks to take, so that the F1 that is to be expected of their words is the highest.

    With sure blocks on a page, a doubtful one adds little and may cost much; where all are doubtful, half of them are
    better than none. So the least chance that is enough follows from the page: it is half of that highest F1.
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


def text_of(blocks: Sequence[Block]) -> str:
    """The text of blocks: an empty line between paragraphs, items line by line, the cells of a row in one line."""
    pieces: list[str] = []
    before: Block | None = None
    for block in blocks:
        if before is not None:
            pieces.append(_between(before, block))
        pieces.append(block.text)
        before = block
    return "".join(pieces)


def _between(before: Block, block: Block) -> str:
    if before.box.tag in _CELLS and block.box.tag in _CELLS:
        return " " if before.box.parent is block.box.parent else "\n"
    return "\n" if before.box.tag in _LINES and block.box.tag in _LINES else "\n\n"


def place_of(blocks: Sequence[Block]) -> HtmlElement | None:
    """The smallest element that holds nearly all words of these blocks."""
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

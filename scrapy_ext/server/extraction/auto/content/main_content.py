"""Main content of any page: the blocks of its text, by models of pages and blocks and by the rules of its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.content.article_marks import ArticleMarks
from scrapy_ext.server.extraction.auto.content.blocks import Blocks, TextBlock
from scrapy_ext.server.extraction.auto.content.choice import Candidate, choose
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.content.models import block_model, kind_model
from scrapy_ext.server.extraction.auto.page import Focus, Page

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


def main_content(page: Page, focus: Focus | None = None) -> Content:
    """Return the primary content of a page; an empty text where there is none."""
    _, chosen = chosen_blocks(page, focus)
    return Content(text_of(chosen), place_of(chosen))


def chosen_blocks(page: Page, focus: Focus | None = None) -> tuple[Blocks, list[TextBlock]]:
    """Return the blocks of a page, and those of its content."""
    blocks = Blocks(page, MAX_BLOCKS)
    return blocks, content_blocks(page, blocks, focus)


def content_blocks(page: Page, blocks: Blocks, focus: Focus | None = None) -> list[TextBlock]:
    """Return the blocks of the content, in the order of the page."""
    if not blocks:
        return []
    article = ArticleMarks(page, blocks, focus)
    features = Features(page, blocks, article)
    of_kind, of_block = kind_model(), block_model()
    if features.names != of_block.features or features.names_of_page != of_kind.features:
        raise RuntimeError("The models were trained on other numbers: run benchmarks/quality/train_block_model.py")
    kinds = of_kind.likelihoods(features.of_page)
    chances = of_block.likelihoods(features.rows, features.of_page)
    taken = choose(candidates(blocks, chances, article), kinds)
    return [block for block, is_taken in zip(blocks, taken, strict=True) if is_taken]


def candidates(blocks: Sequence[TextBlock], chances: Sequence[float], article: ArticleMarks) -> list[Candidate]:
    """Return what the choice needs of each block."""
    return [
        Candidate(block.text, block.words, chance, share, is_code=block.box.tag == "pre")
        for block, chance, share in zip(blocks, chances, article.shares, strict=True)
    ]


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

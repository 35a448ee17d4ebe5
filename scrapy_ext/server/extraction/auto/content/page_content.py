"""Content of a page of any kind: its main text, and the links around it.

The text is of the blocks that models of pages and blocks, and the rules of the page's kind, choose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import or_
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks, TextBlock
from scrapy_ext.server.extraction.auto.content.choice import (
    Candidate,
    block_model,
    choose,
    copies,
    in_consent_dialogs,
    kind_model,
)
from scrapy_ext.server.extraction.auto.content.entry_headings import entry_headings
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.content.product_parts import UNLIKELY, product_parts
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.items import DetailsMetadata, PageContent
from scrapy_ext.server.extraction.auto.navigation.links import footer_links, header_links, sidebar_links
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page import Focus, Page, now
from scrapy_ext.server.extraction.auto.page.questions import is_question
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, joined

#: Number of words from which on a longer text is no surer.
MANY_WORDS: Final = 1000
_PLAIN_ID = re.compile(r"[\w-]{1,80}")


def extract(page: Page) -> PageContent:
    """Return the content of a page. Only ``url`` and ``metadata`` are always present."""
    focus = Focus(page, page.meta("og:title", "twitter:title"), page.title)
    content, pagination = main_content(page, focus), Pagination(page)
    signs = {"words": math.log10(max(1, min(content.words, MANY_WORDS))), "chance": content.chance}
    sure = probability.of("pageContent", page, signs) if content.text else probability.LEAST
    return PageContent(
        url=page.url,
        canonicalUrl=page.canonical_url,
        headline=headline_of(page, None, focus),
        title=page.title,
        itemMain=content.text or None,
        itemMainXPath=_xpath(page, content.node) if content.node is not None else None,
        breadcrumbs=breadcrumbs_of(page),
        navigationHeader=header_links(page),
        navigationFooter=footer_links(page),
        navigationSidebar=sidebar_links(page),
        pagination=pagination.links,
        nextPage=pagination.next,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=sure),
    )


def _xpath(page: Page, node: HtmlElement) -> str:
    """Return an XPath by the id of the node where that is unique, as it outlives changes; else by its position."""
    own = node.get("id") or ""
    with_id = page.with_attribute.get("id", ())
    if _PLAIN_ID.fullmatch(own) and sum(page.outline.attributes[position]["id"] == own for position in with_id) == 1:
        return f'//*[@id="{own}"]'
    return str(page.tree.getroottree().getpath(node))


# ── its main text ──

#: The blocks of a page that are classified; the rest of a longer page is left out. Of several hundred real pages, the
#: longest has 9,000.
MAX_BLOCKS: Final = 4_000
#: The share of the words that the element of the content must contain: not all, as one stray block elsewhere on the
#: page, such as a date in the header, would make it the body.
MOST: Final = 0.97
#: Blocks of a small page, the longest question there, in characters, and elements around it that are around its answer.
FEW_BLOCKS: Final = 60
LONGEST_QUESTION: Final = 200
NEAR: Final = 4
_TITLES: Final = HEADINGS | {"summary", "dt"}
#: Tags whose blocks follow each other line by line, rather than as paragraphs.
_LINES: Final = frozenset({"li", "dt", "dd", "tr", "option", "summary", "label", "caption"})
_CELLS: Final = frozenset({"td", "th"})


class Content(NamedTuple):
    """The main text of a page, and the smallest element with nearly all of it, where there is one."""

    text: str
    node: HtmlElement | None
    #: Words of its blocks, and the average of the chances of these.
    words: int
    chance: float


class ContentBlocks(NamedTuple):
    """The blocks of the content, in the order of the page, with the average chance of their words to be content."""

    blocks: list[TextBlock]
    chance: float = 0.0


def main_content(page: Page, focus: Focus | None = None) -> Content:
    """Return the primary content of a page; an empty text where there is none."""
    chosen, chance = content_blocks(page, Blocks(page, MAX_BLOCKS), focus)
    return Content(text_of(chosen), place_of(chosen), sum(block.words for block in chosen), chance)


def chosen_blocks(page: Page, focus: Focus | None = None) -> tuple[Blocks, list[TextBlock]]:
    """Return the blocks of a page, and those of its content."""
    blocks = Blocks(page, MAX_BLOCKS)
    return blocks, content_blocks(page, blocks, focus).blocks


def content_blocks(page: Page, blocks: Blocks, focus: Focus | None = None) -> ContentBlocks:
    """Return the blocks of the content."""
    if not blocks:
        return ContentBlocks([])
    article = ArticleMarks(page, blocks, focus)
    features = Features(page, blocks, article)
    of_kind, of_block = kind_model(), block_model()
    if features.names != of_block.features or features.names_of_page != of_kind.features:
        raise RuntimeError("The models were trained on other numbers: run benchmarks/quality/train_block_model.py")
    kinds = of_kind.likelihoods(features.of_page)
    chances = of_block.likelihoods(features.rows, features.of_page)
    taken = choose(candidates(page, blocks, chances, article), kinds)
    parts = product_parts(page, blocks, kinds, taken)
    is_product = kinds.get("product", 0.0) >= UNLIKELY
    headings = [False] * len(blocks) if is_product else entry_headings(blocks, taken)
    with_questions = _with_questions(blocks, list(map(or_, taken, parts)))
    rows = zip(blocks, chances, with_questions, headings, strict=True)
    chosen = [(block, chance) for block, chance, *reasons in rows if any(reasons)]
    words = max(1, sum(block.words for block, _ in chosen))
    chance = sum(block.words * chance for block, chance in chosen) / words
    return ContentBlocks([block for block, _ in chosen], chance)


def _with_questions(blocks: Sequence[TextBlock], chosen: list[bool]) -> list[bool]:
    """Return the choice with the questions above the answers that are chosen, on a page of few blocks: the model is
    unsure of a block of few words there. Labels of fields and links ask as well, and have no answer.
    """
    if len(blocks) > FEW_BLOCKS:
        return chosen
    found = list(chosen)
    for at in range(len(blocks) - 2, -1, -1):
        text = blocks[at].text
        is_title = blocks[at].box.tag in _TITLES and len(text) <= LONGEST_QUESTION
        if found[at + 1] and not found[at] and is_title and is_question(text):
            near = {box.node for box in blocks[at].box.chain()[:NEAR]}
            found[at] = any(box.node in near for box in blocks[at + 1].box.chain()[:NEAR])
    return found


def candidates(
    page: Page, blocks: Sequence[TextBlock], chances: Sequence[float], article: ArticleMarks
) -> list[Candidate]:
    """Return what the choice needs of each block."""
    marks = zip(blocks, chances, article.shares, copies(blocks), in_consent_dialogs(page, blocks), strict=True)
    return [
        Candidate(block.words, chance, share, is_copy, is_consent)
        for block, chance, share, is_copy, is_consent in marks
    ]


def text_of(blocks: Sequence[TextBlock]) -> str:
    """Return the text of blocks: an empty line between paragraphs, items line by line, cells of a row in one line."""
    return joined(blocks, lambda block: block.text, _between)


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

"""The main content of a page: its text, and where on the page it stands."""

from __future__ import annotations

import copy
import logging
import re
from dataclasses import dataclass
from typing import Final

from lxml import etree
from lxml.html import HtmlElement
from resiliparse.extract.html2text import extract_plain_text
from trafilatura import bare_extraction

from scrapy_ext.server.extraction.auto.clean_html import LIBRARY_FAULTS, cleaned, html_of, paragraphs
from scrapy_ext.server.extraction.auto.landmarks import between_landmarks
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.text import lines, node_text

logger = logging.getLogger(__name__)

# How the text is found: trafilatura is the most precise on prose, and misses pages that are built otherwise;
# resiliparse is fast and takes in too much rather than too little. So the second tells when the first missed something.

#: The text of a page is less of one piece than an article: a careful extraction with less than this part of what the
#: coarse one has is none.
TOO_LITTLE_CONTENT: Final = 0.7
#: What has less than this part of the text between the landmarks of a page is not its content: that text is.
TOO_LITTLE_OF_PAGE: Final = 0.35
#: The careful extraction and the cleaning of HTML take time by the square of the elements of some pages. Those with
#: more than this (of several hundred real pages, none has) get the coarse one, and plain paragraphs.
MAX_ELEMENTS: Final = 20_000
#: The part of the text that the element of the content must hold. The rest may stand elsewhere by chance.
MOST: Final = 0.97
#: The part of the text that must be found in elements for one of them to be told.
FOUND: Final = 0.4

_BLOCKS: Final = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "blockquote", "pre", "td", "th", "dd", "dt")
_BOXES: Final = ("div", "section", "article")
_BREAKS: Final = frozenset({"p", "head", "item", "list", "quote", "code", "row", "table", "lb", "fw", "div"})
_SPACE = re.compile(r"\s+")
#: Blocks are known by the beginning of their text, without its white space.
_KEY_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class Body:
    """The main text of a page, and the smallest element that holds it, as far as that can be told.

    ``part`` is a copy of that element without the blocks whose text is not of the main text; only articles have it.
    """

    text: str
    node: HtmlElement | None = None
    part: HtmlElement | None = None


def main_content(page: Page) -> Body:
    """The primary content of a page of any kind."""
    coarse = coarse_text(page)
    # Of forums with its scripts, as markup in them tells trafilatura that comments are the content.
    is_forum = any("DiscussionForumPosting" in script.source for script in page.scripts)
    text = careful_text(page, page.fresh_tree() if is_forum else copy.deepcopy(page.tree), precise=False)
    whole = between_landmarks(page)
    if len(text) < TOO_LITTLE_CONTENT * len(coarse):
        text = coarse
    if len(text) < TOO_LITTLE_OF_PAGE * len(whole):
        text = whole
    return Body(text, _place(page, text))


def body_html(page: Page, body: Body) -> str | None:
    """The content as clean HTML, with the pictures and embedded things that stand in it."""
    if not body.text:
        return None
    if body.part is not None and len(page.elements) <= MAX_ELEMENTS:
        clean = cleaned(body.part, page.base_url)
        if clean is not None:
            return html_of(clean)
    return paragraphs(body.text)


def careful_text(page: Page, tree: HtmlElement, *, precise: bool) -> str:
    """The text that trafilatura finds in a tree, which is of no use afterwards."""
    if not _has_text(page) or len(page.elements) > MAX_ELEMENTS:
        return ""
    try:
        found = bare_extraction(
            tree, url=page.url, favor_precision=precise, include_comments=False, with_metadata=False
        )
    except LIBRARY_FAULTS:
        logger.debug("careful extraction gave up", exc_info=True)
        return ""
    return "" if found is None or isinstance(found, dict) else _rendered(found.body)


def coarse_text(page: Page) -> str:
    """The text that resiliparse finds: rather too much."""
    if not _has_text(page):
        return ""
    source = page.source.decode("utf-8", "replace")
    return lines(extract_plain_text(source, main_content=True, alt_texts=False, list_bullets=False))


def _has_text(page: Page) -> bool:
    return bool(page.tree.xpath("boolean(//body//text()[normalize-space(.)])"))


def _rendered(tree: etree._Element) -> str:
    """The text of trafilatura's tree: paragraphs with an empty line between them, items and rows line by line."""
    paragraphs = []
    for block in tree:
        pieces: list[str] = []
        for event, element in etree.iterwalk(block, events=("start", "end")):
            if element.tag in _BREAKS:
                pieces.append("\n")
            elif element.tag == "cell":
                pieces.append(" ")
            pieces.append((element.text if event == "start" else element.tail if element is not block else "") or "")
        paragraphs.append(lines("".join(pieces)))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _place(page: Page, text: str) -> HtmlElement | None:
    """The smallest element that holds nearly all lines of a text; None when too few of them are found anywhere."""
    lengths = {_key(line): len(line) for line in text.splitlines() if line}
    wanted = sum(lengths.values())
    held: dict[HtmlElement, int] = {}
    total = 0
    for node in page.tree.iter(*_BLOCKS, *_BOXES):
        if not lengths:
            break
        length = lengths.pop(_key(node_text(node, 3 * _KEY_LENGTH)), 0) if _innermost(node) else 0
        if length:
            total += length
            for ancestor in (node, *node.iterancestors()):
                held[ancestor] = held.get(ancestor, 0) + length
    if not total or total < FOUND * wanted:
        return None
    holders = [node for node, length in held.items() if length >= MOST * total]
    return max(holders, key=lambda node: sum(1 for _ in node.iterancestors()))


def _innermost(node: HtmlElement) -> bool:
    """Whether a node is a block of text itself, rather than a box around blocks."""
    return node.tag in _BLOCKS or next(node.iterdescendants(*_BLOCKS, *_BOXES), None) is None


def _key(text: str) -> str:
    return _SPACE.sub("", text[: 4 * _KEY_LENGTH])[:_KEY_LENGTH]

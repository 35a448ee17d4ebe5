"""The main content of a page: its text, and where on the page it stands."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Iterable
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

#: Of an article, a careful extraction with less than this part of what the coarse one has is done again with less care.
TOO_LITTLE: Final = 0.45
#: The text of other pages is less of one piece, and the coarse extraction sooner the better one.
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
#: The part of the text, in characters, in which the beginnings of blocks are looked for.
MAX_SQUEEZED: Final = 200_000

_BLOCKS: Final = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "blockquote", "pre", "td", "th", "dd", "dt")
_BOXES: Final = ("div", "section", "article")
_MEDIA: Final = ("img", "picture", "video", "audio", "iframe", "figure", "embed")
_BREAKS: Final = frozenset({"p", "head", "item", "list", "quote", "code", "row", "table", "lb", "fw", "div"})
_SPACE = re.compile(r"\s+")
#: Blocks are known by the beginning of their text, without its white space.
_KEY_LENGTH: Final = 40

#: The lines before the text: headline, byline, date.
MAX_HEAD_LINES: Final = 3
MAX_BYLINE_LENGTH: Final = 160
_BYLINE_WORDS = re.compile(
    r"\b(?:by|von|par|por|di|av|af|written|posted|published|updated|last|on|at|and|in|am|pm"
    r"|\d+ min(?:ute)?s?(?: read)?)\b"
)
_WORD = re.compile(r"\w")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Body:
    """The main text of a page, and the smallest element that holds it, as far as that can be told.

    ``part`` is a copy of that element without the blocks whose text is not of the main text; only articles have it.
    """

    text: str
    node: HtmlElement | None = None
    part: HtmlElement | None = None


def article_body(page: Page, headline: str | None, known: Iterable[str] = ()) -> Body:
    """The text of an article: rather a sentence too few than a menu too many.

    Lines at its beginning that say nothing but the headline, or what is ``known`` from elsewhere (who wrote it,
    when), are not part of it.
    """
    coarse = _coarse(page)
    text = _careful(page, copy.deepcopy(page.tree), precise=True)
    if len(text) < TOO_LITTLE * len(coarse):
        wider = _careful(page, copy.deepcopy(page.tree), precise=False)
        text = wider if len(wider) > 1.3 * len(text) else text
        text = coarse if len(text) < 0.9 * TOO_LITTLE * len(coarse) else text
    text = _without_head(text, headline or "", known)
    node = _place(page, text)
    return Body(text, node, _kept_part(text, node) if node is not None else None)


def main_content(page: Page) -> Body:
    """The primary content of a page of any kind."""
    coarse = _coarse(page)
    # Of forums with its scripts, as markup in them tells trafilatura that comments are the content.
    is_forum = any("DiscussionForumPosting" in script.source for script in page.scripts)
    text = _careful(page, page.fresh_tree() if is_forum else copy.deepcopy(page.tree), precise=False)
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


def _careful(page: Page, tree: HtmlElement, *, precise: bool) -> str:
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


def _coarse(page: Page) -> str:
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


def _without_head(text: str, headline: str, known: Iterable[str]) -> str:
    told = sorted({part.casefold() for part in known if part}, key=len, reverse=True)
    for _ in range(MAX_HEAD_LINES):
        first, _, rest = text.partition("\n")
        is_headline = bool(headline) and _key(first) == _key(headline) and len(first) < 2 * len(headline)
        if not (rest and (is_headline or _says_only(first, told))):
            break
        text = rest.lstrip()
    return text


def _says_only(line: str, told: list[str]) -> bool:
    """Whether a line says nothing, or nothing but what is told already, as bylines do."""
    if not _WORD.search(line):
        return True
    if len(line) > MAX_BYLINE_LENGTH:
        return False
    rest = line.casefold()
    for part in told:
        rest = rest.replace(part, " ")
    # Without any of it, the line is something else, however short.
    return rest != line.casefold() and not _LETTER.search(_BYLINE_WORDS.sub(" ", rest))


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


def _kept_part(text: str, node: HtmlElement) -> HtmlElement:
    """A copy of an element without the blocks whose text is not of the main text. Pictures and the like stay."""
    part = copy.deepcopy(node)
    part.tail = None
    kept = {_key(line) for line in text.splitlines()}
    squeezed = _SPACE.sub("", text[:MAX_SQUEEZED])
    for block in list(part.iterdescendants(*_BLOCKS, *_BOXES)):
        if _innermost(block) and next(block.iter(*_MEDIA), None) is None:
            key = _key(node_text(block, 3 * _KEY_LENGTH))
            if key not in kept and key not in squeezed:
                block.drop_tree()
    return part


def _innermost(node: HtmlElement) -> bool:
    """Whether a node is a block of text itself, rather than a box around blocks."""
    return node.tag in _BLOCKS or next(node.iterdescendants(*_BLOCKS, *_BOXES), None) is None


def _key(text: str) -> str:
    return _SPACE.sub("", text[: 4 * _KEY_LENGTH])[:_KEY_LENGTH]

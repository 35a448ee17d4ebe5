"""The text of an article with where it stands, and the libraries that are asked for one.

trafilatura is careful: the most precise on prose, and misses pages that are built otherwise. resiliparse is fast and
takes in too much rather than too little.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from lxml import etree
from lxml.html import HtmlElement
from resiliparse.extract.html2text import extract_plain_text
from trafilatura import bare_extraction

from scrapy_ext.server.extraction.auto.page.clean_html import LIBRARY_FAULTS, cleaned, html_of, paragraphs
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import lines

logger = logging.getLogger(__name__)

#: The careful extraction and the cleaning of HTML take time by the square of the elements of some pages. Those with
#: more than this (of several hundred real pages, none has) get the coarse one, and plain paragraphs.
MAX_ELEMENTS: Final = 20_000

_BREAKS: Final = frozenset({"p", "head", "item", "list", "quote", "code", "row", "table", "lb", "fw", "div"})


@dataclass(frozen=True, slots=True)
class Body:
    """The main text of a page, and the element that holds it, as far as that can be told.

    ``part`` is a copy of that element without the blocks whose text is not of the main text; only articles have it.
    """

    text: str
    node: HtmlElement | None = None
    part: HtmlElement | None = None


def body_html(page: Page, body: Body) -> str | None:
    """The content as clean HTML, with the pictures and embedded things that stand in it."""
    if not body.text:
        return None
    if body.part is not None and len(page.elements) <= MAX_ELEMENTS:
        clean = cleaned(body.part, page.base_url)
        if clean is not None:
            return html_of(clean)
    return paragraphs(body.text)


def careful_text(page: Page, tree: HtmlElement) -> str:
    """The text that trafilatura finds in a tree, which is of no use afterwards."""
    if not _has_text(page) or len(page.elements) > MAX_ELEMENTS:
        return ""
    try:
        found = bare_extraction(tree, url=page.url, favor_precision=True, include_comments=False, with_metadata=False)
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

"""Cleaning of a part of a page, step by step, and the part that comes of it.

The result is an ``article`` with blocks right inside of it: paragraphs, headings from the second level on, lists,
tables, quotes, code and figures. Inside of them are text, line breaks, emphasis, links and media. Posts of other sites
stay as their sites want them to be embedded.
"""

from __future__ import annotations

from typing import Final

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.cleaning.attributes import NoAddress, attributes_of
from scrapy_ext.server.extraction.auto.page.cleaning.figures import (
    FIGURES,
    frame_media,
    settle_captions,
    settle_figures,
)
from scrapy_ext.server.extraction.auto.page.cleaning.nodes import Node
from scrapy_ext.server.extraction.auto.page.cleaning.paragraphs import into_paragraphs, set_apart
from scrapy_ext.server.extraction.auto.page.cleaning.structure import (
    HEADINGS,
    WHOLES,
    dissolve_incomplete,
    settle_headings,
    simplify,
)

_PARSER: Final = lxml_html.HTMLParser()
_PARSER.set_element_class_lookup(etree.ElementDefaultClassLookup(element=HtmlElement))


def clean(part: Node, base_url: str) -> HtmlElement:
    """Return a part of a page as clean HTML with absolute addresses. The nodes cannot be used afterwards."""
    article = simplify(part)
    tags = {node.tag for node in article.below()}
    if not tags.isdisjoint(HEADINGS):
        settle_headings(article)
    if not tags.isdisjoint(FIGURES):
        settle_figures(article)
    if not tags.isdisjoint(WHOLES):
        dissolve_incomplete(article)
    if not tags.isdisjoint(FIGURES):
        settle_captions(article)
    if "iframe" in tags:
        _empty_frames(article)
    into_paragraphs(article)
    frame_media(article)
    set_apart(article)
    element: HtmlElement = _PARSER.makeelement("article")
    _write(article, element, base_url)
    return element


def _empty_frames(article: Node) -> None:
    """Leave out the text for browsers without frames."""
    for node in article.below():
        if node.tag == "iframe":
            node.text, node.children = None, []


def _write(node: Node, element: HtmlElement, base_url: str) -> None:
    """Write the text and children of a node into an element."""
    texts = [node.text or ""]
    last: HtmlElement | None = None
    for child in node.children:
        try:
            attributes = (
                attributes_of(child.element, base_url, tag=child.tag, embedded=child.embedded)
                if child.element is not None
                else {}
            )
        except NoAddress:
            texts.append(child.tail or "")
            continue
        _set_text(element, last, texts)
        last = etree.SubElement(element, child.tag)
        for name, value in attributes.items():
            last.set(name, value)
        if child.text or child.children:
            _write(child, last, base_url)
        texts = [child.tail or ""]
    _set_text(element, last, texts)


def _set_text(element: HtmlElement, last: HtmlElement | None, texts: list[str]) -> None:
    text = "".join(texts)
    if not text:
        return
    if last is None:
        element.text = text
    else:
        last.tail = text

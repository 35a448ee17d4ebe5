"""Parts of pages as clean HTML: structure, links, pictures and embedded things, without style and script."""

from __future__ import annotations

import html
import logging
from typing import Final

from clear_html import clean_node, cleaned_node_to_html, cleaned_node_to_text
from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH
from scrapy_ext.server.extraction.auto.page.urls import absolute

logger = logging.getLogger(__name__)

#: What libraries of extraction raise on markup that they did not expect. None is theirs to raise, nor ours to foresee.
LIBRARY_FAULTS: Final = (
    ValueError, TypeError, AttributeError, LookupError, AssertionError, RecursionError, etree.LxmlError,
)  # fmt: skip
_ADDRESSES: Final = ("href", "src")


def cleaned(node: HtmlElement, base_url: str) -> HtmlElement | None:
    """A clean copy of a node, its addresses absolute; None where it cannot be cleaned."""
    try:
        copy = clean_node(node, base_url)
    except LIBRARY_FAULTS:
        logger.debug("a node was left as it is", exc_info=True)
        return None
    for part in list(copy.iterdescendants("*")):
        _settle_addresses(part, base_url)
    return copy


def _settle_addresses(part: HtmlElement, base_url: str) -> None:
    """Make the addresses of an element absolute; what shows a thing of no address goes."""
    for name in _ADDRESSES:
        reference = part.get(name)
        if reference is None:
            continue
        url = absolute(base_url, reference)
        if url:
            part.set(name, url)
        elif name == "src":
            part.drop_tree()
        else:
            del part.attrib[name]


def html_of(node: HtmlElement) -> str:
    """The HTML of a clean node."""
    return str(cleaned_node_to_html(node))


def text_of(node: HtmlElement) -> str:
    """The text of a clean node, laid out in paragraphs, without captions."""
    return str(cleaned_node_to_text(node) or "")


def paragraphs(text: str) -> str:
    """The HTML of a text: a paragraph of each line."""
    lines = "\n\n".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines() if line)
    return f"<article>\n\n{lines}\n\n</article>"


def stated_html(thing: Thing, text: str, base_url: str) -> str:
    """The HTML of the description of a thing of markup: what it holds itself, or its lines as paragraphs."""
    raw = next((value for value in thing.values("description") if isinstance(value, str)), "")
    source = html.unescape(raw[:MAX_VALUE_LENGTH])
    if "<" in source:
        try:
            node = lxml_html.fragment_fromstring(source, create_parent="article")
        except etree.LxmlError:
            return paragraphs(text)
        clean = cleaned(node, base_url)
        if clean is not None:
            return html_of(clean)
    return paragraphs(text)

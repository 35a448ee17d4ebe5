"""Parts of pages as clean HTML: structure, links, images and embedded content, without style and script."""

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

#: Exceptions that libraries of extraction raise, undocumented, on markup that they do not expect.
LIBRARY_FAULTS: Final = (
    ValueError, TypeError, AttributeError, LookupError, AssertionError, RecursionError, etree.LxmlError,
)  # fmt: skip
_ADDRESSES: Final = ("href", "src")


def cleaned(node: HtmlElement, base_url: str) -> HtmlElement | None:
    """Return a clean copy of a node with absolute addresses; None where it cannot be cleaned."""
    try:
        copy = clean_node(node, base_url)
    except LIBRARY_FAULTS:
        logger.debug("A node could not be cleaned; its text is used instead.", exc_info=True)
        return None
    for part in list(copy.iterdescendants("*")):
        _settle_addresses(part, base_url)
    return copy


def _settle_addresses(part: HtmlElement, base_url: str) -> None:
    """Make the addresses of an element absolute, and drop an element whose ``src`` has no address."""
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
    return str(cleaned_node_to_html(node))


def text_of(node: HtmlElement) -> str:
    """Return the text of a clean node in paragraphs, without captions."""
    return str(cleaned_node_to_text(node) or "")


def paragraphs(text: str) -> str:
    """Return the HTML of a text, with a paragraph for each line."""
    lines = "\n\n".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines() if line)
    return f"<article>\n\n{lines}\n\n</article>"


def stated_html(thing: Thing, text: str, base_url: str) -> str:
    """Return the HTML of the description in structured data: its own, or its lines as paragraphs."""
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

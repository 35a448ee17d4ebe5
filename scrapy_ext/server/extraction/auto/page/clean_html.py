"""Parts of pages as clean HTML: structure, links, images and embedded content, without style and script."""

from __future__ import annotations

import copy
import html
import logging
from typing import Final

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.cleaning.clean import clean
from scrapy_ext.server.extraction.auto.page.cleaning.nodes import Node, copy_of
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH

logger = logging.getLogger(__name__)

#: Exceptions that libraries of extraction raise, undocumented, on markup that they do not expect.
LIBRARY_FAULTS: Final = (
    ValueError, TypeError, AttributeError, LookupError, AssertionError, RecursionError, etree.LxmlError,
)  # fmt: skip


def cleaned(part: HtmlElement | Node, base_url: str) -> HtmlElement | None:
    """Return a part of a page as clean HTML with absolute addresses; None where it cannot be cleaned.

    An element stays as it is. Nodes cannot be used afterwards.
    """
    try:
        return clean(part if isinstance(part, Node) else copy_of(part), base_url)
    except LIBRARY_FAULTS:
        logger.debug("A part of a page could not be cleaned; its text is used instead.", exc_info=True)
        return None


def html_of(node: HtmlElement) -> str:
    return str(lxml_html.tostring(node, encoding="unicode", with_tail=False))


def text_of(node: HtmlElement) -> str:
    """Return the text of a clean node in paragraphs, without captions."""
    # Imported here: articles do without it.
    import html_text

    shown = copy.deepcopy(node)
    for caption in list(shown.iterdescendants("figcaption")):
        caption.drop_tree()
    return str(html_text.extract_text(shown))


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

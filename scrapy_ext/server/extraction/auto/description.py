"""The description of a product: its text and its HTML."""

from __future__ import annotations

import logging
import re
from typing import Final, NamedTuple

import html_text
from clear_html import clean_node, cleaned_node_to_html, cleaned_node_to_text
from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.focus import Focus
from scrapy_ext.server.extraction.auto.markup import Thing
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.text import MAX_VALUE_LENGTH, plain

logger = logging.getLogger(__name__)

#: A text that is shorter describes nothing.
MIN_LENGTH: Final = 40
MAX_NODES: Final = 60
_NAMES: Final = (
    "description",
    "beschreibung",
    "descripcion",
    "descrizione",
    "product-detail",
    "productdetail",
    "product-info",
    "about-product",
)
_NO_DESCRIPTION = re.compile(
    r"meta|seo|category|delivery|shipping|return|brand|seller|footer|link|button|title|heading|tab(?:s|list|-nav)\b"
)


class Description(NamedTuple):
    """A description as text and as clean HTML; either may be unknown."""

    text: str | None = None
    html: str | None = None


def description_of(page: Page, product: Thing | None, focus: Focus) -> Description:
    """The fuller of what the markup and the page say; markup cuts it short at times."""
    stated = product.text("description") if product else None
    node = _node(page, focus)
    if node is not None:
        shown = _of_node(page, node)
        if shown.text and len(shown.text) > len(stated or ""):
            return shown
    if stated:
        return Description(stated, _html_of(product, stated))
    return Description(plain(page.meta("og:description", "description")) or None)


def _node(page: Page, focus: Focus) -> HtmlElement | None:
    """The innermost named part with the most text that is neither the whole page nor of something else."""
    best: tuple[int, HtmlElement] | None = None
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if node in focus.path or node.tag in {"meta", "a", "button"} or _NO_DESCRIPTION.search(page.names(node)):
            continue
        length = len("".join(node.itertext()))
        if MIN_LENGTH <= length <= MAX_VALUE_LENGTH and not focus.elsewhere(node):
            # What is called so first and foremost counts before what is so by the way.
            score = min(length, 4_000) + (8_000 if node.get("itemprop") == "description" else 0)
            if best is None or score > best[0]:
                best = (score, node)
    return best[1] if best else None


def _of_node(page: Page, node: HtmlElement) -> Description:
    try:
        cleaned = clean_node(node, page.base_url)
        return Description(cleaned_node_to_text(cleaned) or None, cleaned_node_to_html(cleaned) or None)
    except (ValueError, TypeError, AttributeError, IndexError, AssertionError, etree.LxmlError):
        logger.debug("description left as text", exc_info=True)
        return Description(str(html_text.extract_text(node)) or None)


def _html_of(product: Thing | None, text: str) -> str | None:
    """The HTML of a description of markup: what it holds itself, or its lines as paragraphs."""
    raw = next((value for value in product.values("description") if isinstance(value, str)), "") if product else ""
    import html

    source = html.unescape(raw[:MAX_VALUE_LENGTH])
    if "<" not in source:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines())
        source = f"<article>{lines}</article>"
    try:
        node = lxml_html.fragment_fromstring(source, create_parent="article")
        return str(cleaned_node_to_html(clean_node(node)))
    except (ValueError, TypeError, AttributeError, IndexError, AssertionError, etree.LxmlError):
        logger.debug("description left without HTML", exc_info=True)
        return None

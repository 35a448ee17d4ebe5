"""The description of a product: its text and its HTML."""

from __future__ import annotations

from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html, text_of
from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, plain
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: A text that is shorter describes nothing.
MIN_LENGTH: Final = 40
MAX_NODES: Final = 60
#: Longer texts do not count as the better ones for it.
ENOUGH: Final = 4_000

_VOCABULARY: Final = load_vocabulary("products")
_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION = _VOCABULARY.pattern("no_description")


class Description(NamedTuple):
    """A description as text and as clean HTML; either may be unknown."""

    text: str | None = None
    html: str | None = None


def description_of(page: Page, product: Thing | None, focus: Focus) -> Description:
    """The fuller of what the markup and the page say; markup cuts it short at times."""
    stated = product.text("description") if product else None
    node = _node(page, focus)
    if node is not None:
        clean = cleaned(node, page.base_url)
        text = text_of(clean) if clean is not None else ""
        if clean is not None and len(text) > len(stated or ""):
            return Description(text, html_of(clean))
    if product is not None and stated:
        return Description(stated, stated_html(product, stated, page.base_url))
    return Description(plain(page.meta("og:description", "description")) or None)


def _node(page: Page, focus: Focus) -> HtmlElement | None:
    """The named part with the most text that is neither the whole page nor of something else."""
    best: tuple[int, HtmlElement] | None = None
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if node in focus.path or node.tag in {"meta", "a", "button"} or _NO_DESCRIPTION.search(page.names(node)):
            continue
        length = len("".join(node.itertext()))
        if MIN_LENGTH <= length <= MAX_VALUE_LENGTH and not focus.elsewhere(node):
            # What is called so first and foremost counts before what is so by the way.
            score = min(length, ENOUGH) + (2 * ENOUGH if node.get("itemprop") == "description" else 0)
            if best is None or score > best[0]:
                best = (score, node)
    return best[1] if best else None

"""Whether a product can be ordered, as the page shows it, when markup does not tell."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto import vocabulary
from scrapy_ext.server.extraction.auto.focus import Focus
from scrapy_ext.server.extraction.auto.offers import IN_STOCK, OUT_OF_STOCK, availability_of
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.text import node_text

MAX_NODES: Final = 2_000
#: Longer texts are terms of sale.
MAX_STATEMENT_LENGTH: Final = 150
MAX_BUTTON_LENGTH: Final = 60

_NAMES: Final = ("availab", "stock", "sold-out", "soldout", "verfuegbar", "disponib")
_BUTTONS: Final = ("button", "input", "a", "form")
_ORDER_NAME = re.compile(
    r"add[-_]?(?:to)?[-_]?(?:cart|basket|bag|trolley)|buy[-_]?(?:now|box|button|it)|btn[-_]?buy|checkout|in-?den-?warenkorb"
    r"|ajout|cart[-_]?add|comprar|kaufen|purchase|basket[-_]?add|submit[-_.]add|bid[-_]?btn|place-?bid"
)


def availability_on(page: Page, focus: Focus) -> str | None:
    """``InStock`` or ``OutOfStock`` as the page shows it; None when it shows neither.

    A plain statement counts first, then a button to order the product.
    """
    stated = availability_of(page.meta("product:availability", "og:availability", "availability"))
    return stated or _stated(page, focus) or _orderable(page, focus)


def _stated(page: Page, focus: Focus) -> str | None:
    seen: set[str] = set()
    for node in page.named(*_NAMES)[:MAX_NODES]:
        text = node_text(node, MAX_STATEMENT_LENGTH + 1)
        if not 0 < len(text) <= MAX_STATEMENT_LENGTH or _hidden(node) or focus.elsewhere(node):
            continue
        if vocabulary.OUT_OF_STOCK.search(text):
            seen.add(OUT_OF_STOCK)
        elif vocabulary.IN_STOCK.search(text):
            seen.add(IN_STOCK)
    # Both are said on pages with variants, or with texts for every case.
    return seen.pop() if len(seen) == 1 else None


def _orderable(page: Page, focus: Focus) -> str | None:
    for node in islice(page.tree.iter(*_BUTTONS), MAX_NODES):
        if node.get("disabled") is None and _orders(page, node) and not focus.elsewhere(node):
            return IN_STOCK
    return None


def _orders(page: Page, node: HtmlElement) -> bool:
    names = f"{page.names(node)} {node.get('name') or ''} {node.get('action') or ''}".lower()
    if _ORDER_NAME.search(names):
        return True
    text = "" if node.tag == "form" else node.get("value") or node_text(node, MAX_BUTTON_LENGTH + 1)
    return len(text) <= MAX_BUTTON_LENGTH and bool(vocabulary.ORDER.search(text))


def _hidden(node: HtmlElement) -> bool:
    style = (node.get("style") or "").replace(" ", "")
    return "display:none" in style or node.get("hidden") is not None

"""Whether a product can be ordered, as the page shows it, when markup does not tell."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import node_text
from scrapy_ext.server.extraction.auto.products.offers import IN_STOCK, OUT_OF_STOCK, availability_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NODES: Final = 2_000
#: Longer texts are terms of sale.
MAX_STATEMENT_LENGTH: Final = 150
MAX_BUTTON_LENGTH: Final = 60
#: A text that says so without being named so is shorter, and stands by the heading: so many elements before or after.
MAX_LINE_LENGTH: Final = 60
BEFORE_HEADING: Final = 30
AFTER_HEADING: Final = 250
#: Of two statements that contradict each other, one must be nearer to the heading by so many elements.
CLEARLY_NEARER: Final = 12

_VOCABULARY: Final = load_vocabulary("products")
_OUT_OF_STOCK = _VOCABULARY.pattern("out_of_stock", re.IGNORECASE)
_IN_STOCK = _VOCABULARY.pattern("in_stock", re.IGNORECASE)
_ORDER = _VOCABULARY.pattern("order", re.IGNORECASE)
_NAMES: Final = _VOCABULARY.words("availability_names")
_UNSHOWN = re.compile(r"(?:^|[\s_-])(?:modal|popup|pop-up|dialog|hidden|hide|d-none|is-hidden|tooltip)(?:$|[\s_-])")
_BUTTONS: Final = ("button", "input", "a", "form")
_ORDER_NAME = _VOCABULARY.pattern("order_name")


def availability_on(page: Page, focus: Focus, *, priced: bool) -> str | None:
    """``InStock`` or ``OutOfStock`` as the page shows it; None when it shows neither, or both.

    A plain statement counts first, then a button to order the product, then what short texts say. What has a price
    (``priced``), and of which nothing says that it cannot be had, can be had.
    """
    stated = availability_of(page.meta("product:availability", "og:availability", "availability"))
    if stated:
        return stated
    if focus.heading_text and _OUT_OF_STOCK.search(focus.heading_text):
        return OUT_OF_STOCK
    seen = _stated(page, focus)
    if len(seen) == 1:
        return next(iter(seen))
    # Both are said on pages with variants, or with texts for every case: the one at the heading counts.
    if seen and abs(seen[IN_STOCK] - seen[OUT_OF_STOCK]) >= CLEARLY_NEARER:
        return min(seen, key=seen.__getitem__)
    if _orderable(page, focus):
        return IN_STOCK
    if seen:
        return None
    if _said_to_be_gone(page, focus):
        return OUT_OF_STOCK
    return IN_STOCK if priced else None


def _stated(page: Page, focus: Focus) -> dict[str, int]:
    """What is said, and how far from the heading."""
    seen: dict[str, int] = {}
    for node in page.named(*_NAMES)[:MAX_NODES]:
        text = node_text(node, MAX_STATEMENT_LENGTH + 1)
        if not 0 < len(text) <= MAX_STATEMENT_LENGTH or _hidden(page, node) or focus.elsewhere(node):
            continue
        gone = _OUT_OF_STOCK.search(text)
        if gone or _IN_STOCK.search(text):
            state = OUT_OF_STOCK if gone else IN_STOCK
            seen[state] = min(seen.get(state, MAX_NODES), abs(focus.distance(node)))
    return seen


def _said_to_be_gone(page: Page, focus: Focus) -> bool:
    """Whether a short text by the heading says that the product cannot be had."""
    return any(
        len(text) <= MAX_LINE_LENGTH
        and _OUT_OF_STOCK.search(text)
        and -BEFORE_HEADING <= focus.distance(node) <= AFTER_HEADING
        and not _hidden(page, node)
        and not focus.elsewhere(node)
        for node, text in page.lines
    )


def _orderable(page: Page, focus: Focus) -> bool:
    return any(
        not _disabled(page, node) and _orders(page, node) and not focus.elsewhere(node)
        for node in islice(page.tree.iter(*_BUTTONS), MAX_NODES)
    )


def _disabled(page: Page, node: HtmlElement) -> bool:
    return node.get("disabled") is not None or "disabled" in page.names(node).split()


def _orders(page: Page, node: HtmlElement) -> bool:
    names = f"{page.names(node)} {node.get('name') or ''} {node.get('action') or ''}".lower()
    if _ORDER_NAME.search(names):
        return True
    text = "" if node.tag == "form" else node.get("value") or node_text(node, MAX_BUTTON_LENGTH + 1)
    return len(text) <= MAX_BUTTON_LENGTH and bool(_ORDER.search(text))


def _hidden(page: Page, node: HtmlElement) -> bool:
    """Whether an element, or one around it, is not shown at first: a dialog, a text for another case."""
    if page.looks.is_hidden(node):
        return True
    around = (node, *islice(node.iterancestors(), 6))
    return any(_UNSHOWN.search(page.names(part)) or _is_unshown(part) for part in around)


def _is_unshown(node: HtmlElement) -> bool:
    style = node.get("style")
    unshown = style is not None and "display:none" in style.replace(" ", "").lower()
    return unshown or node.get("hidden") is not None

"""Availability of a product, as the page shows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.products.offers import (
    IN_STOCK,
    OUT_OF_STOCK,
    availability_in,
    availability_of,
    denies_stock,
)
from scrapy_ext.server.extraction.auto.products.other_products import is_of_another
from scrapy_ext.server.extraction.auto.products.price_elements import PRICE_NAME
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Of an availability that the page does not state.
UNSTATED: Final = ""
MAX_STATEMENTS: Final = 2_000
#: Longer texts are terms of sale.
MAX_STATEMENT_LENGTH: Final = 150
#: Words of a statement behind a label that is about the whole stock: ``Currently out of stock``.
MAX_PLAIN_WORDS: Final = 4
MAX_BUTTON_LENGTH: Final = 60
#: Bounds of a line about availability whose element is not named so: characters, elements before and after the heading.
MAX_LINE_LENGTH: Final = 60
LINES_BEFORE_HEADING: Final = 30
LINES_AFTER_HEADING: Final = 250
#: Longest text of an option of a product, with its state, in characters.
MAX_OPTION_LENGTH: Final = 40
#: Of two contradictory statements, one must be nearer to the heading by this many elements.
CLEARLY_NEARER: Final = 12

_VOCABULARY: Final = load_vocabulary("products")
_OUT_OF_STOCK, _ORDER = map(_VOCABULARY.caseless, ("out_of_stock", "order"))
_AVAILABILITY_NAMES: Final = _VOCABULARY.words("availability_names")
_UNSHOWN = _VOCABULARY.pattern("unshown")
_BUTTONS: Final = ("button", "input", "a", "form")
_LABELLED_BUTTONS: Final = frozenset({"button", "a"})
_ORDER_NAME, _CHOICE = _VOCABULARY.patterns("order_name", "choice_names")
_AVAILABILITY_LABEL, _NOTIFY = _VOCABULARY.patterns("availability_label", "notify", flags=re.IGNORECASE)
#: A script that is no data.
_SCRIPT = re.compile(rb"<script\b(?![^>]{0,200}json)", re.IGNORECASE)
#: The name of an option, and the sign between it and its state.
_BEFORE_STATE = re.compile(r"\w\s*[(\[–—-]\s*$")
#: An item of a list of labels and values: ``Delivery: 3 days``.
_LABELLED = re.compile(r"[:：]|\s[–—-]\s")


def availability_on(page: Page, focus: Focus, *, priced: bool, unclear: bool = False) -> str | None:
    """Return ``InStock`` or ``OutOfStock`` as the page shows it; None when it shows neither, or both.

    A plain statement counts first, then a button to order the product, then short texts. A product with a price
    (``priced``) and no statement is in stock, unless it can only be waited for. Where structured data has a word for it
    that is not known (``unclear``), a button is no sign.
    """
    shown = stated_availability(page, focus, unclear=unclear)
    if shown != UNSTATED:
        return shown
    if _out_of_stock_in_lines(page, focus) or _promises_word(page, focus):
        return OUT_OF_STOCK
    disabled = _only_disabled(page, focus)
    if disabled:
        # A script may enable a button of a page that none has changed yet, and a choice may enable it.
        is_final = page.styles.styled or not _SCRIPT.search(page.source)
        return OUT_OF_STOCK if is_final and not any(_follows_choice(page, focus, node) for node in disabled) else None
    return IN_STOCK if priced and next(_promises(page, focus), None) is None else None


def stated_availability(page: Page, focus: Focus, *, unclear: bool = False) -> str | None:
    """Return the availability by statements and buttons; None where they contradict each other, else ``UNSTATED``."""
    stated = availability_of(page.meta("product:availability", "og:availability", "availability"))
    if stated:
        return stated
    if focus.heading_text and _OUT_OF_STOCK.search(focus.heading_text):
        return OUT_OF_STOCK
    seen = _stated(page, focus)
    if len(seen) == 1:
        return next(iter(seen))
    # Pages with variants, or with texts for every case, say both: the one nearer to the heading counts.
    if seen and abs(seen[IN_STOCK] - seen[OUT_OF_STOCK]) >= CLEARLY_NEARER:
        return min(seen, key=seen.__getitem__)
    if not unclear and _orderable(page, focus):
        return IN_STOCK
    return None if seen or _denied(page, focus) else UNSTATED


def _stated(page: Page, focus: Focus) -> dict[str, int]:
    seen: dict[str, int] = {}
    options = _Options()
    for pair in page.labelled.of(_AVAILABILITY_LABEL):
        state = availability_in(pair.value[:MAX_STATEMENT_LENGTH])
        if state is None or focus.elsewhere(pair.node):
            continue
        # More words are about a part, such as one branch: "Out of stock in Leeds". A button shows the rest.
        is_plain = len(pair.value.split()) <= MAX_PLAIN_WORDS
        if is_plain or state == IN_STOCK or not _orderable(page, focus):
            seen[state] = min(seen.get(state, MAX_STATEMENTS), abs(focus.distance(pair.node)))
    for node in page.named(*_AVAILABILITY_NAMES)[:MAX_STATEMENTS]:
        text = node_text(node, MAX_STATEMENT_LENGTH + 1)
        if not 0 < len(text) <= MAX_STATEMENT_LENGTH or is_hidden(page, node) or focus.elsewhere(node):
            continue
        state = availability_in(text)
        if state is not None and not options.hold(node):
            seen[state] = min(seen.get(state, MAX_STATEMENTS), abs(focus.distance(node)))
    return seen


def _denied(page: Page, focus: Focus) -> bool:
    """Return whether a statement denies that the product is in stock: ``Back in stock soon``."""
    nodes = (node for node in page.named(*_AVAILABILITY_NAMES)[:MAX_STATEMENTS] if not focus.elsewhere(node))
    return any(denies_stock(node_text(node, MAX_LINE_LENGTH)) and not is_hidden(page, node) for node in nodes)


def _out_of_stock_in_lines(page: Page, focus: Focus) -> bool:
    options = _Options()
    return any(
        len(text) <= MAX_LINE_LENGTH
        and _OUT_OF_STOCK.search(text)
        and not is_hidden(page, node)
        and not focus.elsewhere(node)
        and not options.hold(node)
        for node, text in focus.lines(LINES_BEFORE_HEADING, LINES_AFTER_HEADING)
    )


def _promises_word(page: Page, focus: Focus) -> bool:
    """Return whether a button by the heading promises word of the return of the product, which cannot be ordered."""
    return any(
        part.tag in _LABELLED_BUTTONS
        for node in _promises(page, focus)
        for part in (node, *islice(node.iterancestors(), 2))
    )


def _promises(page: Page, focus: Focus) -> Iterator[HtmlElement]:
    """Yield the lines by the heading that promise word of the return of the product, buttons and others."""
    return (
        node
        for node, text in focus.lines(0, LINES_AFTER_HEADING)
        if len(text) <= MAX_BUTTON_LENGTH
        and _NOTIFY.search(text)
        and not PRICE_NAME.search(text.lower())
        and not is_hidden(page, node)
        and not is_of_another(focus, node)
    )


def _only_disabled(page: Page, focus: Focus) -> list[HtmlElement]:
    """Return the buttons to order, which cannot be pressed; none where the page has an option to choose before."""
    buttons = [node for node in islice(page.tree.iter(*_BUTTONS), MAX_STATEMENTS) if node.tag != "form"]
    orders = [node for node in buttons if _disabled(page, node) and _orders(page, node)]
    orders = [node for node in orders if not is_of_another(focus, node) and not is_hidden(page, node)]
    has_option = bool(orders) and any(
        node.tag == "select"
        or node.get("type") == "radio"
        or _CHOICE.search(page.names(node))
        or node.get("role") == "radio"
        for node in page.elements
    )
    return [] if has_option else orders


def _follows_choice(page: Page, focus: Focus, order: HtmlElement) -> bool:
    """Return whether several buttons side by side are between the heading and a button: they may be a choice of size,
    whatever their names."""
    end = focus.distance(order)
    groups: Counter[HtmlElement] = Counter()
    for node in islice(page.tree.iter("button", "a"), MAX_STATEMENTS):
        if not 0 < focus.distance(node) < end or leads_away(page, node) or _orders(page, node):
            continue
        label = node_text(node, MAX_OPTION_LENGTH + 1) or node.get("aria-label") or ""
        parent = node.getparent()
        parent = parent.getparent() if parent is not None and len(parent) == 1 else parent
        # A field between two buttons is one of a number of pieces.
        if parent is not None and _is_option(label) and next(parent.iter("input"), None) is None:
            groups[parent] += 1
    return any(number > 1 for number in groups.values())


def _is_option(label: str) -> bool:
    return len(label) <= MAX_OPTION_LENGTH and any(map(str.isalnum, label)) and not _NOTIFY.search(label)


def leads_away(page: Page, node: HtmlElement) -> bool:
    url = page.link(node.get("href")) if node.tag == "a" else None
    return url is not None and not page.is_at(url)


class _Options:
    """Statements about one of several options of a product, such as sizes: ``36 (sold out)`` between others."""

    def __init__(self) -> None:
        #: Whether a list has an option without a statement. Each list is read once, whatever the number of statements.
        self._has_another: dict[HtmlElement, bool] = {}

    def hold(self, node: HtmlElement) -> bool:
        item = next((each for each in (node, *islice(node.iterancestors(), 2)) if each.tag == "li"), None)
        parent = item.getparent() if item is not None else None
        if item is None or parent is None:
            return False
        text = node_text(item, MAX_OPTION_LENGTH + 1)
        statement = _OUT_OF_STOCK.search(text)
        if statement is None or len(text) > MAX_OPTION_LENGTH or not _BEFORE_STATE.search(text[: statement.start()]):
            return False
        if parent not in self._has_another:
            items = (each for each in islice(parent, MAX_STATEMENTS) if each.tag == "li")
            self._has_another[parent] = any(map(_is_unstated_option, items))
        return self._has_another[parent]


def _is_unstated_option(item: HtmlElement) -> bool:
    text = node_text(item, MAX_OPTION_LENGTH)
    return availability_in(text) is None and not _LABELLED.search(text)


def _orderable(page: Page, focus: Focus) -> bool:
    return any(
        not _disabled(page, node) and _orders(page, node) and not focus.elsewhere(node)
        for node in islice(page.tree.iter(*_BUTTONS), MAX_STATEMENTS)
    )


def _disabled(page: Page, node: HtmlElement) -> bool:
    return node.get("disabled") is not None or "disabled" in page.names(node).split()


def _orders(page: Page, node: HtmlElement) -> bool:
    names = f"{page.names(node)} {node.get('name') or ''} {node.get('action') or ''}".lower()
    if _ORDER_NAME.search(names):
        return True
    text = "" if node.tag == "form" else node.get("value") or node_text(node, MAX_BUTTON_LENGTH + 1)
    return len(text) <= MAX_BUTTON_LENGTH and bool(_ORDER.search(text))


def is_hidden(page: Page, node: HtmlElement) -> bool:
    """Return whether an element, or one around it, is not shown at first: a dialog, a text for another case."""
    if page.styles.is_hidden(node):
        return True
    around = (node, *islice(node.iterancestors(), 6))
    return any(_UNSHOWN.search(page.names(part)) or page.hides(part) for part in around)

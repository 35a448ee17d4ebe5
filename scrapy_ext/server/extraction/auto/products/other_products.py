"""Parts of the page of a product that are about others: suggestions, whatever their names in the page's code, what
stands below a heading of such, and options that are not chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.prices import is_money
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.layout import Parts, own_boxes, step_of
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.auto.page.urls import site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Boxes that are alike and have a link and a price each, from which they are a list; those that are looked at.
FEWEST: Final = 3
MOST: Final = 5
#: Elements with the same parent in which such boxes are searched, and elements of a box.
MAX_SIBLINGS: Final = 60
MAX_BOX: Final = 60
#: Fields of forms that are read.
MAX_BUTTONS: Final = 500
#: Longest text of a box that is read, in characters.
MAX_TEXT_LENGTH: Final = 200

#: Headings that are read, the length of one, and elements around it that hold nothing behind it.
MAX_HEADINGS: Final = 400
MAX_HEADING_LENGTH: Final = 80
MOST_WRAPPERS: Final = 3

_BESIDE: Final = load_vocabulary("lists").pattern("beside_list", re.IGNORECASE)
_OF_PARTS: Final = HEADINGS - {"h1"}
_BOXES: Final = frozenset({"li", "div", "article", "section"})


def is_of_another(focus: Focus, node: HtmlElement) -> bool:
    """Return whether an element is in a card, an entry of a list or another part of a page about something else."""
    return focus.in_header(node) or focus.elsewhere(node) or focus.in_card(node) or focus.in_linked_item(node)


class OtherProducts(Parts):
    """The parts of a page about other products than the one at its heading."""

    def __init__(self, page: Page, focus: Focus) -> None:
        super().__init__(_Beginning(page, focus).is_at, ends=focus.path.__contains__)


class _Beginning:
    """Rule for the elements at which such parts begin: entries of a list, parts named or headed so, and options."""

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._focus = focus
        self._known = frozenset([*_unchosen_options(page), *below_headings(page, focus)])

    def is_at(self, node: HtmlElement) -> bool:
        return node in self._known or (node.tag in _BOXES and self._is_entry(node)) or self._focus.elsewhere(node)

    def _leads_away(self, link: HtmlElement) -> bool:
        """Return whether a link leads to another page of the site. Other sites sell the same product."""
        url = self._page.link(link.get("href"))
        return url is not None and not self._page.is_at(url) and site_of(url) == site_of(self._page.url)

    def _is_entry(self, node: HtmlElement) -> bool:
        """Return whether an element is one of several that are alike, each with a link to another page and a price."""
        parent = node.getparent()
        if parent is None or not self._is_offer(node):
            return False
        alike = list(islice(self._alike(node, parent), MOST))
        return (len(alike) >= FEWEST and all(map(self._is_offer, alike))) or self._is_of_another_variant(node, parent)

    def _is_of_another_variant(self, node: HtmlElement, parent: HtmlElement) -> bool:
        """Return whether an element is a link to another variant, and one beside it is that of the page."""
        boxes = [box for box in islice(parent, MAX_SIBLINGS) if box.tag == node.tag]
        own = [box for box in boxes if not self._is_offer(box)]
        return len(own) == 1 and all(
            is_money(node_text(box, MAX_TEXT_LENGTH)) and (box is own[0] or self._is_link(box)) for box in boxes
        )

    def _is_link(self, box: HtmlElement) -> bool:
        """Return whether the price of an element is in its link to another page."""
        links = (part for part in islice(box.iter("a"), MAX_BOX) if self._leads_away(part))
        return any(is_money(node_text(link, MAX_TEXT_LENGTH)) for link in links)

    def _alike(self, node: HtmlElement, parent: HtmlElement) -> Iterator[HtmlElement]:
        step = step_of(node)
        return (box for box in islice(parent, MAX_SIBLINGS) if isinstance(box.tag, str) and step_of(box) == step)

    def _is_offer(self, box: HtmlElement) -> bool:
        elements = list(islice(box.iter("*"), MAX_BOX + 1))
        linked = any(part.tag == "a" and self._leads_away(part) for part in elements)
        return linked and len(elements) <= MAX_BOX and is_money(node_text(box, MAX_TEXT_LENGTH))


def below_headings(page: Page, focus: Focus) -> Iterator[HtmlElement]:
    """Yield the elements behind headings such as "You may also like", each up to the next heading beside it."""
    for heading in islice(page.tree.iter(*_OF_PARTS), MAX_HEADINGS):
        text = node_text(heading, MAX_HEADING_LENGTH + 1)
        if len(text) > MAX_HEADING_LENGTH or heading in focus.path or not _BESIDE.search(text):
            continue
        box = heading
        for around in islice(heading.iterancestors(), MOST_WRAPPERS):
            if box.getnext() is not None or around in focus.path:
                break
            box = around
        for behind in islice(box.itersiblings(), MAX_SIBLINGS):
            if behind.tag in HEADINGS or behind in focus.path:
                break
            yield behind


def _unchosen_options(page: Page) -> Iterator[HtmlElement]:
    """Yield the boxes and labels of the radio buttons that are not chosen, where another one of their set is.

    A box with a button to press is a tab rather than an option, unless that which is chosen has a price as well.
    """
    buttons = [node for node in islice(page.tree.iter("input"), MAX_BUTTONS) if node.get("type") == "radio"]
    decided = {node.get("name") for node in buttons if node.get("checked") is not None} - {None}
    unchosen = {node for node in buttons if node.get("checked") is None and node.get("name") in decided}
    numbers = {node.get("id") for node in unchosen} - {None}
    boxes = own_boxes(buttons)
    priced = {
        node.get("name")
        for node, box in boxes.items()
        if node.get("checked") is not None and is_money(node_text(box, MAX_TEXT_LENGTH))
    }
    for node in unchosen:
        is_small = next(islice(boxes[node].iter("*"), MAX_BOX, None), None) is None
        if is_small and (node.get("name") in priced or next(boxes[node].iter("button"), None) is None):
            yield boxes[node]
    yield from (label for label in page.tree.iter("label") if numbers and label.get("for") in numbers)

"""The part of a page with the text of its job, where nothing names it.

The weight of an element is the length of its texts without those of links, menus, forms, dialogues and the like; short
texts, which are labels, count little. From the body down, the child with most of the weight is followed until none has.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from functools import cached_property
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The share of the weight of an element that a child has to have to be followed.
MOST: Final = 0.7
#: Shorter texts are rather labels than prose, and count by this much.
PROSE: Final = 25
OF_LABELS: Final = 0.2
#: The share of the text that the part with the heading may have to be dropped with it.
OF_HEADING: Final = 0.35

_VOCABULARY: Final = load_vocabulary("jobs")
_OTHER_PART: Final = _VOCABULARY.pattern("other_part")
_CONTROL_TEXT: Final = _VOCABULARY.pattern("control_text", re.IGNORECASE)
_OTHER_TAGS: Final = frozenset(
    {
        "nav",
        "footer",
        "aside",
        "button",
        "select",
        "textarea",
        "dialog",
        "iframe",
        "input",
        "noscript",
        "template",
        "label",
    }
)
_OTHER_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "dialog", "alertdialog", "search", "menu"})
#: Elements that are not entered: their siblings belong to the text as well.
_TEXT_TAGS: Final = frozenset({"ul", "ol", "p", "dl", "li", "span", "font", "b", "strong"})


class TextPart:
    """The texts of a page by weight."""

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._focus = focus

    def is_other(self, node: HtmlElement) -> bool:
        """Return whether a part about other things begins at an element."""
        if node in self._focus.path or node.tag in {"html", "body", "main", "article"}:
            return False
        if node.tag in _OTHER_TAGS or node.get("role") in _OTHER_ROLES or node in self._page.hidden:
            return True
        names = self._page.names(node)
        return bool(names) and _OTHER_PART.search(names) is not None

    @cached_property
    def _weights(self) -> dict[HtmlElement, float]:
        weights: dict[HtmlElement, float] = defaultdict(float)
        for node in reversed(self._page.elements):
            weight = weights[node] + _weight(node.text)
            if self.is_other(node):
                weight = 0.0
            elif node.tag == "a":
                weight *= OF_LABELS
            weights[node] = weight
            parent = node.getparent()
            if parent is not None:
                weights[parent] += weight + _weight(node.tail)
        return weights

    def weight(self, node: HtmlElement) -> float:
        return self._weights[node]

    def find(self) -> HtmlElement | None:
        """Return the element with most of the text; None for a page without any."""
        node = self._page.tree.find("body")
        while node is not None and self._weights[node] > 0:
            best = max(node, key=lambda child: self._weights[child], default=None)
            if best is None or best.tag in _TEXT_TAGS or self._weights[best] < MOST * self._weights[node]:
                return node
            node = best
        return None

    def pruned(self, node: HtmlElement) -> HtmlElement:
        """Return a copy of an element without the heading of the page, and without parts about other things."""
        twin = copy.deepcopy(node)
        twin.tail = None
        dropped = [
            theirs
            for ours, theirs in zip(node.iter(), twin.iter(), strict=True)
            if ours is not node and isinstance(ours.tag, str) and self._is_dropped(ours, node)
        ]
        for part in dropped:
            if part.getparent() is not None:
                part.drop_tree()
        return twin

    def _is_dropped(self, part: HtmlElement, whole: HtmlElement) -> bool:
        if part is self._focus.heading:
            return True
        if part in self._focus.path:
            return self._weights[part] <= OF_HEADING * self._weights[whole]
        if part.tag == "a" and len(part) <= 1:
            return _CONTROL_TEXT.fullmatch(" ".join(part.itertext()).strip()[:60]) is not None
        return self.is_other(part)


def _weight(text: str | None) -> float:
    length = len(text.strip()) if text else 0
    return length if length >= PROSE else OF_LABELS * length

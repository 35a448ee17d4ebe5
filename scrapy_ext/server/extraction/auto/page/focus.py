"""Where on a page the thing is that the page is about, and what on it is about other things."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.around import Parts
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import node_text
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("products")
#: Names (in ``class`` and ``id``) of parts that show other things: suggestions, menus, the cart.
_ELSEWHERE = _VOCABULARY.pattern("elsewhere")
_ELSEWHERE_TAGS: Final = frozenset({"nav", "footer"})
_WORD = re.compile(r"[^\W_]+")
_NAMES: Final = ("title", "product-name", "productname", "product_name")
_NO_HEADINGS: Final = frozenset({"meta", "link", "title", "input", "img"})
MAX_HEADINGS: Final = 400
#: The part of their words that a heading and a title must share for one to be of the other.
ALIKE: Final = 0.1
#: That part, and a half for a heading of the first order, must come to more than this.
ENOUGH: Final = 0.4


class Focus:
    """The heading of what a page is about, and the order of the page's elements around it.

    ``names`` are what the page calls it elsewhere (in its markup, its title), the surest first.
    """

    def __init__(self, page: Page, *names: str | None) -> None:
        self._page = page
        self._names = [frozenset(_words(name)) for name in names if name]
        self.heading = self._find_heading()
        self.path = frozenset(self.heading.iterancestors()) if self.heading is not None else frozenset()
        self._others = Parts(self._is_other, ends=self.path.__contains__)

    @cached_property
    def heading_text(self) -> str | None:
        """The text of the heading."""
        return node_text(self.heading, 500) or None if self.heading is not None else None

    @cached_property
    def order(self) -> dict[HtmlElement, int]:
        """The position of every element in the document."""
        return {node: position for position, node in enumerate(self._page.elements)}

    def distance(self, node: HtmlElement) -> int:
        """How many elements after the heading a node stands; negative before it, nought without a heading."""
        if self.heading is None:
            return 0
        return self.order.get(node, 0) - self.order.get(self.heading, 0)

    def steps_apart(self, node: HtmlElement) -> int:
        """How many levels the heading lies below the innermost element that holds it and ``node`` both."""
        if self.heading is None:
            return 0
        inside = {node, *node.iterancestors()}
        for steps, ancestor in enumerate(self.heading.iterancestors()):
            if ancestor in inside:
                return steps
        return 0

    def elsewhere(self, node: HtmlElement) -> bool:
        """Whether a node stands in a part of the page that is about other things.

        A part that holds the heading never is.
        """
        return self._others.hold(node)

    def _is_other(self, node: HtmlElement) -> bool:
        return node.tag in _ELSEWHERE_TAGS or _ELSEWHERE.search(self._page.names(node)) is not None

    def _find_heading(self) -> HtmlElement | None:
        best: tuple[float, HtmlElement] | None = None
        first_order = [node for node in self._page.tree.iter("h1") if node_text(node, 500)]
        others = list(self._page.tree.iter("h2", "h3"))
        titles = [node for node in self._page.named(*_NAMES) if len(node) <= 2 and node.tag not in _NO_HEADINGS]
        for position, node in enumerate([*first_order, *others, *titles][:MAX_HEADINGS]):
            likeness = self._likeness(frozenset(_words(node_text(node, 500))))
            score = likeness + (0.5 if node.tag == "h1" else 0.0) - position / 10_000
            if likeness > ALIKE and (best is None or score > best[0]):
                best = (score, node)
        if best is not None and best[0] > ENOUGH:
            return best[1]
        # A lone heading of the first order is that of the page, whatever its title says.
        return first_order[0] if len(first_order) == 1 else None

    def _likeness(self, words: frozenset[str]) -> float:
        return max((len(words & name) / len(words | name) for name in self._names), default=0.0)


def _words(text: str) -> list[str]:
    # Without accents, as addresses have none.
    text = "".join(sign for sign in unicodedata.normalize("NFKD", text[:500]) if not unicodedata.combining(sign))
    return [word.lower() for word in _WORD.findall(text)]

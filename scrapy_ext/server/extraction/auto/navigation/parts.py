"""The parts of a page that hold links from page to page of its list, by what they are called."""

from __future__ import annotations

from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_PARTS: Final = 40

_VOCABULARY: Final = load_vocabulary("pagination")
_PART_NAMES: Final = _VOCABULARY.words("part_names")
_PART_TAGS: Final = frozenset(
    {"nav", "div", "ul", "ol", "section", "span", "p", "td", "table", "footer", "a", "li", "dl"}
)
#: Names of what has a next one and is no list: pictures, articles, months, steps.
NOT_PAGES = _VOCABULARY.pattern("not_pages")


def parts_of(page: Page) -> list[HtmlElement]:
    """The parts that are named or labelled as such; there may be others."""
    named = [node for node in page.named(*_PART_NAMES) if node.tag in _PART_TAGS]
    labelled = [
        node
        for node in page.tree.iter("nav", "ul", "ol", "div")
        if "paginat" in (label := (node.get("aria-label") or "").lower()) or label in {"page navigation", "pages"}
    ]
    found = [node for node in dict.fromkeys([*named, *labelled]) if not NOT_PAGES.search(page.names(node))]
    return found[:MAX_PARTS]


def is_of_other(page: Page, node: HtmlElement) -> bool:
    """Whether names tell that a part is about pictures, articles, months or the like."""
    names = " ".join([page.names(node), *map(page.names, _few_around(node))])
    return NOT_PAGES.search(names) is not None


def _few_around(node: HtmlElement) -> list[HtmlElement]:
    """The few elements around a node that hold little else."""
    return [above for above in islice(node.iterancestors(), 3) if next(islice(above, 12, None), None) is None]

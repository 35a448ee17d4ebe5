"""Links of a page: around its site (header, footer, side bars), from page to page of a list, and to the next page.

The signs of a link to the next page are its text, label, image, names and relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import chain, islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import NamedLink
from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import small_boxes
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_LINKS: Final = 200
MAX_NAME_LENGTH: Final = 120
MAX_PARTS: Final = 40
_SIDEBAR_NAMES: Final = ("sidebar", "side-bar", "sidenav", "side-nav")


def header_links(page: Page) -> list[NamedLink]:
    """Return the links of the header, and of menus outside of other parts."""
    headers = [node for node in page.tree.iter("header") if _outermost(node)]
    banners = page.by_role.get("banner", [])
    menus = [node for node in page.tree.iter("nav") if _outermost(node)]
    return links_of(page, [*headers, *banners, *menus])


def footer_links(page: Page) -> list[NamedLink]:
    footers = [node for node in page.tree.iter("footer") if _outermost(node)]
    return links_of(page, [*footers, *page.by_role.get("contentinfo", [])])


def sidebar_links(page: Page) -> list[NamedLink]:
    """Return the links of the parts beside the content."""
    asides = [node for node in page.tree.iter("aside") if _outermost(node)]
    named = [node for node in page.named(*_SIDEBAR_NAMES) if node.tag in {"div", "section", "nav", "ul"}]
    return links_of(page, [*asides, *page.by_role.get("complementary", []), *named[:MAX_PARTS]])


def links_of(page: Page, parts: Iterable[HtmlElement]) -> list[NamedLink]:
    """Return the links in these parts with a name, each URL once, at most :data:`MAX_LINKS`."""
    found: dict[str, NamedLink] = {}
    for link in chain.from_iterable(part.iter("a") for part in parts):
        url, name = page.link(link.get("href")), link_name(link)
        if url and name:
            found.setdefault(url, NamedLink(name=name, url=url))
            if len(found) >= MAX_LINKS:
                break
    return list(found.values())


def link_name(node: HtmlElement) -> str | None:
    """Return the name of a link: its text, its label, or the alternative text of its image."""
    text = node_text(node, MAX_NAME_LENGTH) or one_line(node.get("aria-label") or node.get("title"))
    if not text:
        text = next((alt for image in node.iter("img") if (alt := one_line(image.get("alt")))), "")
    return text[:MAX_NAME_LENGTH] or None


def _outermost(node: HtmlElement) -> bool:
    """Return whether a part belongs to the page, rather than to an article or a section of it."""
    return not any(
        ancestor.tag in {"article", "main", "header", "footer", "aside"} for ancestor in node.iterancestors()
    )


MAX_PAGING_PARTS: Final = 40

_VOCABULARY: Final = load_vocabulary("pagination")
_PART_NAMES: Final = _VOCABULARY.words("part_names")
_PART_TAGS: Final = frozenset(
    {"nav", "div", "ul", "ol", "section", "span", "p", "td", "table", "footer", "a", "li", "dl"}
)
#: Names of things with a next one that are no list: images, articles, months, steps.
NOT_PAGES = _VOCABULARY.pattern("not_pages")


def paging_parts(page: Page) -> list[HtmlElement]:
    """Return the parts that are named or labelled as links between pages; there may be others."""
    named = [node for node in page.named(*_PART_NAMES) if node.tag in _PART_TAGS]
    labelled = [
        node
        for node, label in page.with_label("nav", "ul", "ol", "div")
        if "paginat" in label or label in {"page navigation", "pages"}
    ]
    found = [node for node in dict.fromkeys([*named, *labelled]) if not NOT_PAGES.search(page.names(node))]
    return found[:MAX_PAGING_PARTS]


def is_of_other(page: Page, node: HtmlElement) -> bool:
    """Return whether the names of a part are about images, articles, months or the like."""
    names = " ".join([page.names(node), *map(page.names, small_boxes(node, 3))])
    return NOT_PAGES.search(names) is not None


_ARROWS: Final = _VOCABULARY.text("arrows")
#: Whole text of a link to the next page.
NEXT_TEXT = _VOCABULARY.caseless("next_text")
ARROW = re.compile(rf"[\s{_ARROWS}=-]+")
#: Text of a link to more entries: the next page, if its URL says so.
MORE = _VOCABULARY.caseless("more")
#: Text of a link to the previous, first or last page: never the next page.
NOT_NEXT_TEXT = _VOCABULARY.pattern("not_next_text", re.IGNORECASE)
#: Older entries, which blogs may call previous ones.
OLDER = _VOCABULARY.caseless("older")
#: Texts of links between pages: a number, a word, or an arrow.
PAGE_NAME = _VOCABULARY.pattern("page_name", re.IGNORECASE)
#: The number of a page as a link writes it: ``2``, ``[2]``, ``Page 2``, ``第2页``.
NUMBER = _VOCABULARY.pattern("number", re.IGNORECASE)
#: ``Page 2 of 10``.
OF_PAGES = _VOCABULARY.pattern("of_pages", re.IGNORECASE)


MAX_LABEL: Final = 60
MAX_PIECES: Final = 5

_NEXT_NAME, _ICON_NAME, _ICON_TEXT = _VOCABULARY.patterns("next_name", "icon_name", "icon_text")
_NEXT_PARTS: Final = _VOCABULARY.words("next_parts")
_PICTURE = _VOCABULARY.pattern("picture", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_AT_THE_ENDS = re.compile(r"(?:^|[\s_-])(?:prev|previous|first|last)(?:$|[\s_-])(?!.*\bnext)")
_DISABLED = re.compile(r"disabled|inactive|(?:^|[\s_-])(?:off|hidden)(?:$|[\s_-])")


class SignsOfNext:
    """Score of the links of a page as links to the next page, by themselves."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def of(self, link: HtmlElement, *, inside: bool) -> float:
        """Return the score of a link, ``inside`` of a row of pages or not; zero for one without signs."""
        page, outline = self._page, self._page.outline
        position = page.order[link]
        attributes = outline.attributes[position]
        pieces = outline.first_texts(position, MAX_PIECES + 1)
        if len(pieces) > MAX_PIECES or sum(map(len, pieces)) > 2 * MAX_LABEL:
            pieces = []
        text = one_line(" ".join(pieces)) if pieces else ""
        score = _of_text(text, pieces)
        given = [value for name in ("aria-label", "title") if (value := attributes.get(name))]
        labels = [label for value in given if (label := one_line(value)[:MAX_LABEL])]
        has_image = "img" in outline.tags[position + 1 : outline.ends[position]]
        images = list(islice(link.iter("img"), 2)) if has_image else []
        labels += [label for image in images if (label := one_line(image.get("alt"))[:MAX_LABEL])]
        labelled = any(NEXT_TEXT.fullmatch(label) for label in labels)
        said = score + (2.0 if labelled else 0.0)
        score = said + (3.0 if "next" in attributes.get("rel", "").lower().split() else 0.0)
        names = page.all_names[position]
        score += self._of_names(link, position, bare=len(text) < 3, images=images)
        if score <= 0 or (names and _DISABLED.search(names)) or attributes.get("aria-disabled") == "true":
            return 0.0
        # A name for the next page beside a text for the previous one is that of a template.
        if not said and any(
            NOT_NEXT_TEXT.fullmatch(one) and not OLDER.fullmatch(one) for one in (*labels, text) if one
        ):
            return 0.0
        if _AT_THE_ENDS.search(names) or any(
            _AT_THE_ENDS.search(page.names(node)) for node in small_boxes(link, 2)[:1]
        ):
            score -= 1.5
        return score + 1.0 if score > 0 and inside else score

    def _of_names(self, link: HtmlElement, position: int, *, bare: bool, images: list[HtmlElement]) -> float:
        score = 0.0
        if link in self._named_next or position in self._next_by_data:
            score = 1.5
        elif self._named_next and not self._named_next.isdisjoint(small_boxes(link, 2)):
            score = 1.0
        if bare:
            # A link without words has an image.
            within = " ".join(self._page.names(node) for node in islice(link.iter("*"), 4))
            if not score and within and _NEXT_NAME.search(within):
                score = 1.0
            if (within and _ICON_NAME.search(within)) or any(_PICTURE.search(node.get("src") or "") for node in images):
                score += 1.5
        return score

    @cached_property
    def _named_next(self) -> frozenset[HtmlElement]:
        named = self._page.named(*_NEXT_PARTS)
        return frozenset(node for node in named if _NEXT_NAME.search(self._page.names(node)))

    @cached_property
    def _next_by_data(self) -> frozenset[int]:
        """The elements with a name for the next page in a data attribute, where classes are generated."""
        attributes = self._page.outline.attributes
        return frozenset(
            position
            for name, positions in self._page.with_attribute.items()
            if name.startswith("data-")
            for position in positions
            if _names_next(attributes[position][name])
        )


def _of_text(text: str, pieces: list[str]) -> float:
    if not text:
        return 0.0
    if NEXT_TEXT.fullmatch(text):
        return 1.5 if ARROW.fullmatch(text) else 2.5
    if OLDER.fullmatch(text):
        return 1.5
    if _ICON_TEXT.fullmatch(text):
        return 1.5
    if MORE.fullmatch(text):
        return 1.5
    # Text for screen readers beside the visible text.
    if len(pieces) > 1 and all(NEXT_TEXT.fullmatch(piece) for piece in pieces):
        return 2.0
    return 0.0


def _names_next(value: str) -> bool:
    if len(value) > MAX_LABEL or "/" in value or "next" not in value.lower():
        return False
    return _NEXT_NAME.search(_CAMEL.sub("-", value).lower()) is not None

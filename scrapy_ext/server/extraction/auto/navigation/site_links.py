"""Links of a page around its site (header, footer, side bars), and its parts with links from page to page."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
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
    banners = page.tree.xpath("//*[@role='banner']")
    menus = [node for node in page.tree.iter("nav") if _outermost(node)]
    return links_of(page, [*headers, *banners, *menus])


def footer_links(page: Page) -> list[NamedLink]:
    footers = [node for node in page.tree.iter("footer") if _outermost(node)]
    return links_of(page, [*footers, *page.tree.xpath("//*[@role='contentinfo']")])


def sidebar_links(page: Page) -> list[NamedLink]:
    """Return the links of the parts beside the content."""
    asides = [node for node in page.tree.iter("aside") if _outermost(node)]
    named = [node for node in page.named(*_SIDEBAR_NAMES) if node.tag in {"div", "section", "nav", "ul"}]
    return links_of(page, [*asides, *page.tree.xpath("//*[@role='complementary']"), *named[:MAX_PARTS]])


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
        for node in page.tree.iter("nav", "ul", "ol", "div")
        if "paginat" in (label := (node.get("aria-label") or "").lower()) or label in {"page navigation", "pages"}
    ]
    found = [node for node in dict.fromkeys([*named, *labelled]) if not NOT_PAGES.search(page.names(node))]
    return found[:MAX_PAGING_PARTS]


def is_of_other(page: Page, node: HtmlElement) -> bool:
    """Return whether the names of a part are about images, articles, months or the like."""
    names = " ".join([page.names(node), *map(page.names, small_boxes(node, 3))])
    return NOT_PAGES.search(names) is not None

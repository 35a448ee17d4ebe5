"""The links of a page that lead around its site: in header, footer and side bars, and from page to page of a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml.html import HtmlElement
from zyte_common_items import NamedLink, Request

from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.text import node_text, one_line
from scrapy_ext.server.extraction.auto.urls import same_page

MAX_LINKS: Final = 200
MAX_NAME_LENGTH: Final = 120
MAX_PARTS: Final = 40

_PAGINATION_NAMES: Final = ("pagination", "paginator", "pager", "page-numbers", "pagenavi", "paging", "page-nav")
_SIDEBAR_NAMES: Final = ("sidebar", "side-bar", "sidenav", "side-nav")
_NEXT_TEXT = re.compile(
    r"(?:next|older|weiter|nächste|suivant|siguiente|próxim[oa]|seguinte|successiv[oa]|avanti|volgende|nästa|neste|næste|seuraava"
    r"|następna|další|след(?:ующая)?|вперед|次へ?|下一页|下一頁|다음|sonraki|następny)\b.{0,20}|[›»→>]+|>>",
    re.IGNORECASE,
)
_NEXT_NAME = re.compile(r"(?:^|[\s_-])next(?:$|[\s_-])|pagination-next|nextpage")
#: What links between pages are called: by a number, a word, or an arrow.
_PAGE_NAME = re.compile(
    r"^\W{1,3}$|\b\d{1,5}\W*$|\b(?:page|seite|página|pagina|first|last|prev(?:ious)?|newer|older|more)\b|^(?:erste|letzte|zurück)"
    rf"|{_NEXT_TEXT.pattern}",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:page\s*)?(\d{1,5})", re.IGNORECASE)
_CURRENT_NAME = re.compile(r"current|active|selected")


def header_links(page: Page) -> list[NamedLink]:
    """The links of the header, and of menus that stand in no other part."""
    headers = [node for node in page.tree.iter("header") if _outermost(node)]
    banners = page.tree.xpath("//*[@role='banner']")
    menus = [node for node in page.tree.iter("nav") if _in_no_other_part(node)]
    return _links(page, [*headers, *banners, *menus])


def footer_links(page: Page) -> list[NamedLink]:
    """The links of the footer."""
    footers = [node for node in page.tree.iter("footer") if _outermost(node)]
    return _links(page, [*footers, *page.tree.xpath("//*[@role='contentinfo']")])


def sidebar_links(page: Page) -> list[NamedLink]:
    """The links of the parts beside the content."""
    asides = [node for node in page.tree.iter("aside") if _outermost(node)]
    named = [node for node in page.named(*_SIDEBAR_NAMES) if node.tag in {"div", "section", "nav", "ul"}]
    return _links(page, [*asides, *page.tree.xpath("//*[@role='complementary']"), *named[:MAX_PARTS]])


def pagination_links(page: Page) -> list[NamedLink]:
    """The links from page to page of a list: by number, and to the first, the next, the last."""
    return [link for link in _links(page, _paginations(page)) if _PAGE_NAME.search(link.name or "")]


def next_page(page: Page) -> Request | None:
    """The request for the next page of a list."""
    for node in [*page.tree.iter("link"), *page.tree.iter("a")]:
        if "next" in (node.get("rel") or "").lower().split() and (url := _other(page, node)):
            return Request(url=url, name=_name(node))
    links = [link for part in _paginations(page) for link in part.iter("a")]
    for link in links:
        if _says_next(page, link) and (url := _other(page, link)):
            return Request(url=url, name=_name(link))
    return _by_number(page, links)


def _paginations(page: Page) -> list[HtmlElement]:
    named = [
        node
        for node in page.named(*_PAGINATION_NAMES)
        if node.tag in {"nav", "div", "ul", "ol", "section", "span", "p", "td"}
    ]
    labelled = [
        node
        for node in page.tree.iter("nav", "ul", "ol", "div")
        if "pagination" in (node.get("aria-label") or "").lower()
    ]
    return list(dict.fromkeys([*named, *labelled]))[:MAX_PARTS]


def _says_next(page: Page, link: HtmlElement) -> bool:
    if _NEXT_TEXT.fullmatch(_name(link) or one_line(link.get("title"))):
        return True
    parent = link.getparent()
    names = f"{page.names(link)} {page.names(parent) if parent is not None else ''}"
    return bool(_NEXT_NAME.search(names)) or bool(_NEXT_TEXT.match(one_line(link.get("aria-label"))))


def _by_number(page: Page, links: list[HtmlElement]) -> Request | None:
    """The link to the number after that of the current page, which is the one that is no link, or is marked."""
    numbered: dict[int, HtmlElement] = {}
    for link in links:
        match = _NUMBER.fullmatch(_name(link) or "")
        if match:
            numbered.setdefault(int(match.group(1)), link)
    current = _current_number(page, numbered)
    following = numbered.get(current + 1) if current is not None else None
    url = _other(page, following) if following is not None else None
    return Request(url=url, name=_name(following)) if url and following is not None else None


def _current_number(page: Page, numbered: dict[int, HtmlElement]) -> int | None:
    for number, link in numbered.items():
        url = page.link(link.get("href"))
        if link.get("aria-current") or _CURRENT_NAME.search(page.names(link)) or (url and same_page(url, page.url)):
            return number
    for part in _paginations(page):
        for node in part.iter("span", "strong", "li", "em", "b"):
            match = _NUMBER.fullmatch(node_text(node, 20))
            if match and next(node.iter("a"), None) is None:
                return int(match.group(1))
    return None


def _other(page: Page, node: HtmlElement) -> str | None:
    url = page.link(node.get("href"))
    return url if url and not same_page(url, page.url) else None


def _links(page: Page, parts: Iterable[HtmlElement]) -> list[NamedLink]:
    found: dict[str, NamedLink] = {}
    for link in _anchors(parts):
        url, name = page.link(link.get("href")), _name(link)
        if url and name:
            found.setdefault(url, NamedLink(name=name, url=url))
            if len(found) >= MAX_LINKS:
                break
    return list(found.values())


def _anchors(parts: Iterable[HtmlElement]) -> Iterator[HtmlElement]:
    for part in parts:
        yield from part.iter("a")


def _name(node: HtmlElement) -> str | None:
    text = node_text(node, MAX_NAME_LENGTH) or one_line(node.get("aria-label") or node.get("title"))
    if not text:
        text = next((alt for image in node.iter("img") if (alt := one_line(image.get("alt")))), "")
    return text[:MAX_NAME_LENGTH] or None


def _outermost(node: HtmlElement) -> bool:
    """Whether a part belongs to the page, rather than to an article or a section of it."""
    return not any(
        ancestor.tag in {"article", "main", "header", "footer", "aside"} for ancestor in node.iterancestors()
    )


def _in_no_other_part(node: HtmlElement) -> bool:
    return not any(
        ancestor.tag in {"main", "article", "footer", "aside", "header"} for ancestor in node.iterancestors()
    )

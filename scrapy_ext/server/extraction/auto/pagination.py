"""From page to page of a list: the links between its pages, the next one, and the number of this one.

A link is taken for the next page on several grounds together: what it says, what it is called, where it stands, and
whether its address is this page's with the number of the next. One ground alone is not enough, as "next" is also said
of articles, pictures and months; an address that cannot be the next page of this one speaks against any.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement
from zyte_common_items import NamedLink, Request

from scrapy_ext.server.extraction.auto.navigation import link_name, links_of
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page_numbers import Address, address_of
from scrapy_ext.server.extraction.auto.page_words import ARROW, MORE, NEXT_TEXT, NUMBER, OF_PAGES, PAGE_NAME
from scrapy_ext.server.extraction.auto.text import node_text, one_line
from scrapy_ext.server.extraction.auto.urls import host_of, same_page

MAX_PARTS: Final = 40
MAX_LINKS: Final = 6_000
#: Children of an element whose names tell of each of them.
MAX_BESIDE: Final = 12
#: What a link must score to be that to the next page.
ENOUGH: Final = 4.0

_PART_NAMES: Final = (
    "pagination", "paginator", "pager", "page-numbers", "pagenavi", "paging", "page-nav", "pagelinks", "page_nav",
    "pages-nav", "nav-links", "pagelist", "page-list", "seitennav", "load-more", "loadmore",
)  # fmt: skip
_PART_TAGS: Final = frozenset({"nav", "div", "ul", "ol", "section", "span", "p", "td", "table", "footer", "a", "li"})
_NEXT_NAME = re.compile(
    r"(?:^|[\s_-])(?:next|older|suivant|siguiente|weiter)(?:$|[\s_-])|nextpage|next-?(?:link|posts?link)"
    r"|pagenext|(?:pager|pagination)[-_]*(?:\w+[-_]+)?next|nav-?previous-?posts"
)
#: Names of what has a next one and is no list: pictures, articles, months, steps.
_NOT_PAGES = re.compile(
    r"carousel|slide|swiper|slick|gallery|lightbox|calendar|month|post-nav|nav-next|nav-?single|article-nav"
    r"|next-?(?:post|article|story|chapter|entry|prev)"
    r"|prev-?next|step|wizard|player|playlist|chapter|rail|glide|splide|flickity|comment"
)
_DISABLED = re.compile(r"disabled|inactive|(?:^|[\s_-])(?:off|hidden)(?:$|[\s_-])")
_CURRENT_NAME = re.compile(r"current|(?:^|[\s_-])(?:is-?)?(?:active|selected|on|aktiv|actual|thispage)(?:$|[\s_-])")
_LABEL_LENGTH: Final = 60


class _Numbered(NamedTuple):
    """What stands for a page by its number: a link, or the mark of the page that is shown."""

    number: int
    node: HtmlElement
    url: str | None
    current: bool


def pagination_links(page: Page) -> list[NamedLink]:
    """The links from page to page of a list: by number, and to the first, the next, the last."""
    return [link for link in links_of(page, Pagination(page).parts) if PAGE_NAME.search(link.name or "")]


def next_page(page: Page) -> Request | None:
    """The request for the next page of a list; None where the page does not surely tell it."""
    return Pagination(page).next


def page_number(page: Page) -> int | None:
    """The number of this page among those of its list, from 1; None where it is in no such row."""
    return Pagination(page).number


class Pagination:
    """The row of pages that a page stands in, if it does."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._address: Address = address_of(page.url)

    @cached_property
    def parts(self) -> list[HtmlElement]:
        """The parts of the page that hold links from page to page."""
        page = self._page
        named = [node for node in page.named(*_PART_NAMES) if node.tag in _PART_TAGS]
        labelled = [
            node
            for node in page.tree.iter("nav", "ul", "ol", "div")
            if "paginat" in (label := (node.get("aria-label") or "").lower()) or label == "page navigation"
        ]
        found = [node for node in dict.fromkeys([*named, *labelled]) if not _NOT_PAGES.search(page.names(node))]
        return found[:MAX_PARTS]

    @cached_property
    def next(self) -> Request | None:
        """The request for the next page."""
        scored = self._scored()
        stated = self._stated()
        if stated is not None:
            node = next((link for _, url, link in scored if url == stated), None)
            return Request(url=stated, name=link_name(node) if node is not None else None)
        if not scored or scored[0][0] < ENOUGH:
            return None
        score, url, node = scored[0]
        # Two addresses that are as good as each other are two guesses.
        if any(
            other != url and good > score - 0.5 and self._follows(other) != self._follows(url)
            for good, other, _ in scored[1:]
        ):
            return None
        return Request(url=url, name=link_name(node))

    @cached_property
    def number(self) -> int | None:
        """The number of this page."""
        if self._shown is not None:
            return self._shown
        own, following = self._address, address_of(self.next.url) if self.next else None
        if following is not None and following.counts_pages and own.is_beside(following):
            if own.number is not None and following.number == own.number + 1:
                return own.number + (1 if own.number == 0 else 0)
            return 1 if own.number is None and following.number == 2 else None
        linked = {entry.number for entry in self._numbered}
        if own.counts_pages and own.number and (own.number - 1 in linked or own.number == 1):
            return own.number
        return None

    @cached_property
    def _shown(self) -> int | None:
        """The number that the row of pages marks, or says (``Page 2 of 10``), as that of this page."""
        marked = {entry.number for entry in self._numbered if entry.current}
        if len(marked) == 1:
            return next(iter(marked))
        for part in self.parts:
            match = OF_PAGES.search(node_text(part, 200))
            if match and any(self._other(link) for link in part.iter("a")):
                return int(match.group(1))
        return None

    @cached_property
    def _numbered(self) -> list[_Numbered]:
        """The numbers in the row of pages."""
        found: dict[int, _Numbered] = {}
        for part in self.parts:
            for node in part.iter("a", "span", "strong", "li", "em", "b", "button"):
                match = NUMBER.fullmatch(node_text(node, 20) or one_line(node.get("aria-label"))[:20])
                if match is None or (node.tag != "a" and next(node.iter("a"), None) is not None):
                    continue
                entry = self._entry(int(match.group(1)), node)
                known = found.get(entry.number)
                if known is None or (entry.current and not known.current) or (entry.url and not known.url):
                    found[entry.number] = entry._replace(current=entry.current or bool(known and known.current))
        linked = [entry for entry in found.values() if entry.url]
        # What is no link among links is where one is.
        plain = [entry for entry in found.values() if not entry.url and not entry.current]
        if len(plain) == 1 and linked and not any(entry.current for entry in found.values()):
            found[plain[0].number] = plain[0]._replace(current=True)
        return list(found.values()) if linked else []

    def _entry(self, number: int, node: HtmlElement) -> _Numbered:
        parent = node.getparent()
        alone = parent is not None and _has_at_most(parent, 1)
        names = self._page.names(node) + (f" {self._page.names(parent)}" if alone else "")
        url = self._page.link(node.get("href")) if node.tag == "a" else None
        marked = (node.get("aria-current") or "false") != "false" or bool(_CURRENT_NAME.search(names))
        return _Numbered(number, node, url, marked or bool(url and same_page(url, self._page.url)))

    def _stated(self) -> str | None:
        """The address of ``<link rel=next>``, unless it is that of the next article or chapter."""
        for node in self._page.tree.iter("link"):
            if "next" not in (node.get("rel") or "").lower().split() or (url := self._other(node)) is None:
                continue
            address = address_of(url)
            number = self._address.number if self._address.counts_pages else None
            numbered = address.counts_pages and address.number == (number or 1) + 1
            if numbered or self._address.is_beside(address) or self._follows(url) > 0:
                return url
        return None

    def _scored(self) -> list[tuple[float, str, HtmlElement]]:
        """The links that may lead to the next page with their scores, the best first."""
        within = {link for part in self.parts for link in part.iter("a")}
        current = self._shown or self._address.number
        best: dict[str, tuple[float, str, HtmlElement]] = {}
        for position, link in enumerate(self._page.tree.iter("a")):
            if position >= MAX_LINKS:
                break
            score = self._score_of_link(link, current, inside=link in within)
            if score > 0 and (url := self._other(link)):
                score += self._follows(url)
                if url not in best or score > best[url][0]:
                    best[url] = (score, url, link)
        return sorted(best.values(), key=lambda entry: -entry[0])

    def _score_of_link(self, link: HtmlElement, current: int | None, *, inside: bool) -> float:
        """What a link says of itself; nought for one that says nothing of a next page."""
        names = self._page.names(link)
        if _DISABLED.search(names) or link.get("aria-disabled") == "true":
            return 0.0
        text = node_text(link, _LABEL_LENGTH)
        labels = [one_line(link.get(name))[:_LABEL_LENGTH] for name in ("aria-label", "title")]
        labels += [one_line(image.get("alt"))[:_LABEL_LENGTH] for image in link.iter("img")]
        score = 0.0
        if text and NEXT_TEXT.fullmatch(text):
            score += 1.5 if ARROW.fullmatch(text) else 2.5
        elif text and MORE.fullmatch(text):
            score += 1.0
        score += 2.0 if any(label and NEXT_TEXT.fullmatch(label) for label in labels) else 0.0
        score += 3.0 if "next" in (link.get("rel") or "").lower().split() else 0.0
        if link in self._named_next:
            score += 1.5
        elif not self._named_next.isdisjoint(_around(link)):
            score += 1.0
        number = NUMBER.fullmatch(text)
        if number and inside:
            score = 2.0 if current is not None and int(number.group(1)) == current + 1 else 0.0
        if not score:
            return 0.0
        score += 1.0 if inside else 0.0
        names = " ".join([names, *map(self._page.names, _around(link))])
        return score - (4.0 if _NOT_PAGES.search(names) else 0.0)

    @cached_property
    def _named_next(self) -> frozenset[HtmlElement]:
        """The elements that the page calls next."""
        named = self._page.named("next", "older", "suivant", "siguiente", "weiter", "previous")
        return frozenset(node for node in named if _NEXT_NAME.search(self._page.names(node)))

    def _follows(self, url: str) -> float:
        """How much an address looks like that of the page after this one (2.5), of another page (less than nought)."""
        if host_of(url).removeprefix("www.") != host_of(self._page.url).removeprefix("www."):
            return -4.0
        other, own = address_of(url), self._address
        if own.number is None and self._shown is not None and other.number == self._shown + 1:
            # The address does not tell which page this is, and the row of pages does.
            own = replace(own, number=self._shown, counts_pages=True)
        return own.score_of_next(other)

    def _other(self, node: HtmlElement) -> str | None:
        url = self._page.link(node.get("href"))
        return url if url and not same_page(url, self._page.url) else None


def _around(link: HtmlElement) -> list[HtmlElement]:
    """The few elements around a link that hold little else."""
    return [node for node in islice(link.iterancestors(), 3) if _has_at_most(node, MAX_BESIDE)]


def _has_at_most(node: HtmlElement, most: int) -> bool:
    """Whether an element has no more children than these; to count thousands for each of them would take long."""
    return next(islice(node, most, None), None) is None

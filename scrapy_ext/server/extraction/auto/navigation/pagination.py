"""Pagination: the links between the pages of a list, the next page, and the number of the page.

A link is taken for the next page by a sum of scores: of its text, its names, its position, the number of the next page
in its URL, and the number that a row of pages has for that URL. One sign alone is not enough, as "next" is also written
beside articles, images and months; a URL that cannot be the next page of this one outweighs all others. Where no link
is found, the attributes by which scripts load more of a list are read.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import NamedLink, Request
from scrapy_ext.server.extraction.auto.navigation.links import (
    NOT_PAGES,
    OF_PAGES,
    PAGE_NAME,
    SignsOfNext,
    is_of_other,
    link_name,
    links_of,
    paging_parts,
)
from scrapy_ext.server.extraction.auto.navigation.page_controls import number_in_control, number_in_part
from scrapy_ext.server.extraction.auto.navigation.page_numbers import Address, PageRow, address_of, rows_of
from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.urls import host_of, same_page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("pagination")
#: Attributes with a URL: scripts load more of the list from there.
_SCRIPTED: Final = _VOCABULARY.words("scripted")
MAX_SCRIPTED: Final = 200
_LOADS_MORE = _VOCABULARY.pattern("loads_more")


def scripted_next(page: Page, own: Address) -> Request | None:
    """Return the request for the next page from an attribute, where its URL is that of the page after ``own``."""
    there = [name for name in _SCRIPTED if name in page.with_attribute]
    nodes = [node for name in there for node in islice(page.tree.iterfind(f".//*[@{name}]"), MAX_SCRIPTED)]
    for node in nodes:
        names = page.names(node)
        for attribute in there:
            value = (node.get(attribute) or "").strip()
            if not re.match(r"https?://|[/?]", value) or (url := page.link(value)) is None:
                continue
            follows = -1.0 if same_page(url, page.url) else own.score_of_next(address_of(url))
            named = f"{names} {attribute}"
            if follows >= 2.0 and _LOADS_MORE.search(named) and not NOT_PAGES.search(named):
                return Request(url=url, name=link_name(node))
    return None


MAX_LINKS: Final = 6_000
#: The least score of the link to the next page: more than the best single sign, a text or a URL (2.5 each).
ENOUGH: Final = 4.0
#: Rows of page numbers with different URLs; this many, as beside the threads of a forum, are not about the page.
MOST_ROWS: Final = 3
#: Longest line that states the number of a page, and links around one that are read.
MAX_LINE_LENGTH: Final = 40
MAX_BESIDE: Final = 20
#: Scores of a link that the row of pages has for the next page, and for another one.
SAID_BY_ROW: Final = 2.5
AGAINST_ROW: Final = -4.0


class _Scored(NamedTuple):
    score: float
    url: str
    node: HtmlElement


class Pagination:
    """The row of pages that a page belongs to, if there is one."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._address: Address = address_of(page.url)

    @cached_property
    def parts(self) -> list[HtmlElement]:
        """The parts of the page with links from page to page."""
        return paging_parts(self._page)

    @cached_property
    def rows(self) -> list[PageRow]:
        """The rows of page numbers that are about this page."""
        page = self._page
        found = [
            row
            for row in rows_of(page, self.parts)
            if self._is_numbered(row) or ((len(row.links) > 1 or row.named) and not is_of_other(self._page, row.node))
        ]
        for row in found:
            row.current = row.current if row.current is not None else self._counted(row)
        beside = [row for row in found if any(self._is_beside(url) for _, url in row.links.values())]
        if beside:
            return beside
        return found if len({address_of(next(iter(row.links.values()))[1]).path for row in found}) < MOST_ROWS else []

    @cached_property
    def links(self) -> list[NamedLink]:
        """The links from page to page of a list: by number, and to the first, the next, the last."""
        parts = [*self.parts, *(row.node for row in self.rows)]
        return [link for link in links_of(self._page, parts) if PAGE_NAME.search(link.name or "")]

    @cached_property
    def next(self) -> Request | None:
        """The request for the next page of a list; None where it is not certain."""
        scored = self._scored
        if (stated := self._stated()) is not None:
            # The link on the page keeps what the reader chose: an order, a filter.
            own = next((link for link in scored if link.score >= ENOUGH and _are_one_page(link.url, stated)), None)
            own = own or next((link for link in scored if same_page(link.url, stated)), None)
            return Request(url=own.url if own else stated, name=link_name(own.node) if own else None)
        if not scored or scored[0].score < ENOUGH:
            return scripted_next(self._page, self._address)
        best = scored[0]
        # With two equally good URLs, neither is certain.
        if any(
            other.score > best.score - 0.5
            and not _are_one_page(other.url, best.url)
            and self._follows(other.url) != self._follows(best.url)
            and _offset_of(other.url) == _offset_of(best.url)
            for other in scored[1:]
        ):
            return None
        return Request(url=best.url, name=link_name(best.node))

    @cached_property
    def number(self) -> int | None:
        """The number of this page among those of its list, from 1; None without a row of pages."""
        if self._shown is not None:
            return self._shown
        own, following = self._address, address_of(self.next.url) if self.next else None
        if following is not None and following.counts_pages and own.is_beside(following):
            if own.number is not None and following.number == own.number + 1:
                return own.number + (1 if own.number == 0 or self._counts_from_zero else 0)
            return 1 if own.number is None and following.number == 2 else None
        linked = {number for row in self.rows for number in row.links}
        if own.counts_pages and own.number and (own.number - 1 in linked or (own.number == 1 and linked)):
            return own.number
        if own.counts_pages and own.number and self._has_link_before:
            return own.number + self._counts_from_zero
        return None

    @cached_property
    def _has_link_before(self) -> bool:
        """True where a part with links between pages leads to the page before this, as on the last page of a list."""
        found = (self._other(link) for part in self.parts for link in islice(part.iter("a"), MAX_BESIDE))
        addresses = [address_of(url) for url in found if url and self._is_of_host(url)]
        before = (self._address.number or 0) - 1
        return any(each.counts_pages and each.number == before and self._address.is_beside(each) for each in addresses)

    @cached_property
    def _counts_from_zero(self) -> bool:
        found = (self._other(link) for part in self.parts for link in part.iter("a"))
        addresses = [address_of(url) for url in found if url]
        return any(other.number == 0 and other.counts_pages and self._address.is_beside(other) for other in addresses)

    @cached_property
    def _shown(self) -> int | None:
        """The number that the row of pages marks as current, or states (``Page 2 of 10``)."""
        marked = {row.current for row in self.rows if row.current is not None}
        if len(marked) == 1:
            return next(iter(marked))
        for part in self.parts:
            match = OF_PAGES.search(node_text(part, 200))
            if match and any(self._other(link) for link in part.iter("a")):
                return _number_in(match)
        lines = (line for line in self._page.numbered_lines if len(line[1]) <= MAX_LINE_LENGTH)
        counted = ((node, OF_PAGES.fullmatch(text.strip(" ()|·"))) for node, text in lines)
        found = {_number_in(match) for node, match in counted if match and self._links_beside(node, _number_in(match))}
        if found:
            return found.pop() if len(found) == 1 else None
        controlled = number_in_control(self._page, self.parts)
        return controlled if controlled is not None else number_in_part(self.parts)

    def _links_beside(self, node: HtmlElement, number: int) -> bool:
        """Return whether a link by a line leads to the page before or after the one with this number."""
        around = next(islice(node.iterancestors(), 1, None), node)
        links = (self._other(link) for link in islice(around.iter("a"), MAX_BESIDE))
        addresses = [address_of(url) for url in links if url and self._is_of_host(url)]
        beside = {each.number for each in addresses if each.counts_pages and self._address.is_beside(each)}
        return not beside.isdisjoint({number - 1, number + 1})

    def _counted(self, row: PageRow) -> int | None:
        """Return the number of this page by its URL, as the URLs of the row count."""
        own = self._address
        steps = set()
        for number, (_, url) in row.links.items():
            other = address_of(url)
            if number < 2 or not own.is_beside(other):
                continue
            if other.number is None:
                return None
            steps.add((1, other.number - number) if other.counts_pages else (other.number // (number - 1), 0))
        if len(steps) != 1:
            return None
        step, first = steps.pop()
        if own.number is None:
            return 1 if min(row.links) <= 2 else None
        if not first and step > 1:
            return own.number // step + 1 if own.number % step == 0 else None
        return own.number - first if own.number - first > 0 else None

    def _stated(self) -> str | None:
        """Return the URL of ``<link rel=next>``, unless it is that of the next article or chapter."""
        for node in self._page.tree.iter("link"):
            if "next" not in (node.get("rel") or "").lower().split() or (url := self._other(node)) is None:
                continue
            address = address_of(url)
            number = self._address.number if self._address.counts_pages else None
            numbered = address.counts_pages and address.number == (number or 1) + 1
            if numbered or self._address.is_beside(address) or self._follows(url) > 0:
                return url
        return None

    @cached_property
    def _scored(self) -> list[_Scored]:
        signs = SignsOfNext(self._page)
        within = {link for part in self.parts for link in part.iter("a")}
        within.update(link for row in self.rows for link in row.node.iter("a"))
        following = {row.following: row for row in self.rows if row.following}
        best: dict[str, _Scored] = {}
        for link in islice(self._page.tree.iter("a"), MAX_LINKS):
            score = signs.of(link, inside=link in within)
            if score <= 0 or (url := self._other(link)) is None:
                continue
            if url not in following and is_of_other(self._page, link):
                # In such a part, only the URL can show that it is the next page.
                score -= 1.5 if address_of(url).counts_pages and self._follows(url) >= 2.5 else 9.0
            score += max(self._follows(url), 0.0 if url in following else -9.0) + self._by_rows(url)
            if url not in best or score > best[url].score:
                best[url] = _Scored(score, url, link)
        for url, row in following.items():
            if url is not None and not same_page(url, self._page.url):
                # The number after the current one is a sign by itself.
                base = 2.0 if row.counts or row.node in self.parts else 1.0
                score = base + max(self._follows(url), 0.0) + self._by_rows(url)
                if url not in best or score > best[url].score:
                    node = best[url].node if url in best else row.links[(row.current or 0) + 1][0]
                    best[url] = _Scored(score, url, node)
        # Of two offsets the smaller one is that of the next page, the other of the last.
        return sorted(best.values(), key=lambda link: (-link.score, _offset_of(link.url)))

    def _by_rows(self, url: str) -> float:
        for row in self.rows:
            if row.following == url:
                return SAID_BY_ROW
            number = row.number_of(url)
            if number is not None and (row.current is not None or number == 1):
                return AGAINST_ROW
        return 0.0

    def _follows(self, url: str) -> float:
        """Return how much a URL looks like that of the next page (2.5), or of another page (below zero)."""
        if not self._is_of_host(url):
            return -4.0
        other, own = address_of(url), self._address
        if own.number is None and self._shown is not None and other.number == self._shown + 1:
            # The URL has no number of the page, and the row of pages has.
            own = replace(own, number=self._shown, counts_pages=True)
        score = own.score_of_next(other)
        canonical = self._page.canonical_url
        if score <= 0 and own.number is None and canonical and not same_page(canonical, self._page.url):
            score = max(score, address_of(canonical).score_of_next(other))
        return score

    def _is_of_host(self, url: str) -> bool:
        page = self._page
        return host_of(url).removeprefix("www.") in {
            host_of(own).removeprefix("www.") for own in (page.url, page.base_url)
        }

    def _is_beside(self, url: str) -> bool:
        if not self._is_of_host(url):
            return False
        other = address_of(url)
        canonical = self._page.canonical_url
        return any(
            address.is_beside(other) or address.score_of_next(other) > 0
            for address in (self._address, *([address_of(canonical)] if canonical else []))
        )

    def _is_numbered(self, row: PageRow) -> bool:
        """Return whether the URLs of a row are this page's with the numbers of its links."""
        found = [(number, address_of(url)) for number, (_, url) in row.links.items()]
        counted = [
            number
            for number, address in found
            if address.counts_pages
            and self._address.is_beside(address)
            and address.number in {number, number - 1}
            and not address.cursor
        ]
        return bool(counted) and 2 * len(counted) >= len(found)

    def _other(self, node: HtmlElement) -> str | None:
        url = self._page.link(node.get("href"))
        return url if url and not same_page(url, self._page.url) else None


def _number_in(match: re.Match[str]) -> int:
    return int(next(filter(None, match.groups())))


def _are_one_page(first: str, second: str) -> bool:
    one, other = address_of(first), address_of(second)
    return same_page(first, second) or (
        one.number is not None and one.path == other.path and one.number == other.number
    )


def _offset_of(url: str) -> int:
    address = address_of(url)
    return address.number or 0 if not address.counts_pages else 0

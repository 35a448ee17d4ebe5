"""Results pages of search engines: the organic results, without advertisements.

A result is a block with a heading in, or around, a link to another site, perhaps through a redirect of the engine. Its
title is such a link, or one that is named a title; where there are hardly any, a link among several at the same kind of
place. Left out are those in side bars and menus, advertisements, and links to other pages of a site below its result.
Most engines show the address of each result: where the results do, a title that stands elsewhere and has none is of a
box between the results (news, videos, questions).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Serp, SerpMetadata, SerpOrganicResult
from scrapy_ext.server.extraction.auto.navigation.page_numbers import address_of
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page import Page, node_text, now, one_line
from scrapy_ext.server.extraction.auto.page.layout import Parts, own_boxes, way_to
from scrapy_ext.server.extraction.auto.page.urls import bare, host_of, parts_of, site_of
from scrapy_ext.server.extraction.auto.serp_texts import (
    ResultTexts,
    is_redirect,
    own_target_of,
    target_of,
    texts_after,
    title_text,
)
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_LINKS: Final = 4_000
MAX_BLOCK_ELEMENTS: Final = 400
#: A heading or a name is searched in so many elements of a link.
MAX_INSIDE: Final = 30
#: Elements after a title that may belong to its result.
MAX_FOLLOWING: Final = 8
#: Groups of plain links that are tried.
MAX_GROUPS: Final = 8
#: Fewer titles are no results, where plain links may be.
FEW: Final = 3
#: How many times as many results the links that are named titles have to be, to count beside headings: with few more,
#: they are those below results.
MANY_MORE: Final = 1.5
#: Fewest plain links that are results.
SEVERAL: Final = 4
#: Shortest text of a plain link that is a title, in characters.
SHORTEST_TITLE: Final = 4
#: Characters that are read to see whether there is a text: elements without one count as well.
MAX_PEEK: Final = 60
#: The share of the results of the largest group that show their address, where that is expected of others: engines
#: leave it out of a few.
USUAL: Final = 0.7
#: Steps of the path that titles of one kind have in common.
STEPS: Final = 4

_HEADING_TAGS: Final = ("h1", "h2", "h3", "h4", "h5")
_HEADINGS: Final = frozenset(_HEADING_TAGS)
_OUTSIDE_TAGS: Final = frozenset({"nav", "footer", "aside", "header", "form"})
_VOCABULARY: Final = load_vocabulary("search")
_TITLE_NAME: Final = _VOCABULARY.pattern("title_name")
_OUTSIDE_NAME, _AD_NAME = _VOCABULARY.patterns("outside_name", "ad_name")
#: Names of a state (``with-related``, ``adv-line_no``) rather than of a part.
_STATE: Final = re.compile(r"(?:^|(?<=\s))(?:\S*(?:with|has|no|without|columns?|grid)[-_]\S*|\S+_(?:yes|no))(?=\s|$)")
_AD_LABEL, _AD_LINK = _VOCABULARY.patterns("ad_label", "ad_link", flags=re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Candidate:
    """A link that may be the title of a result."""

    link: HtmlElement
    title: HtmlElement
    url: str
    #: None where the engine hides it.
    target: str | None
    way: str
    #: Whether the title is a heading, rather than named so.
    headed: bool = False
    block: HtmlElement | None = None
    shown_url: str | None = None
    description: str | None = None


def results_of(page: Page) -> list[Candidate]:
    """Return the results of a page in its order, each with its block and the texts in it."""
    titled, plain = _candidates(page)
    headed = [each for each in titled if each.headed]
    found = _settled(page, _without_links_below(headed))
    if len(headed) < len(titled):
        # Links that are only named titles are those below results as often as results.
        others = _settled(page, _without_links_below(titled))
        found = others if sum(map(_evidence, others)) > MANY_MORE * sum(map(_evidence, found)) else found
    if len(found) < FEW:
        others = _best_plain(page, plain)
        found = others if len(others) > len(found) else found
    return list(_distinct(found))


def _distinct(candidates: list[Candidate]) -> Iterator[Candidate]:
    """Yield the fullest candidate of each address, where there are several."""
    by_key: dict[str, Candidate] = {}
    for each in candidates:
        key = bare(each.target or each.url)
        if key not in by_key or _evidence(each) > _evidence(by_key[key]):
            by_key[key] = each
    chosen = {id(each) for each in by_key.values()}
    yield from (each for each in candidates if id(each) in chosen)


# ── titles ──


def _candidates(page: Page) -> tuple[list[Candidate], list[Candidate]]:
    """Return the links that have or are a heading, and the others with a text, in the order of the page."""
    titled: list[Candidate] = []
    plain: list[Candidate] = []
    for link in islice(page.tree.iter("a"), MAX_LINKS):
        url = page.link(link.get("href"))
        target = _target(url, page.url) if url else None
        # A redirect of another host of the engine is one of its other services.
        hidden = target is None and url is not None and is_redirect(url) and host_of(url) == host_of(page.url)
        if url is None or not (target or hidden) or _AD_LINK.search(f"{url} {target or ''}"):
            continue
        title = _title_of(page, link)
        if title is not None:
            headed = any(_is_heading(node) for node in (title, *islice(link.iterancestors(), 2)))
            titled.append(Candidate(link, title, url, target, way_to(title, STEPS), headed=headed))
        elif len(node_text(link, MAX_PEEK)) >= SHORTEST_TITLE:
            plain.append(Candidate(link, link, url, target, way_to(link, STEPS)))
    held = Counter(box for each in (titled if len(titled) > FEW else plain) for box in each.link.iterancestors())
    # A part with most of the titles is no side bar or menu, whatever its name.
    most = max(held.values(), default=0) // 2
    outside = Parts(lambda node: held[node] <= most and _is_outside(page, node), ends=lambda node: node.tag == "body")
    return [each for each in titled if not outside.hold(each.link)], [
        each for each in plain if not outside.hold(each.link)
    ]


def _target(url: str, page_url: str) -> str | None:
    return target_of(url, page_url) or own_target_of(url, page_url)


def _title_of(page: Page, link: HtmlElement) -> HtmlElement | None:
    """Return the heading in or around a link; the link itself, where it is named a title."""
    inner = next(islice(link.iter(*_HEADING_TAGS), 1), None)
    if inner is None:
        inner = next((node for node in islice(link.iter("*"), MAX_INSIDE) if node.get("role") == "heading"), None)
    if inner is not None:
        return inner if node_text(inner, MAX_PEEK) else None
    for ancestor in islice(link.iterancestors(), 2):
        if _is_heading(ancestor):
            return link if len(node_text(link, MAX_PEEK)) > 1 else None
    inside = islice(link.iterdescendants("*"), MAX_INSIDE)
    named = next((node for node in inside if _TITLE_NAME.search(page.names(node))), None)
    if named is not None:
        return named if node_text(named, MAX_PEEK) else None
    parent = link.getparent()
    names = f"{page.names(link)} {page.names(parent) if parent is not None else ''}"
    return link if _TITLE_NAME.search(names) and len(node_text(link, MAX_PEEK)) > 2 else None


def _is_heading(node: HtmlElement) -> bool:
    return node.tag in _HEADINGS or node.get("role") == "heading"


def _is_outside(page: Page, node: HtmlElement) -> bool:
    """Return whether a part without results begins at an element: a menu, a side bar, another box, an ad."""
    names = _STATE.sub(" ", page.names(node))
    of_result = node.tag == "header" and any(ancestor.tag in {"article", "li"} for ancestor in node.iterancestors())
    return (
        (node.tag in _OUTSIDE_TAGS and not of_result)
        or bool(names and (_OUTSIDE_NAME.search(names) or _AD_NAME.search(names)))
        or node.get("data-text-ad") is not None
        or node.get("role") in {"complementary", "navigation"}
        # Answers to other questions are folded until somebody opens them.
        or page.hides(node)
    )


def _without_links_below(candidates: list[Candidate]) -> list[Candidate]:
    """Drop the titles of another kind below a result, in a part of the page with titles of its site alone."""
    sites: dict[HtmlElement, str | None] = {}
    for each in candidates:
        site = site_of(each.target) if each.target else each.url
        for ancestor in each.title.iterancestors():
            sites[ancestor] = site if sites.get(ancestor, site) == site else None
    kept: list[Candidate] = []
    for each in candidates:
        above = kept[-1] if kept else None
        if above is not None and above.target and each.target and above.way != each.way:
            around = set(above.title.iterancestors())
            shared = next((node for node in each.title.iterancestors() if node in around), None)
            if shared is not None and sites.get(shared) == site_of(above.target):
                continue
        kept.append(each)
    return kept


# ── blocks ──


def _settled(page: Page, candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates that are results, with their blocks and texts."""
    found = _with_blocks(page, candidates)
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for each in found:
        groups[each.way].append(each)
    if len(groups) < 2:
        return found
    main = max(groups.values(), key=lambda some: sum(_evidence(each) for each in some))
    usual = sum(each.shown_url is not None for each in main) >= USUAL * len(main)
    lists = {each.block.getparent() for each in main if each.block is not None}
    kept = []
    for each in found:
        group = groups[each.way]
        # A heading with a path of its own, and without an address, is rather that of a box than a result.
        others = each.shown_url is not None if usual else len(group) > 1 or _evidence(each) > 1
        beside = each.block is not None and each.block.getparent() in lists and each.description is not None
        if group is main or others or beside:
            kept.append(each)
    return kept if len(kept) == len(found) else _with_blocks(page, kept)


def _evidence(candidate: Candidate) -> int:
    return (candidate.shown_url is not None) + (candidate.description is not None)


def _with_blocks(page: Page, candidates: list[Candidate]) -> list[Candidate]:
    boxes = own_boxes(each.link for each in candidates)
    holders = {*boxes.values(), *(box for each in candidates for box in each.link.iterancestors())}
    found = []
    for each in candidates:
        each.block = boxes[each.link]
        if _is_ad(page, each, each.block):
            continue
        texts = ResultTexts(page, each.link, each.title, each.block)
        each.shown_url, each.description = texts.shown_url, texts.description
        if not _evidence(each):
            each.shown_url, each.description = texts_after(_following(each.block, holders))
        found.append(each)
    return found


def _following(block: HtmlElement, holders: set[HtmlElement]) -> list[HtmlElement]:
    """Return the elements from a block to the next result, in lists where a result has no element of its own."""
    found = [block]
    for sibling in islice(block.itersiblings("*"), MAX_FOLLOWING):
        if sibling in holders:
            break
        found.append(sibling)
    return found


def _is_ad(page: Page, candidate: Candidate, block: HtmlElement) -> bool:
    around = {candidate.link, *candidate.link.iterancestors()}
    for node in islice(block.iter("*"), MAX_BLOCK_ELEMENTS):
        if node is not block and node in around and _AD_NAME.search(page.names(node)):
            return True
        text = one_line(node.text)
        if 1 < len(text) <= 20 and not len(node) and _AD_LABEL.fullmatch(text) and node is not candidate.title:
            return True
    return False


def _best_plain(page: Page, candidates: list[Candidate]) -> list[Candidate]:
    """Return the group of plain links that are results: nearly all with an address and a text of their own."""
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for each in candidates:
        groups[each.way].append(each)
    best: list[Candidate] = []
    for group in sorted(groups.values(), key=len, reverse=True)[:MAX_GROUPS]:
        if len(group) < max(SEVERAL, len(best)):
            break
        found = _with_blocks(page, list(_distinct(group)))
        full = [each for each in found if _evidence(each) > 1]
        if len(found) >= SEVERAL and len(full) >= USUAL * len(found) and len(full) > len(best):
            best = found
    return best


# ── items ──

MAX_RESULTS: Final = 200
MAX_NAME_LENGTH: Final = 400
_QUERY_KEYS: Final = _VOCABULARY.words("query_keys")
_TOTAL: Final = _VOCABULARY.pattern("total", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,12})\b", re.IGNORECASE)


def extract(page: Page) -> Serp:
    """Return the results of a page. Only ``url`` and ``metadata`` are always present."""
    results = [_result(each) for each in results_of(page)]
    results = [each for each in results if each.name][:MAX_RESULTS]
    for rank, result in enumerate(results, 1):
        result.rank = rank
    if results:
        page.sources.note("organicResults", "blocks with a heading in a link to another site")
    return Serp(
        url=page.url,
        organicResults=results or None,
        pageNumber=_page_number(page) if results else None,
        metadata=SerpMetadata(
            dateDownloaded=now(),
            searchedQuery=_searched(page),
            displayedQuery=_displayed(page),
            totalOrganicResults=_total(page),
        ),
    )


def _result(candidate: Candidate) -> SerpOrganicResult:
    result = SerpOrganicResult(
        name=title_text(candidate.title, MAX_NAME_LENGTH) or None,
        url=candidate.target or candidate.url,
        displayedUrlText=candidate.shown_url,
        description=candidate.description,
    )
    if candidate.target is None:
        host = _HOST.match(candidate.shown_url or "")
        result.guessedOrigin = f"https://{host.group(1).lower()}" if host else None
    return result


# ── the search ──


def _page_number(page: Page) -> int | None:
    """Return the page number from 1: of the row of pages, else of an offset in the URL, ten results a page."""
    number = Pagination(page).number
    if number is not None:
        return number
    address = address_of(page.url)
    if address.number is None:
        return 1
    return max(1, address.number) if address.counts_pages else address.number // 10 + 1


def _searched(page: Page) -> str | None:
    given = dict(reversed(parse_qsl(parts_of(page.url).query[:8_000])[:60]))
    return next((one_line(given[key])[:500] for key in _QUERY_KEYS if given.get(key)), None)


def _displayed(page: Page) -> str | None:
    for node in islice(page.tree.iter("input", "textarea"), 200):
        if (node.get("name") or "").lower() in _QUERY_KEYS and node.get("type") not in {"hidden", "submit", "button"}:
            text = one_line(node.get("value") or node.text)
            if text:
                return text[:500]
    return None


def _total(page: Page) -> int | None:
    for _, text in islice(page.lines, 3_000):
        match = _TOTAL.search(text) if len(text) <= 80 and any(map(str.isdigit, text)) else None
        if match:
            digits = "".join(filter(str.isdecimal, match.group(1)))
            return int(digits) if digits else None
    return None

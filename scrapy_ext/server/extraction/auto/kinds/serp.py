"""Results pages of search engines: the organic results, without advertisements.

A result is a block with a heading in, or around, a link to another site, perhaps through a redirect of the engine.
Links with the same path from the root repeat. Those in side bars, in menus, and in parts that are named or labelled as
advertisements are left out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl, unquote

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Serp, SerpMetadata, SerpOrganicResult
from scrapy_ext.server.extraction.auto.navigation.numbers import address_of
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page import Page, node_text, now, one_line
from scrapy_ext.server.extraction.auto.page.layout import Parts, own_boxes, way_to
from scrapy_ext.server.extraction.auto.page.urls import absolute, bare, parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5"})
BLOCKS: Final = ("div", "p", "li", "ul", "ol", "table", "tr", "td", "section", "article", "h2", "h3", "h4", "dl", "dd")
_VOCABULARY: Final = load_vocabulary("search")
TITLE_NAME = _VOCABULARY.pattern("title_name")
OUTSIDE_TAGS: Final = frozenset({"nav", "footer", "aside", "header", "form"})
OUTSIDE_NAME, AD_NAME, SHOWN_URL_NAME = _VOCABULARY.patterns("outside_name", "ad_name", "shown_url_name")
AD_LABEL, AD_LINK = _VOCABULARY.patterns("ad_label", "ad_link", flags=re.IGNORECASE)
LOOKS_LIKE_URL = re.compile(r"(?:https?://)?(?:[\w-]+\.)+[a-z]{2,12}(?:\s*[›/»>].{0,200})?", re.IGNORECASE)
DESCRIPTION_NAME = _VOCABULARY.pattern("description_name")
NO_DESCRIPTION: Final = frozenset({"cite", "button", "nav", "time", "form", "select", "h1", "h2", "h3", "h4", "h5"})
QUERY_KEYS: Final = _VOCABULARY.words("query_keys")
TOTAL = _VOCABULARY.pattern("total", re.IGNORECASE)


MAX_QUERY_LENGTH: Final = 8_000
MAX_PARAMETERS: Final = 60

#: Parameters with the target, the usual ones first.
_TARGETS: Final = ("q", "url", "uddg", "u", "target", "to", "dest", "destination", "r", "redirect", "link", "ru")
#: Paths of redirects: ``/url``, ``/l/``, ``/ck/a``, ``/link``, ``/click``, ``/RU=``.
_REDIRECT = re.compile(
    r"/(?:url|l|links?|ck(?:/a)?|click\w*|out|go|goto|redir(?:ect)?\w*|r|clck(?:/\w+)*)(?:[/.;]|$)|/RU=", re.IGNORECASE
)
_IN_PATH = re.compile(r"/RU=(https?%3a[^/]+)/", re.IGNORECASE)
#: ``a1`` and the URL in Base64.
_ENCODED = re.compile(r"a1(aHR0c[\w-]{8,4000})={0,2}")


def target_of(url: str, page_url: str) -> str | None:
    """Return the target of a link; None for a link within the site, and for a redirect with a hidden target."""
    if not is_same_site(url, page_url):
        return _wrapped(url) or url if is_redirect(url) else url
    return _wrapped(url)


def is_redirect(url: str) -> bool:
    """Return whether a URL looks like a redirect."""
    return _REDIRECT.search(parts_of(url).path) is not None


def is_same_site(first: str, second: str) -> bool:
    """Return whether two URLs are of one site, whatever precedes its name: ``www.``, ``r.search.``."""
    return site_of(first) == site_of(second)


def _wrapped(url: str) -> str | None:
    parts = parts_of(url)
    match = _IN_PATH.search(parts.path)
    if match:
        return _other_site(unquote(match.group(1)), url)
    given = dict(parse_qsl(parts.query[:MAX_QUERY_LENGTH])[:MAX_PARAMETERS])
    for name in _TARGETS:
        value = given.get(name, "")
        encoded = _ENCODED.fullmatch(value)
        if encoded:
            value = _decoded(encoded.group(1))
        if value.startswith(("http://", "https://")) and (target := _other_site(value, url)):
            return target
    return None


def _other_site(target: str, url: str) -> str | None:
    found = absolute(url, target)
    return found if found and not is_same_site(found, url) else None


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


MAX_LINKS: Final = 4_000
MAX_RESULTS: Final = 200
MAX_BLOCK_ELEMENTS: Final = 400
MAX_NAME_LENGTH: Final = 400
MAX_DESCRIPTION_LENGTH: Final = 2_000
#: Shortest description, in characters.
SHORTEST: Final = 20

_HOST = re.compile(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,12})\b", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class _Candidate:
    """A link that may be the title of a result."""

    link: HtmlElement
    title: HtmlElement
    url: str
    target: str | None


def extract(page: Page) -> Serp:
    """Return the results of a page. Only ``url`` and ``metadata`` are always present."""
    results = list(islice(_results(page), MAX_RESULTS))
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


def _results(page: Page) -> Iterator[SerpOrganicResult]:
    found = _candidates(page)
    candidates = [each for each in found if not AD_LINK.search(each.url) and not AD_LINK.search(each.target or "")]
    blocks = own_boxes(each.link for each in candidates)
    seen: set[str] = set()
    for candidate in candidates:
        block = blocks[candidate.link]
        if _is_ad(page, block, candidate):
            continue
        result = _result(page, candidate, block)
        key = bare(result.url or "")
        if key not in seen and result.name:
            seen.add(key)
            yield result


def _candidates(page: Page) -> list[_Candidate]:
    """Return the titles of the path that most results have, and other headings."""
    outside = Parts(lambda node: _is_outside(page, node), ends=lambda node: node.tag == "body")
    found: dict[str, list[_Candidate]] = {}
    for link in islice(page.tree.iter("a"), MAX_LINKS):
        url = page.link(link.get("href"))
        title = _title_of(page, link) if url else None
        if url is None or title is None or outside.hold(link):
            continue
        target = target_of(url, page.url)
        if target is None and not is_redirect(url):
            continue
        found.setdefault(way_to(title, 4), []).append(_Candidate(link, title, url, target))
    # A heading with a path of its own is rather that of a box between the results than a result.
    kept = {id(each) for some in found.values() for each in some if len(some) > 1 or len(found) == 1}
    everything = sorted(
        (each for some in found.values() for each in some), key=lambda each: page.order.get(each.link, 0)
    )
    return [each for each in everything if id(each) in kept]


def _title_of(page: Page, link: HtmlElement) -> HtmlElement | None:
    """Return the heading in or around a link; the link itself, where it is named a title."""
    inner = next((node for node in link.iter("h1", "h2", "h3", "h4", "h5")), None)
    if inner is None:
        inner = next((node for node in islice(link.iter("*"), 30) if node.get("role") == "heading"), None)
    if inner is not None:
        return inner if node_text(inner, 3) else None
    for ancestor in islice(link.iterancestors(), 2):
        if ancestor.tag in HEADINGS or ancestor.get("role") == "heading":
            return link
    inside = islice(link.iterdescendants("*"), 30)
    named = next((node for node in inside if TITLE_NAME.search(page.names(node))), None)
    if named is not None:
        return named if node_text(named, 3) else None
    parent = link.getparent()
    names = f"{page.names(link)} {page.names(parent) if parent is not None else ''}"
    return link if TITLE_NAME.search(names) and len(node_text(link, 20)) > 2 else None


def _is_outside(page: Page, node: HtmlElement) -> bool:
    """Return whether a part without results begins at an element: a menu, a side bar, another box, an ad."""
    names = page.names(node)
    of_result = node.tag == "header" and any(ancestor.tag in {"article", "li"} for ancestor in node.iterancestors())
    return (
        (node.tag in OUTSIDE_TAGS and not of_result)
        or bool(names and (OUTSIDE_NAME.search(names) or AD_NAME.search(names)))
        or node.get("data-text-ad") is not None
        or node.get("role") in {"complementary", "navigation"}
    )


def _is_ad(page: Page, block: HtmlElement, candidate: _Candidate) -> bool:
    for node in islice(block.iter("*"), MAX_BLOCK_ELEMENTS):
        if node is not block and AD_NAME.search(page.names(node)) and candidate.link in node.iter("a"):
            return True
        text = one_line(node.text)
        if 1 < len(text) <= 20 and not len(node) and AD_LABEL.fullmatch(text) and node is not candidate.title:
            return True
    return False


def _result(page: Page, candidate: _Candidate, block: HtmlElement) -> SerpOrganicResult:
    shown = _shown_url(page, candidate, block)
    result = SerpOrganicResult(
        name=node_text(candidate.title, MAX_NAME_LENGTH) or None,
        url=candidate.target or candidate.url,
        displayedUrlText=shown,
        description=_description(page, candidate, block, shown),
    )
    if candidate.target is None:
        host = _HOST.match(shown or "")
        result.guessedOrigin = f"https://{host.group(1).lower()}" if host else None
    return result


def _shown_url(page: Page, candidate: _Candidate, block: HtmlElement) -> str | None:
    named = None
    for node in islice(block.iter("*"), MAX_BLOCK_ELEMENTS):
        if node is candidate.title or node in candidate.title.iterancestors():
            continue
        text = node_text(node, 301)
        if not 3 < len(text) <= 300:
            continue
        if node.tag == "cite" or (SHOWN_URL_NAME.search(page.names(node)) and "." in text):
            return text
        if named is None and len(node) <= 3 and LOOKS_LIKE_URL.fullmatch(text):
            named = text
    return named


def _description(page: Page, candidate: _Candidate, block: HtmlElement, shown: str | None) -> str | None:
    """Return the part named so, else the longest text that is in no other part of the result."""
    taken = {candidate.link, candidate.title, *candidate.link.iterancestors(), *candidate.title.iterancestors()}
    best = ""
    for node in islice(block.iter("*"), MAX_BLOCK_ELEMENTS):
        if node in taken or node.tag in NO_DESCRIPTION or next(node.iterdescendants(*BLOCKS), None) is not None:
            continue
        around = islice(node.iterancestors(), 6)
        if any(ancestor is candidate.link or ancestor.tag in NO_DESCRIPTION for ancestor in around):
            continue
        text = node_text(node, MAX_DESCRIPTION_LENGTH)
        if text == shown or len(text) < SHORTEST or LOOKS_LIKE_URL.fullmatch(text):
            continue
        if DESCRIPTION_NAME.search(page.names(node)):
            return text
        best = max(best, text, key=len) if node.tag != "a" else best
    return best or None


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
    return next((one_line(given[key])[:500] for key in QUERY_KEYS if given.get(key)), None)


def _displayed(page: Page) -> str | None:
    for node in islice(page.tree.iter("input", "textarea"), 200):
        if (node.get("name") or "").lower() in QUERY_KEYS and node.get("type") not in {"hidden", "submit", "button"}:
            text = one_line(node.get("value") or node.text)
            if text:
                return text[:500]
    return None


def _total(page: Page) -> int | None:
    for _, text in islice(page.lines, 3_000):
        match = TOTAL.search(text) if len(text) <= 80 and any(map(str.isdigit, text)) else None
        if match:
            digits = "".join(filter(str.isdecimal, match.group(1)))
            return int(digits) if digits else None
    return None

"""What the kinds of lists and of navigation share: entries as items, the category, and its parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from lxml.html import HtmlElement
from zyte_common_items import Breadcrumb, Link, ListMetadata, ProbabilityMetadata, ProbabilityRequest, Request

from scrapy_ext.server.extraction.auto.lists.listing import Listed
from scrapy_ext.server.extraction.auto.navigation.site_links import link_name
from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.items import now
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line
from scrapy_ext.server.extraction.auto.page.urls import bare, parts_of, same_page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_CATEGORIES: Final = 200
MAX_CATEGORY_LENGTH: Final = 100
#: Links to categories that stand alone are as likely something else.
FEWEST_CATEGORIES: Final = 2
#: How sure it is that a link under the page's own address leads to a part of its category.
SURE_OF_CATEGORY: Final = 0.8

_COUNT = re.compile(r"\s*[(\[]\d[\d.,]*[)\]]$|\s+\d+\s*(?:results|items|products)$", re.IGNORECASE)
_VOCABULARY: Final = load_vocabulary("lists")
_NO_CATEGORY = _VOCABULARY.pattern("no_category", re.IGNORECASE)
_NOT_UNDER = _VOCABULARY.pattern("not_under", re.IGNORECASE)


def metadata() -> ListMetadata:
    """The metadata of a page of a list."""
    return ListMetadata(dateDownloaded=now())


def sure_of(listed: Listed) -> ProbabilityMetadata:
    """The metadata of an item of a list."""
    return ProbabilityMetadata(probability=listed.sure)


def requests(listed: Listed) -> list[ProbabilityRequest] | None:
    """The requests for what is listed, each once, in the order of the page."""
    found = [ProbabilityRequest(url=card.url, name=card.name, metadata=sure_of(listed)) for card in listed.cards]
    found = found or [
        ProbabilityRequest(
            url=url, name=one_line(thing.text("name", "headline", "title")) or None, metadata=sure_of(listed)
        )
        for url, thing in listed.stated.items()
    ]
    return found or None


def as_link(request: Request | None) -> Link | None:
    """A request as a link."""
    return Link(url=request.url, text=request.name) if request is not None else None


def category_of(page: Page, breadcrumbs: list[Breadcrumb] | None) -> str | None:
    """The name of the category that a page lists: its heading, or the end of its breadcrumbs.

    None where neither is there: a title may be that of a shop or a slogan.
    """
    if parts_of(page.url).path in {"", "/"}:
        return None
    focus = Focus(page, page.meta("og:title"), page.title)
    heading = _COUNT.sub("", focus.heading_text or "")
    last = breadcrumbs[-1] if breadcrumbs else None
    trail = last.name if last is not None and (last.url is None or same_page(last.url, page.url)) else None
    name = trail if trail and (not heading or trail.casefold() in heading.casefold()) else heading or trail
    return name if name and len(name) <= MAX_CATEGORY_LENGTH else None


def sub_categories(page: Page, listed: Listed) -> list[ProbabilityRequest] | None:
    """The requests for the parts of the page's category: what its links name one step below its own address.

    What is listed on the page itself is none, nor is what has a number like that of an item.
    """
    path = re.sub(r"\.(?:html?|php|aspx?)$", "", parts_of(page.url).path).rstrip("/")
    if not path:
        return None
    items = {bare(url) for url in (*listed.urls, *listed.stated)}
    items_beside = Counter(parts_of(url).path.rstrip("/").rpartition("/")[0] for url in listed.urls)
    # Where things lie directly under the category, so may what the list leaves out.
    if items_beside[path] > max(1, len(items) // 10):
        return None
    found: dict[str, ProbabilityRequest] = {}
    for link, url in _links_below(page, path):
        name = _COUNT.sub("", link_name(link) or "")
        if bare(url) in items or not 1 < len(name) <= 50 or _NO_CATEGORY.search(name) or len(name.split()) > 6:
            continue
        request = ProbabilityRequest(url=url, name=name, metadata=ProbabilityMetadata(probability=SURE_OF_CATEGORY))
        found.setdefault(bare(url), request)
    return list(found.values())[:MAX_CATEGORIES] if len(found) >= FEWEST_CATEGORIES else None


def _links_below(page: Page, path: str) -> Iterator[tuple[HtmlElement, str]]:
    for link in page.tree.iter("a"):
        url = page.link(link.get("href"))
        parts = parts_of(url or "")
        if url is None or parts.query or parts.netloc != parts_of(page.url).netloc:
            continue
        below = parts.path.removeprefix(path + "/") if parts.path.startswith(path + "/") else ""
        step = below.strip("/")
        if step and "/" not in step and not re.search(r"\d{4,}", step) and not _NOT_UNDER.search(f"/{step}"):
            yield link, url

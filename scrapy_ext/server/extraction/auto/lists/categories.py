"""Category that a page lists, and the subcategories that it links to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Breadcrumb, ProbabilityMetadata, ProbabilityRequest
from scrapy_ext.server.extraction.auto.lists.listing import PageList
from scrapy_ext.server.extraction.auto.navigation.links import link_name
from scrapy_ext.server.extraction.auto.page import Focus, Page
from scrapy_ext.server.extraction.auto.page.urls import bare, parts_of, same_page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longer names are no categories.
MAX_CATEGORY_LENGTH: Final = 100
MAX_CATEGORIES: Final = 200
#: The least number of subcategories: a lone link is as likely something else.
FEWEST_CATEGORIES: Final = 2
#: The probability that a link below the page's own URL leads to a subcategory.
SURE_OF_CATEGORY: Final = 0.8
_VOCABULARY: Final = load_vocabulary("lists")
_NO_CATEGORY, _NOT_UNDER = _VOCABULARY.patterns("no_category", "not_under", flags=re.IGNORECASE)
#: The word before the name of a category in its heading: ``Category: Travel``.
_LABEL = _VOCABULARY.pattern("category_label", re.IGNORECASE)
#: The count after the name of a category.
_COUNT = re.compile(r"\s*[(\[]\d[\d.,]*[)\]]$|\s+\d+\s*(?:results|items|products)$", re.IGNORECASE)


def category_of(page: Page, breadcrumbs: list[Breadcrumb] | None) -> str | None:
    """Return the name of the category that a page lists: its heading, or the end of its breadcrumbs.

    The title is not used: it may be that of a shop or a slogan.
    """
    if parts_of(page.url).path in {"", "/"}:
        return None
    focus = Focus(page, page.meta("og:title"), page.title)
    heading = _COUNT.sub("", _LABEL.sub("", focus.heading_text or ""))
    last = breadcrumbs[-1] if breadcrumbs else None
    trail = last.name if last is not None and (last.url is None or same_page(last.url, page.url)) else None
    name = trail if trail and (not heading or trail.casefold() in heading.casefold()) else heading or trail
    return name if name and len(name) <= MAX_CATEGORY_LENGTH else None


def sub_categories(page: Page, listed: PageList) -> list[ProbabilityRequest] | None:
    """Return the requests for subcategories: named links one path segment below the page's own URL.

    Entries of the page's own list are left out, and URLs with a number like that of an item.
    """
    path = re.sub(r"\.(?:html?|php|aspx?)$", "", parts_of(page.url).path).rstrip("/")
    if not path:
        return None
    items = {bare(url) for url in (*listed.urls, *listed.stated)}
    items_beside = Counter(parts_of(url).path.rstrip("/").rpartition("/")[0] for url in listed.urls)
    # Where entries are directly below the category, other links there may be entries as well.
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

"""Navigation among articles, products and jobs: the links of a section, a category or a list of openings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.headings import breadcrumbs_of
from scrapy_ext.server.extraction.auto.items import (
    ArticleNavigation,
    JobPostingNavigation,
    ListMetadata,
    ProbabilityMetadata,
    ProbabilityRequest,
    ProductNavigation,
)
from scrapy_ext.server.extraction.auto.kinds.lists import COUNT, articles_on, category_of, jobs_on, products_on
from scrapy_ext.server.extraction.auto.lists.listing import PageList
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.navigation.site_links import link_name
from scrapy_ext.server.extraction.auto.page import Page, now, one_line
from scrapy_ext.server.extraction.auto.page.urls import bare, parts_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

T = TypeVar("T", ArticleNavigation, ProductNavigation, JobPostingNavigation)

MAX_CATEGORIES: Final = 200
#: The least number of subcategories: a lone link is as likely something else.
FEWEST_CATEGORIES: Final = 2
#: The probability that a link below the page's own URL leads to a subcategory.
SURE_OF_CATEGORY: Final = 0.8

_VOCABULARY: Final = load_vocabulary("lists")
_NO_CATEGORY, _NOT_UNDER = _VOCABULARY.patterns("no_category", "not_under", flags=re.IGNORECASE)


def _navigation(
    item: type[T],
    things_on: Callable[[Page], PageList],
    page: Page,
    *,
    categorised: bool = True,
) -> T:
    """Return the links to things, to subcategories, and to the next page. Only ``url`` and ``metadata`` are always
    there.
    """
    listed, pagination = things_on(page), Pagination(page)
    category: dict[str, Any] = {}
    if categorised:
        category["categoryName"] = category_of(page, breadcrumbs_of(page))
        category["subCategories"] = sub_categories(page, listed)
    return item(
        url=page.url,
        items=requests(listed),
        nextPage=pagination.next,
        pageNumber=pagination.number,
        metadata=ListMetadata(dateDownloaded=now()),
        **category,
    )


article_navigation: Final = partial(_navigation, ArticleNavigation, articles_on)
product_navigation: Final = partial(_navigation, ProductNavigation, products_on)
#: The schema has no categories of jobs: links like them may as well be places, companies and working hours.
job_posting_navigation: Final = partial(_navigation, JobPostingNavigation, jobs_on, categorised=False)


def requests(listed: PageList) -> list[ProbabilityRequest] | None:
    """Return the requests for the entries of a list, each once, in the order of the page."""
    named = [(card.url, card.name) for card in listed.cards]
    named = named or [
        (url, one_line(thing.text("name", "headline", "title")) or None) for url, thing in listed.stated.items()
    ]
    sure = ProbabilityMetadata(probability=listed.sure)
    return [ProbabilityRequest(url=url, name=name, metadata=sure) for url, name in named] or None


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
        name = COUNT.sub("", link_name(link) or "")
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

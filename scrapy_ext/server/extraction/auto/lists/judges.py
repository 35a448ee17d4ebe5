"""Lists of articles, products and jobs of a page, each with the function that scores groups of entries."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.articles.body import ARTICLE_TYPES
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.jobs import is_of_jobs
from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.lists.listing import PageList, Shape, find_list, things_of
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line
from scrapy_ext.server.extraction.auto.products.offers import PRODUCT_TYPES
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The least score of a list of articles.
ENOUGH_FOR_ARTICLES: Final = 4.5
#: Shortest headline, in Latin letters; names of sections and products are shorter.
SHORTEST_HEADLINE: Final = 25

_LISTS: Final = load_vocabulary("lists")
_ARTICLE_NAMES = _LISTS.pattern("article_names")
_ARTICLE_ADDRESS = _LISTS.pattern("article_address", re.IGNORECASE)
#: URLs of pages that are no articles, even with dates and summaries.
_OTHER_ADDRESS = _LISTS.pattern("other_address", re.IGNORECASE)
_PRODUCTS = re.compile(r"product(?!ion)|(?:^|[\s_-])(?:sku|cart|price)(?:$|[\s_-])")
#: The least number of entries of a list that the structured data does not have.
FEWEST: Final = 3
#: Names of this length are headlines where there are many with an image each.
LONG_HEADLINE: Final = 35
#: Text before a link in a sentence, in characters; before a headline there is at most a date.
FEWEST_BEFORE: Final = 20
MOST_BEFORE: Final = 100


def articles_on(page: Page) -> PageList:
    """Return the list of articles of a page; empty when it has none."""
    return find_list(page, _score_articles, things_of(page, *ARTICLE_TYPES), ENOUGH_FOR_ARTICLES)


def _score_articles(shape: Shape) -> float:
    dated, summarised = shape.part(lambda card: card.content.date), shape.part(lambda card: card.content.summary)
    by, marked = shape.part(lambda card: card.content.authors), shape.marked
    long = shape.name_length >= SHORTEST_HEADLINE
    headed, led = shape.part(lambda card: card.linked_heading is not None), shape.leads_to(_ARTICLE_ADDRESS)
    # Long names are headlines where they are headings or in URLs, and there are many.
    titled = long and (
        (headed >= 0.6 and (led >= 0.6 or summarised >= 0.6)) or (led >= 0.6 and len(shape.group.entries) >= 6)
    )
    pictured = shape.pictured >= 0.6 and shape.of_site >= 0.5 and shape.matches(_PRODUCTS) < 0.5
    titled = titled or (shape.name_length >= LONG_HEADLINE and pictured and len(shape.group.entries) >= 6)
    known = marked >= 0.5 or dated >= 0.5 or by >= 0.5 or titled
    if marked < 0.5 and (shape.leads_to(_OTHER_ADDRESS) >= 0.5 or len(shape.group.entries) < FEWEST):
        return 0.0
    if shape.part(_is_of_author) >= 0.5 or shape.part(_is_in_prose) >= 0.5:
        return 0.0
    if not known or shape.prices >= 0.4 or shape.counted >= 0.5:
        return 0.0
    score = 2.0 * dated + 1.5 * summarised + by + 3.0 * marked + 0.5 * shape.part(lambda card: card.content.image)
    score += 1.5 if long else 0.0
    score += headed + shape.matches(_ARTICLE_NAMES) + led
    return score + shape.size - 3.0 * shape.prices - 3.0 * shape.orders


def _is_of_author(card: Card) -> bool:
    """Return whether the name of an entry is that of its author: a post of a thread, a person."""
    return any(card.name == author.name for author in card.content.authors or ())


def _is_in_prose(card: Card) -> bool:
    """Return whether the link is in a sentence."""
    parent = card.entry.link.getparent()
    before = one_line(parent.text)[-MOST_BEFORE:] if parent is not None else ""
    return len(before) >= FEWEST_BEFORE and not is_mostly_date(before)


#: The least score of a list of products.
ENOUGH_FOR_PRODUCTS: Final = 4.0

_SHOPS: Final = load_vocabulary("products")
_PRODUCT_NAMES = _SHOPS.pattern("list_names")
_PRODUCT_ADDRESS = _SHOPS.pattern("list_address", re.IGNORECASE)


def products_on(page: Page) -> PageList:
    """Return the list of products of a page; empty when it has none."""
    return find_list(page, _score_products, things_of(page, *PRODUCT_TYPES), ENOUGH_FOR_PRODUCTS)


def _score_products(shape: Shape) -> float:
    image, named = shape.part(lambda card: card.content.image), shape.matches(_PRODUCT_NAMES)
    known = (
        shape.prices >= 0.5
        or shape.marked >= 0.5
        or (named >= 0.8 and image >= 0.5 and shape.leads_to(_PRODUCT_ADDRESS) >= 0.5)
    )
    if not known or shape.of_site < 0.5 or shape.counted >= 0.5:
        return 0.0
    score = (
        4.0 * shape.prices + image + named + shape.orders + 3.0 * shape.marked + 0.5 * shape.leads_to(_PRODUCT_ADDRESS)
    )
    return score + shape.size - 2.0 * shape.part(lambda card: card.content.date)


_JOB_TYPES: Final = ("JobPosting",)
#: The least score of a list of jobs.
ENOUGH_FOR_JOBS: Final = 4.5

_JOBS: Final = load_vocabulary("jobs")
_JOB_ADDRESS = _JOBS.pattern("list_address", re.IGNORECASE)
_JOB_NAMES = _JOBS.pattern("list_names")
_JOB_WORDS = _JOBS.pattern("list_words", re.IGNORECASE)


def jobs_on(page: Page) -> PageList:
    """Return the list of jobs of a page; empty when it has none."""
    of_page = is_of_jobs(page)

    def score(shape: Shape) -> float:
        leads, named, worded = (
            shape.leads_to(_JOB_ADDRESS),
            shape.matches(_JOB_NAMES),
            shape.part(lambda card: _JOB_WORDS.search(card.content.text)),
        )
        signs = sum(part >= 0.5 for part in (leads, named, worded, float(of_page)))
        if shape.marked < 0.5 and signs < 2:
            return 0.0
        return 2.0 * leads + 1.5 * named + 2.0 * worded + 1.0 * of_page + 3.0 * shape.marked + shape.size

    return find_list(page, score, things_of(page, *_JOB_TYPES), ENOUGH_FOR_JOBS)

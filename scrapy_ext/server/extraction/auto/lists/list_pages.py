"""Pages that list articles, products or jobs: the entries of a section, a category or search results, as items of a
list and as links to follow.

Each kind of list has a function that scores groups of entries; the best group is the list (:mod:`.listing`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.articles.article import ARTICLE_TYPES
from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.authors import authors_in
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date, read
from scrapy_ext.server.extraction.auto.fields.price_notation import code_of, place_on
from scrapy_ext.server.extraction.auto.items import (
    ArticleFromList,
    ArticleList,
    ArticleNavigation,
    JobPostingNavigation,
    Link,
    ListMetadata,
    ProbabilityMetadata,
    ProbabilityRequest,
    ProductFromList,
    ProductList,
    ProductNavigation,
)
from scrapy_ext.server.extraction.auto.jobs.terms import is_of_jobs
from scrapy_ext.server.extraction.auto.lists.ads import without_ads_of_articles, without_ads_of_products
from scrapy_ext.server.extraction.auto.lists.asides import without_asides
from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.lists.categories import category_of, sub_categories
from scrapy_ext.server.extraction.auto.lists.leads import with_leads
from scrapy_ext.server.extraction.auto.lists.listing import PageList, Shape, find_list, form_of, things_of
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page import Page, Thing, now, one_line
from scrapy_ext.server.extraction.auto.page.text import first
from scrapy_ext.server.extraction.auto.products.offers import (
    PRODUCT_TYPES,
    Offer,
    main_product,
    offer_of,
    offers_in_markup,
)
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The least score of a list of articles: that of dates (2.0) and names as long as headlines (1.5), with links that are
#: the main ones of their entries; or of markup (3.0), with such links.
ENOUGH_FOR_ARTICLES: Final = 4.5
#: Shortest headline, in Latin letters; names of sections and products are shorter.
SHORTEST_HEADLINE: Final = 25

_LISTS: Final = load_vocabulary("lists")
_ARTICLE_NAMES = _LISTS.pattern("article_names")
_ARTICLE_ADDRESS = _LISTS.pattern("article_address", re.IGNORECASE)
#: URLs of pages that are no articles, even with dates and summaries.
_OTHER_ADDRESS = _LISTS.pattern("other_address", re.IGNORECASE)
_REPLY = _LISTS.pattern("reply", re.IGNORECASE)
_PRODUCTS = re.compile(r"product(?!ion)|(?:^|[\s_-])(?:sku|cart|price)(?:$|[\s_-])")
#: The least number of entries of a list that the structured data does not have.
FEWEST: Final = 3
#: The share of the kinds of elements (by tag and class) that two products have in common; one has no price, or a badge.
ALIKE: Final = 0.6
#: Names of this length are headlines where there are many with an image each.
LONG_HEADLINE: Final = 35
#: Text before a link in a sentence, in characters; before a headline there is at most a date.
FEWEST_BEFORE: Final = 20
MOST_BEFORE: Final = 100


def articles_on(page: Page) -> PageList:
    """Return the list of articles of a page; empty when it has none."""
    listed = find_list(page, _score_articles, things_of(page, *ARTICLE_TYPES), ENOUGH_FOR_ARTICLES)
    listed = with_leads(page, listed)
    listed = replace(listed, cards=without_ads_of_articles(listed.cards))
    return _with_probability(listed, "articles", page, {})


def _score_articles(shape: Shape) -> float:
    dated, summarised = shape.part(lambda card: card.content.is_dated), shape.part(lambda card: card.content.summary)
    by, marked = shape.part(lambda card: card.content.authors), shape.marked
    long = shape.name_length >= SHORTEST_HEADLINE
    headed, led = shape.part(lambda card: card.linked_heading is not None), shape.leads_to(_ARTICLE_ADDRESS)
    # Long names are headlines where they are headings or in URLs, and there are many.
    titled = long and (
        (headed >= 0.6 and (led >= 0.6 or summarised >= 0.6)) or (led >= 0.6 and len(shape.group.entries) >= 6)
    )
    # Short ones as well, with a summary each.
    titled = titled or (headed >= 0.6 and led >= 0.6 and summarised >= 0.6)
    pictured = shape.pictured >= 0.6 and shape.of_site >= 0.5 and shape.matches(_PRODUCTS) < 0.5
    titled = titled or (shape.name_length >= LONG_HEADLINE and pictured and len(shape.group.entries) >= 6)
    known = marked >= 0.5 or dated >= 0.5 or by >= 0.5 or titled
    if marked < 0.5 and (shape.leads_to(_OTHER_ADDRESS) >= 0.5 or len(shape.group.entries) < FEWEST):
        return 0.0
    if shape.part(_is_of_author) >= 0.5 or shape.part(_is_in_prose) >= 0.5 or shape.part(_is_reply) >= 0.5:
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


def _is_reply(card: Card) -> bool:
    """Return whether the name of an entry is that of the last reply in a forum: ``Re: Roses``."""
    return _REPLY.match(card.name or "") is not None


def _is_in_prose(card: Card) -> bool:
    parent = card.entry.link.getparent()
    before = one_line(parent.text)[-MOST_BEFORE:] if parent is not None else ""
    return len(before) >= FEWEST_BEFORE and not is_mostly_date(before)


#: The least score of a list of products.
ENOUGH_FOR_PRODUCTS: Final = 4.0

_SHOPS: Final = load_vocabulary("products")
_PRODUCT_NAMES = _SHOPS.pattern("list_names")
_ON_REQUEST = _SHOPS.pattern("on_request", re.IGNORECASE)
_PRODUCT_ADDRESS, _BANNER_ADDRESS = _SHOPS.patterns("list_address", "banner_address", flags=re.IGNORECASE)


def products_on(page: Page) -> PageList:
    """Return the list of products of a page; empty when it has none."""
    listed = find_list(page, _score_products, things_of(page, *PRODUCT_TYPES), ENOUGH_FOR_PRODUCTS)
    listed = replace(listed, cards=without_asides(page, without_ads_of_products(_without_banners(listed))))
    product = main_product(page)
    signs = {**offers_in_markup(page, product), "product": product is not None}
    return _with_probability(listed, "products", page, signs)


def _with_probability(listed: PageList, kind: str, page: Page, signs: Mapping[str, float]) -> PageList:
    """Return a list with the probability that the page is one of such things, rather than one of a single thing that
    lists others beside it."""
    entries = len(listed.cards) or len(listed.stated)
    if not entries:
        return listed
    return replace(listed, sure=probability.of(kind, page, {**signs, "entries": math.log(entries)}))


def _without_banners(listed: PageList) -> tuple[Card, ...]:
    """Return the entries of a list of products without those between them that lead to a brand, a sale or a guide.

    These have no prices, URLs of another form than the products, and markup of their own or the URLs of such pages.
    """
    by_form: dict[object, list[Card]] = {}
    for card in listed.cards:
        by_form.setdefault(form_of(card.url), []).append(card)
    most = max(by_form.values(), key=len, default=[])

    def is_offered(card: Card) -> bool:
        return card.content.price is not None or listed.thing(card.url) is not None

    if not any(map(is_offered, most[:FEWEST])):
        return listed.cards
    usual = [card.content.markup for card in most[:FEWEST]]
    banners = {
        card.url
        for cards in by_form.values()
        if cards is not most and not any(map(is_offered, cards))
        for card in cards
        if _BANNER_ADDRESS.search(card.url) or not _is_alike(card.content.markup, usual)
    }
    return tuple(card for card in listed.cards if card.url not in banners)


def _is_alike(markup: frozenset[str], others: list[frozenset[str]]) -> bool:
    return any(len(markup & other) >= ALIKE * len(markup | other) for other in others)


def _score_products(shape: Shape) -> float:
    image, named = shape.part(lambda card: card.content.image), shape.matches(_PRODUCT_NAMES)
    # Some have no prices for all to see.
    asked = shape.part(lambda card: _ON_REQUEST.search(card.content.text)) if shape.prices < 0.5 else 0.0
    known = (
        shape.prices + asked >= 0.5
        or shape.marked >= 0.5
        or (named >= 0.8 and image >= 0.5 and shape.leads_to(_PRODUCT_ADDRESS) >= 0.5)
    )
    if not known or shape.of_site < 0.5 or shape.counted >= 0.5:
        return 0.0
    score = 4.0 * (shape.prices + asked) + image + named + shape.orders + 3.0 * shape.marked
    score += 0.5 * shape.leads_to(_PRODUCT_ADDRESS)
    return score + shape.size - 2.0 * shape.part(lambda card: card.content.date)


_JOB_TYPES: Final = ("JobPosting",)
#: The least score of a list of jobs.
ENOUGH_FOR_JOBS: Final = 4.5

_JOBS: Final = load_vocabulary("jobs")
_JOB_ADDRESS, _JOB_WORDS = _JOBS.patterns("list_address", "list_words", flags=re.IGNORECASE)
_JOB_NAMES = _JOBS.pattern("list_names")
#: Names of pages about working for an employer, which have the URLs of jobs.
_NO_JOB = _JOBS.pattern("no_job", re.IGNORECASE)


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
        if shape.marked < 0.5 and (signs < 2 or shape.part(lambda card: _NO_JOB.fullmatch(card.name or "")) >= 0.5):
            return 0.0
        return 2.0 * leads + 1.5 * named + 2.0 * worded + 1.0 * of_page + 3.0 * shape.marked + shape.size

    return find_list(page, score, things_of(page, *_JOB_TYPES), ENOUGH_FOR_JOBS)


#: An image of so many entries is a placeholder; fewer entries are two sizes, or two colours.
MANY_OF_ONE_IMAGE: Final = 3


def article_list(page: Page) -> ArticleList:
    """Return the list of articles of a page. Only ``url`` and ``metadata`` are always present."""
    listed = articles_on(page)
    found = [_article(page, listed, card.url, listed.thing(card.url), card) for card in listed.cards]
    found = found or [_article(page, listed, url, thing) for url, thing in listed.stated.items()]
    _leave_out_shared_images(listed, found)
    page.sources.note("articles", listed.rule)
    return ArticleList(
        url=page.url,
        canonicalUrl=page.canonical_url,
        breadcrumbs=breadcrumbs_of(page),
        articles=found or None,
        metadata=ListMetadata(dateDownloaded=now()),
    )


def _leave_out_shared_images(listed: PageList, found: Sequence[ArticleFromList | ProductFromList]) -> None:
    """Leave out images of several entries: an icon or a placeholder, and the entry's own comes after it."""
    times = Counter(item.mainImage.url for item in found if item.mainImage)
    cards = {card.url: card for card in listed.cards}
    for item in found:
        if item.mainImage is None or times[item.mainImage.url] < MANY_OF_ONE_IMAGE:
            continue
        shown = cards[item.url].content.images if item.url in cards else []
        stated = (item.images or []) if isinstance(item, ArticleFromList) else []
        own = [image for image in (*shown, *stated) if times[image.url] < MANY_OF_ONE_IMAGE][:1]
        item.mainImage = next(iter(own), None)
        times.update(image.url for image in own)
        if isinstance(item, ArticleFromList):
            others = [image for image in stated if times[image.url] < MANY_OF_ONE_IMAGE]
            item.images = images.merged(own, others) or None


def _article(page: Page, listed: PageList, url: str, thing: Thing | None, card: Card | None = None) -> ArticleFromList:
    """Return an article of the page's list, or without a card of its structured data alone."""
    shown = card.content if card else None
    date = (read(thing.text("datePublished", "dateCreated"), page) if thing else None) or (
        shown.date if shown else None
    )
    pictures = images.of_thing(page, thing)
    if shown is not None:
        pictures = images.merged([shown.image] if shown.image else [], pictures)
    return ArticleFromList(
        url=url,
        headline=first((card.name if card else None, one_line(thing.text("headline", "name")) if thing else None)),
        datePublished=date.iso if date else None,
        datePublishedRaw=date.raw if date else None,
        authors=authors_in(page, thing) or ((shown.authors or shown.authors_of_line) if shown else None),
        articleBody=_body(thing, card),
        mainImage=pictures[0] if pictures else None,
        images=pictures or None,
        inLanguage=_language(page, thing, card),
        metadata=ProbabilityMetadata(probability=listed.sure),
    )


def _language(page: Page, thing: Thing | None, card: Card | None) -> str | None:
    """Return the language of an entry: of its structured data, of its link or the parts around it, or of the page."""
    if card is None or (thing is not None and thing.text("inLanguage")):
        return page.language_of(thing)
    return page.language_at(card.entry.link)


def _body(thing: Thing | None, card: Card | None) -> str | None:
    if card is None:
        return thing.text("articleBody", "description") if thing else None
    summary = card.content.summary
    # A text with the headline at its beginning is that of the whole entry.
    summary = summary if summary and not summary.startswith(card.name or summary) else None
    return first((summary, thing.text("description") if thing else None))


def product_list(page: Page) -> ProductList:
    """Return the list of products of a page. Only ``url`` and ``metadata`` are always present."""
    listed, pagination = products_on(page), Pagination(page)
    trail, following = breadcrumbs_of(page), pagination.next
    page.sources.note("products", listed.rule)
    return ProductList(
        url=page.url,
        canonicalUrl=page.canonical_url,
        breadcrumbs=trail,
        categoryName=category_of(page, trail),
        pageNumber=pagination.number,
        paginationNext=Link(url=following.url, text=following.name) if following else None,
        products=_products(page, listed),
        metadata=ListMetadata(dateDownloaded=now()),
    )


def _products(page: Page, listed: PageList) -> list[ProductFromList] | None:
    found = [_product(page, listed, card.url, listed.thing(card.url), card) for card in listed.cards]
    found = found or [_product(page, listed, url, thing) for url, thing in listed.stated.items()]
    _leave_out_shared_images(listed, found)
    return found or None


def _product(page: Page, listed: PageList, url: str, thing: Thing | None, card: Card | None = None) -> ProductFromList:
    """Return a product of the page's list, or without a card of its structured data alone."""
    shown, offer = card.content if card else None, offer_of(thing) if thing else Offer()
    # The visible price is current; structured data is used for prices that the entry does not show.
    price, regular = (shown.price if shown else None) or offer.price, offer.regular_price
    item = ProductFromList(
        url=url,
        name=first((one_line(thing.text("name")) if thing else None, card.name if card else None)),
        mainImage=(shown.image if shown else None) or next(iter(images.of_thing(page, thing)), None),
        productId=shown.number if shown else None,
        metadata=ProbabilityMetadata(probability=listed.sure),
    )
    if price is not None:
        regular = shown.tags.regular_price(price) if shown else regular
        item.price = price.amount
        item.regularPrice = regular.amount if regular and regular.value > price.value else None
        item.currencyRaw = price.currency_raw
        place = place_on(page)
        item.currency = code_of(offer.currency, place) or code_of(price.currency_raw, place)
    return item


T = TypeVar("T", ArticleNavigation, ProductNavigation, JobPostingNavigation)


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
    page.sources.note("items", listed.rule)
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

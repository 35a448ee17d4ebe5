"""Lists of articles and of products: the entries of a section, a category or search results."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from zyte_common_items import (
    ArticleFromList,
    ArticleList,
    ArticleListMetadata,
    Author,
    Breadcrumb,
    Image,
    Link,
    ProbabilityMetadata,
    ProductFromList,
    ProductList,
    ProductListMetadata,
)

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.authors import authors_in
from scrapy_ext.server.extraction.auto.fields.dates import Date, read
from scrapy_ext.server.extraction.auto.fields.headings import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.money import Money, iso_code
from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.lists.judges import articles_on, products_on
from scrapy_ext.server.extraction.auto.lists.listing import PageList
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page.layout import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.records import now
from scrapy_ext.server.extraction.auto.page.text import first, one_line
from scrapy_ext.server.extraction.auto.page.urls import parts_of, same_page
from scrapy_ext.server.extraction.auto.products.offers import Offer, offer_of

#: Longer names are no categories.
MAX_CATEGORY_LENGTH: Final = 100
#: Entries of one image from which it is a placeholder; fewer are two sizes, or two colours.
MANY_OF_ONE_IMAGE: Final = 3

#: The count after the name of a category.
COUNT = re.compile(r"\s*[(\[]\d[\d.,]*[)\]]$|\s+\d+\s*(?:results|items|products)$", re.IGNORECASE)


def sure_of(listed: PageList) -> ProbabilityMetadata:
    """Return the metadata of an item of a list."""
    return ProbabilityMetadata(probability=listed.sure)


def category_of(page: Page, breadcrumbs: list[Breadcrumb] | None) -> str | None:
    """Return the name of the category that a page lists: its heading, or the end of its breadcrumbs.

    The title is not used: it may be that of a shop or a slogan.
    """
    if parts_of(page.url).path in {"", "/"}:
        return None
    focus = Focus(page, page.meta("og:title"), page.title)
    heading = COUNT.sub("", focus.heading_text or "")
    last = breadcrumbs[-1] if breadcrumbs else None
    trail = last.name if last is not None and (last.url is None or same_page(last.url, page.url)) else None
    name = trail if trail and (not heading or trail.casefold() in heading.casefold()) else heading or trail
    return name if name and len(name) <= MAX_CATEGORY_LENGTH else None


def article_list(page: Page) -> ArticleList:
    """Return the list of articles of a page. Only ``url`` and ``metadata`` are always present."""
    listed = articles_on(page)
    found = [_article_of_card(page, listed, card) for card in listed.cards]
    found = found or [_article_of_thing(page, listed, url, thing) for url, thing in listed.stated.items()]
    return ArticleList(
        url=page.url,
        canonicalUrl=page.canonical_url,
        breadcrumbs=breadcrumbs_of(page),
        articles=found or None,
        metadata=ArticleListMetadata(dateDownloaded=now()),
    )


def _article_of_card(page: Page, listed: PageList, card: Card) -> ArticleFromList:
    thing = listed.thing(card.url)
    date = _date(page, thing) or card.content.date
    pictures = images.merged([card.content.image] if card.content.image else [], images.of_thing(page, thing))
    return ArticleFromList(
        url=card.url,
        headline=first((card.name, _headline(thing))),
        datePublished=date.iso if date else None,
        datePublishedRaw=date.raw if date else None,
        authors=_authors(page, thing) or card.content.authors,
        articleBody=first((_summary(card), thing.text("description") if thing else None)),
        mainImage=pictures[0] if pictures else None,
        images=pictures or None,
        inLanguage=page.language_of(thing),
        metadata=sure_of(listed),
    )


def _article_of_thing(page: Page, listed: PageList, url: str, thing: Thing) -> ArticleFromList:
    date, pictures = _date(page, thing), images.of_thing(page, thing)
    return ArticleFromList(
        url=url,
        headline=_headline(thing),
        datePublished=date.iso if date else None,
        datePublishedRaw=date.raw if date else None,
        authors=_authors(page, thing),
        articleBody=thing.text("articleBody", "description"),
        mainImage=pictures[0] if pictures else None,
        images=pictures or None,
        inLanguage=page.language_of(thing),
        metadata=sure_of(listed),
    )


def _summary(card: Card) -> str | None:
    summary = card.content.summary
    # A text with the headline at its beginning is that of the whole entry.
    return summary if summary and not summary.startswith(card.name or summary) else None


def _headline(thing: Thing | None) -> str | None:
    return one_line(thing.text("headline", "name")) or None if thing else None


def _date(page: Page, thing: Thing | None) -> Date | None:
    return read(thing.text("datePublished", "dateCreated"), page) if thing else None


def _authors(page: Page, thing: Thing | None) -> list[Author] | None:
    return authors_in(page, thing) or None


def product_list(page: Page) -> ProductList:
    """Return the list of products of a page. Only ``url`` and ``metadata`` are always present."""
    listed, pagination = products_on(page), Pagination(page)
    trail, following = breadcrumbs_of(page), pagination.next
    return ProductList(
        url=page.url,
        canonicalUrl=page.canonical_url,
        breadcrumbs=trail,
        categoryName=category_of(page, trail),
        pageNumber=pagination.number,
        paginationNext=Link(url=following.url, text=following.name) if following else None,
        products=_products(page, listed),
        metadata=ProductListMetadata(dateDownloaded=now()),
    )


def _products(page: Page, listed: PageList) -> list[ProductFromList] | None:
    found = [_product_of_card(page, listed, card) for card in listed.cards]
    found = found or [_product_of_thing(page, listed, url, thing) for url, thing in listed.stated.items()]
    shown = Counter(item.mainImage.url for item in found if item.mainImage)
    for item in found:
        # An image of several entries is an icon or a placeholder.
        if item.mainImage and shown[item.mainImage.url] >= MANY_OF_ONE_IMAGE:
            item.mainImage = None
    return found or None


def _product_of_card(page: Page, listed: PageList, card: Card) -> ProductFromList:
    thing = listed.thing(card.url)
    offer = offer_of(thing) if thing else Offer()
    # The visible price is current; structured data is used for prices that the entry does not show.
    price = card.content.price or offer.price
    item = ProductFromList(
        url=card.url,
        name=first((one_line(thing.text("name")) if thing else None, card.name)),
        mainImage=card.content.image or _image(page, thing),
        productId=card.content.number,
        metadata=sure_of(listed),
    )
    _set_price(page, item, price, card.content.tags.regular_price(price) if price else None, offer)
    return item


def _product_of_thing(page: Page, listed: PageList, url: str, thing: Thing) -> ProductFromList:
    offer = offer_of(thing)
    item = ProductFromList(
        url=url,
        name=one_line(thing.text("name")) or None,
        mainImage=_image(page, thing),
        metadata=sure_of(listed),
    )
    _set_price(page, item, offer.price, offer.regular_price, offer)
    return item


def _set_price(page: Page, item: ProductFromList, price: Money | None, regular: Money | None, offer: Offer) -> None:
    if price is None:
        return
    item.price = price.amount
    item.regularPrice = regular.amount if regular and regular.value > price.value else None
    item.currencyRaw = price.currency_raw
    item.currency = iso_code(offer.currency, page.url) or iso_code(price.currency_raw, page.url)


def _image(page: Page, thing: Thing | None) -> Image | None:
    found = images.of_thing(page, thing)
    return found[0] if found else None

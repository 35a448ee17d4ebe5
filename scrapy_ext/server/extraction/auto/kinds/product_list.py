"""Lists of products: what a page of a category or of search results shows of each."""

from __future__ import annotations

from collections import Counter
from typing import Final

from zyte_common_items import Image, ProductFromList, ProductList, ProductListMetadata

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.money import Money, iso_code
from scrapy_ext.server.extraction.auto.lists import items as list_items
from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.lists.listing import Listed
from scrapy_ext.server.extraction.auto.lists.products import products_on
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import first, one_line
from scrapy_ext.server.extraction.auto.products.offers import Offer, offer_of

#: Things of one image are fewer: of two sizes, or two colours.
MANY_OF_ONE_IMAGE: Final = 3


def extract(page: Page) -> ProductList:
    """The list of products of a page. Only ``url`` and ``metadata`` are sure to be there."""
    listed, pagination = products_on(page), Pagination(page)
    trail = breadcrumbs_of(page)
    return ProductList(
        url=page.url,
        canonicalUrl=page.canonical_url,
        breadcrumbs=trail,
        categoryName=list_items.category_of(page, trail),
        pageNumber=pagination.number,
        paginationNext=list_items.as_link(pagination.next),
        products=_products(page, listed),
        metadata=list_items.metadata().cast(ProductListMetadata),
    )


def _products(page: Page, listed: Listed) -> list[ProductFromList] | None:
    found = [_of_card(page, listed, card) for card in listed.cards]
    found = found or [_of_thing(page, listed, url, thing) for url, thing in listed.stated.items()]
    shown = Counter(item.mainImage.url for item in found if item.mainImage)
    for item in found:
        # A picture of several things is a sign, or stands in until theirs are loaded.
        if item.mainImage and shown[item.mainImage.url] >= MANY_OF_ONE_IMAGE:
            item.mainImage = None
    return found or None


def _of_card(page: Page, listed: Listed, card: Card) -> ProductFromList:
    thing = listed.thing(card.url)
    offer = offer_of(thing) if thing else Offer()
    # What readers see is of this product and this day; markup fills in what the entry does not show.
    price = card.block.price or offer.price
    item = ProductFromList(
        url=card.url,
        name=first((one_line(thing.text("name")) if thing else None, card.name)),
        mainImage=card.block.image or _image(page, thing),
        productId=card.block.number,
        metadata=list_items.sure_of(listed),
    )
    _set_price(page, item, price, card.block.tags.regular_price(price) if price else None, offer)
    return item


def _of_thing(page: Page, listed: Listed, url: str, thing: Thing) -> ProductFromList:
    offer = offer_of(thing)
    item = ProductFromList(
        url=url,
        name=one_line(thing.text("name")) or None,
        mainImage=_image(page, thing),
        metadata=list_items.sure_of(listed),
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

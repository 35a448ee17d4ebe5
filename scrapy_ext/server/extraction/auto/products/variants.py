"""The variants of a product (colours, sizes) that its markup lists."""

from __future__ import annotations

from typing import Final

from zyte_common_items import ProductVariant

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.products.identifiers import gtins_of
from scrapy_ext.server.extraction.auto.products.offers import offer_of

MAX_VARIANTS: Final = 200


def variants_of(page: Page, product: Thing | None) -> list[ProductVariant] | None:
    """The variants; None for fewer than two, which are the product itself."""
    if product is None:
        return None
    found = [_variant(page, thing) for thing in product.things("hasVariant")[:MAX_VARIANTS]]
    return found if len(found) > 1 else None


def _variant(page: Page, thing: Thing) -> ProductVariant:
    offer = offer_of(thing)
    pictures = images.of_thing(page, thing)
    offers = thing.things("offers")
    return ProductVariant(
        name=thing.text("name"),
        sku=thing.text("sku"),
        mpn=thing.text("mpn"),
        gtin=gtins_of(thing) or None,
        color=thing.text("color"),
        size=thing.text("size"),
        style=thing.text("pattern"),
        price=offer.price.amount if offer.price else None,
        regularPrice=offer.regular_price.amount if offer.regular_price else None,
        currency=offer.currency,
        availability=offer.availability,
        images=pictures or None,
        mainImage=pictures[0] if pictures else None,
        url=page.link(thing.text("url") or next((text for each in offers for text in each.texts("url")), None)),
    )

"""Offers of the product in structured data (price, currency, availability), and its variants."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.money import Money, from_markup
from scrapy_ext.server.extraction.auto.items import ProductVariant
from scrapy_ext.server.extraction.auto.page import Page, Thing, one_line
from scrapy_ext.server.extraction.auto.products.gtins import gtins_of

PRODUCT_TYPES: Final = (
    "Product", "ProductGroup", "IndividualProduct", "ProductModel", "SomeProducts", "ProductCollection", "Vehicle",
    "Car", "Motorcycle", "Book",
)  # fmt: skip
MAX_VARIANTS: Final = 200
#: Properties in which variants differ.
_OF_VARIANTS: Final = ("sku", "mpn", "gtin13", "gtin12", "gtin14", "gtin8", "gtin", "productID", "color", "size", "url")


def main_product(page: Page) -> Thing | None:
    """Return the product that the page is about: the one with its own URL, else the first, those with offers first.

    Products of one name, and those that a group names, are variants of a group, which gets their offers.
    """
    things = page.markup.things(*PRODUCT_TYPES)
    offered = [thing for thing in things if thing.values("offers", "offer", "hasVariant", "price")]
    own = next((thing for thing in offered if _is_own(page, thing)), None)
    chosen = own or next(iter(offered or things), None)
    if chosen is None:
        return None
    variants = chosen.things("hasVariant")[:MAX_VARIANTS]
    if not variants and own is None:
        name = one_line(chosen.text("name")).casefold()
        alike = [thing for thing in offered if name and one_line(thing.text("name")).casefold() == name]
        variants = alike if len({thing.text("sku") for thing in alike} - {None}) > 1 else []
    return _group(page, chosen, variants[:MAX_VARIANTS]) if variants else chosen


def _is_own(page: Page, thing: Thing) -> bool:
    return page.is_at(page.link(thing.text("url") or thing.id))


def _group(page: Page, chosen: Thing, variants: list[Thing]) -> Thing:
    """Return the product of several variants: with the offers of all, those of the variant at the page's URL first."""
    properties = dict(chosen.properties)
    properties["hasVariant"] = list(variants)
    if chosen in variants:
        for name in _OF_VARIANTS:
            if len({tuple(thing.texts(name)) for thing in variants}) > 1:
                properties.pop(name, None)
    if chosen in variants or not chosen.things("offers", "offer"):
        at_page = [each for each in variants if any(_is_own(page, part) for part in (each, *each.things("offers")))]
        # A URL that all of them share is that of the group.
        first = at_page if len(at_page) == 1 else []
        properties["offers"] = [offer for each in (*first, *variants) for offer in each.values("offers", "offer")]
    return Thing(chosen.types, properties, chosen.id, chosen.by_id)


IN_STOCK: Final = "InStock"
OUT_OF_STOCK: Final = "OutOfStock"

#: Values of schema.org's ItemAvailability and what sites write instead, in lower case without punctuation.
_AVAILABILITY: Final = {
    **dict.fromkeys(("instock", "limitedavailability", "instoreonly", "onlineonly", "preorder", "presale"), IN_STOCK),
    **dict.fromkeys(("backorder", "madetoorder", "available", "availablefororder", "1", "true", "yes"), IN_STOCK),
    **dict.fromkeys(("outofstock", "soldout", "discontinued", "oos", "unavailable", "notavailable"), OUT_OF_STOCK),
    **dict.fromkeys(("0", "false", "no", "pending"), OUT_OF_STOCK),
}
_ZERO = re.compile(r"0+(?:[.,]0+)?")
_REGULAR_TYPES: Final = ("listprice", "msrp", "srp", "strikethroughprice", "regularprice", "suggestedretailprice")


@dataclass(frozen=True, slots=True)
class Offer:
    """Price and availability of an offer, None where they are not stated."""

    price: Money | None = None
    regular_price: Money | None = None
    currency: str | None = None
    availability: str | None = None
    #: There are prices, and all of them are zero.
    is_zero: bool = False


def availability_of(text: str | None) -> str | None:
    """Return ``InStock`` or ``OutOfStock`` for a value of structured data (``https://schema.org/SoldOut``)."""
    if not text:
        return None
    word = re.sub(r"[\W_]", "", re.split(r"[/#]", text.strip().rstrip("/"))[-1]).lower()
    return _AVAILABILITY.get(word)


def offer_of(product: Thing) -> Offer:
    """Return one offer for all those of a product: the first that has a price, in stock if any of them is."""
    things = list(_offers(product))
    read = [_read(thing) for thing in things]
    priced = next((offer for offer in read if offer.price), Offer())
    states = {offer.availability for offer in read} - {None}
    availability = IN_STOCK if IN_STOCK in states else OUT_OF_STOCK if states else None
    currency = priced.currency or next((offer.currency for offer in read if offer.currency), None)
    is_zero = any(offer.is_zero for offer in read) and not priced.price
    return Offer(priced.price, priced.regular_price, currency, availability, is_zero)


def _offers(product: Thing) -> Iterable[Thing]:
    direct = product.things("offers", "offer")
    for offer in direct:
        yield offer
        yield from offer.things("offers")
    if not direct and product.values("price", "lowPrice"):
        yield product


def _read(thing: Thing) -> Offer:
    stated = thing.text("price", "lowPrice")
    price = from_markup(stated)
    regular: Money | None = None
    currency = _currency(thing)
    for specification in thing.things("priceSpecification"):
        amount = from_markup(specification.text("price", "minPrice"))
        kind = re.sub(r"[\W_]", "", (specification.text("priceType") or "").rpartition("/")[2]).lower()
        if kind.endswith(_REGULAR_TYPES):
            regular = regular or amount
        else:
            price = price or amount
            currency = currency or _currency(specification)
    is_zero = price is None and bool(_ZERO.fullmatch((stated or "").strip()))
    return Offer(price, regular, currency, availability_of(thing.text("availability")), is_zero)


def _currency(thing: Thing) -> str | None:
    code = one_line(thing.text("priceCurrency")).upper()
    return code if re.fullmatch(r"[A-Z]{3}", code) else None


def variants_of(page: Page, product: Thing | None) -> list[ProductVariant] | None:
    """Return the variants; None for fewer than two, which are the product itself."""
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

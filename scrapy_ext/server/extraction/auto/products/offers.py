"""Price, currency and availability of a product as its markup tells them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scrapy_ext.server.extraction.auto.fields.money import Money, from_markup
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.text import one_line

IN_STOCK: Final = "InStock"
OUT_OF_STOCK: Final = "OutOfStock"

#: Values of schema.org's ItemAvailability, and what sites write instead, without signs and in lower case.
_AVAILABILITY: Final = {
    **dict.fromkeys(("instock", "limitedavailability", "instoreonly", "onlineonly", "preorder", "presale"), IN_STOCK),
    **dict.fromkeys(("backorder", "madetoorder", "available", "availablefororder", "1", "true", "yes"), IN_STOCK),
    **dict.fromkeys(("outofstock", "soldout", "discontinued", "oos", "unavailable", "notavailable"), OUT_OF_STOCK),
    **dict.fromkeys(("0", "false", "no", "pending"), OUT_OF_STOCK),
}
_NOUGHT = re.compile(r"0+(?:[.,]0+)?")
_REGULAR_TYPES: Final = ("listprice", "msrp", "srp", "strikethroughprice", "regularprice", "suggestedretailprice")


@dataclass(frozen=True, slots=True)
class Offer:
    """What an offer says; None for what it does not."""

    price: Money | None = None
    regular_price: Money | None = None
    currency: str | None = None
    availability: str | None = None
    #: It has prices, and all of them are nought.
    is_nought: bool = False


def availability_of(text: str | None) -> str | None:
    """``InStock`` or ``OutOfStock`` for a value of markup (``https://schema.org/SoldOut``, ``in stock``)."""
    if not text:
        return None
    word = re.sub(r"[\W_]", "", re.split(r"[/#]", text.strip().rstrip("/"))[-1]).lower()
    return _AVAILABILITY.get(word)


def offer_of(product: Thing) -> Offer:
    """One offer for all those of a product: the first that has a price, and in stock if any of them is."""
    things = list(_offers(product))
    read = [_read(thing) for thing in things]
    priced = next((offer for offer in read if offer.price), Offer())
    states = {offer.availability for offer in read} - {None}
    availability = IN_STOCK if IN_STOCK in states else OUT_OF_STOCK if states else None
    currency = priced.currency or next((offer.currency for offer in read if offer.currency), None)
    is_nought = any(offer.is_nought for offer in read) and not priced.price
    return Offer(priced.price, priced.regular_price, currency, availability, is_nought)


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
    is_nought = price is None and bool(_NOUGHT.fullmatch((stated or "").strip()))
    return Offer(price, regular, currency, availability_of(thing.text("availability")), is_nought)


def _currency(thing: Thing) -> str | None:
    code = one_line(thing.text("priceCurrency")).upper()
    return code if re.fullmatch(r"[A-Z]{3}", code) else None

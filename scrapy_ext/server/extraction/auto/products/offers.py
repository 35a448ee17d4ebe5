"""Offers of the product in structured data (price, currency, availability), and its variants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.price_notation import code_of, place_on
from scrapy_ext.server.extraction.auto.fields.prices import Money, from_markup
from scrapy_ext.server.extraction.auto.items import ProductVariant
from scrapy_ext.server.extraction.auto.page import Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.auto.products.identifiers import gtins_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

PRODUCT_TYPES: Final = (
    "Product", "ProductGroup", "IndividualProduct", "ProductModel", "SomeProducts", "ProductCollection", "Vehicle",
    "Car", "Motorcycle", "Book",
)  # fmt: skip
#: Most products with offers on the page of one product; more are a list.
SEVERAL: Final = 3
MAX_VARIANTS: Final = 200
#: Headings of the first level, and characters of each, that are compared with the names of products.
MAX_HEADINGS: Final = 5
MAX_HEADING_LENGTH: Final = 300
#: The parameters of a URL that are compared.
MAX_QUERY: Final = 20
#: Longest words about availability in structured data, longest sign of a currency, and how far a denial stands before
#: what it denies, in characters.
MAX_WORDS: Final = 100
MAX_SIGN: Final = 6
MAX_DENIAL: Final = 20
#: Properties in which variants differ.
_OF_VARIANTS: Final = ("sku", "mpn", "gtin13", "gtin12", "gtin14", "gtin8", "gtin", "productID", "color", "size", "url")


def main_product(page: Page) -> Thing | None:
    """Return the product that the page is about: the one with its own URL, else the one named as its heading, else the
    first, those with offers first.

    Products of one name, and those that a group names, are variants of a group, which gets their offers.
    """
    things = page.markup.things(*PRODUCT_TYPES)
    offered = [thing for thing in things if thing.values("offers", "offer", "hasVariant", "price")]
    at_page = [thing for thing in offered if _is_own(page, thing)]
    # Variants at the same address, with fragments of their own, are equal parts of their group.
    whole = next((thing for thing in offered if _holds_several(thing, at_page)), None)
    own = whole or next(iter(at_page), None)
    chosen = own or _named_as_heading(page, offered) or _first(offered or things)
    if chosen is None:
        return None
    if chosen in offered and offer_of(chosen).is_zero:
        # A block about a set, without a price, stands beside one with the offers of its parts.
        name = one_line(chosen.text("name")).casefold()
        namesakes = (thing for thing in offered if name and one_line(thing.text("name")).casefold() == name)
        chosen = next((thing for thing in namesakes if offer_of(thing).price), chosen)
    group = next(
        (thing for thing in chosen.things("isVariantOf") if own is None and "ProductGroup" in thing.types), None
    )
    if group is not None:
        variants = [thing for thing in offered if group in thing.things("isVariantOf")]
        return _group(page, group, variants[:MAX_VARIANTS])
    variants = chosen.things("hasVariant")[:MAX_VARIANTS]
    if not variants and own is None:
        name = one_line(chosen.text("name")).casefold()
        alike = [thing for thing in offered if name and one_line(thing.text("name")).casefold() == name]
        variants = alike if len({thing.text("sku") for thing in alike} - {None}) > 1 else []
    return _group(page, chosen, variants[:MAX_VARIANTS]) if variants else chosen


def _holds_several(thing: Thing, others: list[Thing]) -> bool:
    """Return whether several products are variants of one."""
    variants = thing.things("hasVariant") if len(others) > 1 else []
    return bool(variants) and all(other is thing or other in variants for other in others)


def _first(things: Sequence[Thing]) -> Thing | None:
    """Return the first product. Of several in RDFa, it is one beside the product of the page, which has none."""
    return next((thing for thing in things if thing.syntax != "rdfa" or len(things) == 1), None)


def offers_in_markup(page: Page, product: Thing | None) -> dict[str, bool]:
    """Return two signs of the kind of a page: whether its main product has offers in structured data, among few
    products with offers, as on the page of one product, or among many, as in a list."""
    offers = product is not None and bool(product.values("offers", "hasVariant"))
    offered = sum(bool(thing.values("offers")) for thing in page.markup.things(*PRODUCT_TYPES)) if offers else 0
    return {"offers": offers and offered <= SEVERAL, "many_offers": offers and offered > SEVERAL}


def _named_as_heading(page: Page, offered: list[Thing]) -> Thing | None:
    """Return the only one of several products whose name is the heading of the page.

    Variants stay those of their group. Of two syntaxes, the first states more, by a longer name of the same product.
    """
    variants = [variant for thing in offered for variant in thing.things("hasVariant")]
    things = [thing for thing in offered if thing.syntax == offered[0].syntax and thing not in variants]
    headings = {node_text(node, MAX_HEADING_LENGTH).casefold() for node in islice(page.tree.iter("h1"), MAX_HEADINGS)}
    named = [thing for thing in things if one_line(thing.text("name")).casefold() in headings - {""}]
    return named[0] if len(named) == 1 else None


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
        own = at_page if len(at_page) == 1 else named_by(page.url, variants)
        properties["offers"] = [offer for each in own or variants for offer in each.values("offers", "offer")]
    return Thing(chosen.types, properties, chosen.id, chosen.by_id)


#: Properties of an offer or variant: the query of a URL names it by one of them.
_NAMING: Final = ("sku", "productID", "mpn", "gtin13", "gtin12", "gtin14", "gtin8", "gtin", "color", "size")


def named_by(url: str, things: list[Thing]) -> list[Thing]:
    """Return those of several offers or variants that the query of a page's URL names; empty where it names none."""
    query = _query(url)
    marks = query | {pair.partition("=")[2] for pair in query}
    names = [_names_of(thing) for thing in things]
    # What all of them share names none.
    shared = frozenset.intersection(*names) if names else frozenset()
    return [thing for thing, own in zip(things, names, strict=True) if marks & (own - shared)]


def _names_of(thing: Thing) -> frozenset[str]:
    """Return the values that name an offer or variant in a URL: its numbers, and the parameters of its own URL."""
    parts = [thing, *thing.things("itemOffered"), *thing.things("offers", "offer")]
    names = {one_line(text).casefold() for part in parts for name in _NAMING for text in part.texts(name)}
    pairs = {pair for part in parts for url in part.texts("url") for pair in _query(url)}
    return frozenset((names | pairs) - {""})


def _query(url: str) -> frozenset[str]:
    """Return the parameters of a URL, as ``name=value`` in lower case."""
    return frozenset(
        f"{name}={value}".casefold() for name, value in parse_qsl(parts_of(url).query)[:MAX_QUERY] if value
    )


IN_STOCK: Final = "InStock"
OUT_OF_STOCK: Final = "OutOfStock"

_VOCABULARY: Final = load_vocabulary("products")
#: Values of schema.org's ItemAvailability and what sites write instead, in lower case without punctuation.
_AVAILABILITY: Final = {
    word: IN_STOCK if state == "in" else OUT_OF_STOCK
    for state, words in _VOCABULARY.groups("availability").items()
    for word in words
}
_OUT_WORDS, _IN_WORDS = map(_VOCABULARY.caseless, ("out_of_stock", "in_stock"))
_NEGATION = _VOCABULARY.pattern("negation", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z]{3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_USED = re.compile(r"(?:Used|Refurbished|Damaged)Condition")
_ZERO = re.compile(r"0+(?:[.,]0+)?")
_REGULAR_TYPES: Final = _VOCABULARY.words("regular_price_types")


@dataclass(frozen=True, slots=True)
class Offer:
    """Price and availability of an offer, None where they are not stated."""

    price: Money | None = None
    regular_price: Money | None = None
    currency: str | None = None
    availability: str | None = None
    #: Something is stated about the availability, in words that are not known.
    is_unclear: bool = False
    #: There are prices, and all of them are zero.
    is_zero: bool = False
    #: The price is stated to be without tax.
    is_net: bool = False


def availability_of(text: str | None) -> str | None:
    """Return ``InStock`` or ``OutOfStock`` for a value of structured data: ``https://schema.org/SoldOut``, or words."""
    if not text:
        return None
    word = re.sub(r"[\W_]", "", re.split(r"[/#:]", text.strip().rstrip("/"))[-1]).lower()
    return _AVAILABILITY.get(word) or availability_in(text[:MAX_WORDS])


def availability_in(text: str) -> str | None:
    """Return ``InStock`` or ``OutOfStock`` as a text for readers says; None where it says neither, or denies it."""
    if _OUT_WORDS.search(text):
        return OUT_OF_STOCK
    available = _IN_WORDS.search(text)
    if available is None or _NEGATION.search(text, max(0, available.start() - MAX_DENIAL), available.start()):
        return None
    return IN_STOCK


def denies_stock(text: str) -> bool:
    """Return whether a text for readers denies that something is in stock, or says when it will be."""
    return _IN_WORDS.search(text) is not None and availability_in(text) is None


def offer_of(product: Thing, url: str = "") -> Offer:
    """Return one offer for all those of a product: the first that has a price, of those in stock if any of them is.

    Offers that have ended, of used things and for members count where there are no others.

    Where the URL of the page names one of several by its address or its number, that one counts.
    """
    things = list(_offers(product))
    read = [_read(thing) for thing in _preferred(named_by(url, things) or things)]
    with_price = [offer for offer in read if offer.price]
    in_stock = [offer for offer in with_price if offer.availability == IN_STOCK]
    priced = next(iter(in_stock or with_price), Offer())
    states = {offer.availability for offer in read} - {None}
    availability = IN_STOCK if IN_STOCK in states else OUT_OF_STOCK if states else None
    currency = priced.currency or next((offer.currency for offer in read if offer.currency), None)
    is_zero = any(offer.is_zero for offer in read) and not priced.price
    is_unclear = availability is None and any(offer.is_unclear for offer in read)
    return Offer(priced.price, priced.regular_price, currency, availability, is_unclear, is_zero, priced.is_net)


def _preferred(things: list[Thing]) -> list[Thing]:
    """Return the offers, or specifications of prices, that hold for everybody, today, and for new things; else all."""
    for holds in (_is_for_all, _is_valid, _is_new):
        things = [thing for thing in things if holds(thing)] or things
    return things


def _is_for_all(thing: Thing) -> bool:
    return not thing.values("validForMemberTier")


def _is_valid(thing: Thing) -> bool:
    until = thing.text("priceValidUntil") or ""
    return _DATE.match(until) is None or until[:10] >= datetime.now(timezone.utc).date().isoformat()


def _is_new(thing: Thing) -> bool:
    return _USED.search(thing.text("itemCondition") or "") is None


def _offers(product: Thing) -> Iterable[Thing]:
    direct = product.things("offers", "offer")
    for offer in direct:
        yield offer
        yield from offer.things("offers")
    if not direct and product.values("price", "lowPrice"):
        yield product


def _read(thing: Thing) -> Offer:
    stated = thing.text("price", "lowPrice", "minPrice")
    price = from_markup(stated)
    regular: Money | None = None
    currency = _currency(thing)
    specifications = thing.things("priceSpecification")
    for specification in _whole_prices(specifications):
        amount = from_markup(specification.text("price", "minPrice"))
        kind = re.sub(r"[\W_]", "", (specification.text("priceType") or "").rpartition("/")[2]).lower()
        if kind.endswith(_REGULAR_TYPES):
            regular = regular or amount
        else:
            price = price or amount
            currency = currency or _currency(specification)
    is_zero = price is None and bool(_ZERO.fullmatch((stated or "").strip()))
    state = thing.text("availability")
    availability = availability_of(state)
    is_unclear = bool(state) and availability is None
    is_net = price is not None and _is_net(price, (thing, *specifications))
    return Offer(price, regular, currency, availability, is_unclear, is_zero, is_net)


def _is_net(price: Money, things: Iterable[Thing]) -> bool:
    """Return whether a price is stated to be without tax: by the offer, or by the specification that has it."""
    net = (each for each in things if each.text("valueAddedTaxIncluded") == "false")
    amounts = (from_markup(each.text("price", "lowPrice", "minPrice")) for each in net)
    return any(amount is None or amount.value == price.value for amount in amounts)


def _whole_prices(specifications: list[Thing]) -> list[Thing]:
    """Return the specifications of whole prices: those of a measure come last, instalments and fees are left out."""
    whole = [each for each in _preferred(specifications) if not each.values("priceComponentType")]
    return sorted(whole, key=lambda each: bool(each.values("referenceQuantity")))


def _currency(thing: Thing) -> str | None:
    code = one_line(thing.text("priceCurrency"))
    return code.upper() if _CODE.fullmatch(code) else code if 0 < len(code) <= MAX_SIGN else None


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
        currency=code_of(offer.currency, place_on(page)),
        availability=offer.availability,
        images=pictures or None,
        mainImage=pictures[0] if pictures else None,
        url=page.link(thing.text("url") or next((text for each in offers for text in each.texts("url")), None)),
    )

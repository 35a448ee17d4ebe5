"""Which product of its markup a page is about: one, or the group of which it lists the variants."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line

TYPES: Final = (
    "Product", "ProductGroup", "IndividualProduct", "ProductModel", "SomeProducts", "ProductCollection", "Vehicle",
    "Car", "Motorcycle", "Book",
)  # fmt: skip
MAX_VARIANTS: Final = 200
#: What variants of one thing differ in.
_OF_VARIANTS: Final = ("sku", "mpn", "gtin13", "gtin12", "gtin14", "gtin8", "gtin", "productID", "color", "size", "url")


def main_product(page: Page) -> Thing | None:
    """The product that the page is about: the one of its own address, else the first, those with offers first.

    Products of one name are variants of a group, and so are those that a group names; it has their offers.
    """
    things = page.markup.things(*TYPES)
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
    """The product of several variants: with the offers of all, those of the variant at the page's own address first."""
    properties = dict(chosen.properties)
    properties["hasVariant"] = list(variants)
    if chosen in variants:
        for name in _OF_VARIANTS:
            if len({tuple(thing.texts(name)) for thing in variants}) > 1:
                properties.pop(name, None)
    if chosen in variants or not chosen.things("offers", "offer"):
        at_page = [each for each in variants if any(_is_own(page, part) for part in (each, *each.things("offers")))]
        # An address that all of them share is that of the group.
        first = at_page if len(at_page) == 1 else []
        properties["offers"] = [offer for each in (*first, *variants) for offer in each.values("offers", "offer")]
    return Thing(chosen.types, properties, chosen.id, chosen.by_id)

"""Blocks with what a product page is for: heading, price, numbers and description, and on a small page properties.

They are short, and stand among buttons and options, so that a model of blocks leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from operator import and_, or_
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.content.blocks import TextBlock
from scrapy_ext.server.extraction.auto.fields.price_notation import place_on
from scrapy_ext.server.extraction.auto.fields.prices import amounts_in
from scrapy_ext.server.extraction.auto.page import Focus, Page, one_line
from scrapy_ext.server.extraction.auto.page.labelled import Pair
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.auto.page.urls import slug_of
from scrapy_ext.server.extraction.auto.products.availability import stated_availability
from scrapy_ext.server.extraction.auto.products.description import description_of
from scrapy_ext.server.extraction.auto.products.identifiers import identifiers_of
from scrapy_ext.server.extraction.auto.products.offers import IN_STOCK, main_product, offer_of
from scrapy_ext.server.extraction.auto.products.properties import properties_on
from scrapy_ext.server.extraction.auto.products.shown_prices import PriceTags

#: A page is a product with this chance, and none with this chance of a list: more likely than not.
LIKELY: Final = 0.5
#: A page of more than MANY blocks with a lower chance of a product is none. Of small pages the model knows little.
UNLIKELY: Final = 0.1
MANY: Final = 60
_LISTS: Final = ("collection", "listing")
#: Words of a block with a price or a number.
SHORT: Final = 15
#: The fewest properties of which a small page has a list, and elements around a value in which its label is.
FEWEST_PROPERTIES: Final = 2
MAX_ROW: Final = 3


def product_parts(
    page: Page, blocks: Sequence[TextBlock], kinds: Mapping[str, float], taken: Sequence[bool]
) -> list[bool]:
    """Return for each block whether it is such a part; none on a page that is not of one product.

    The description counts where nothing of it is ``taken`` already: pages have parts of it in several places.
    """
    none = [False] * len(blocks)
    chance = kinds.get("product", 0.0)
    if sum(kinds.get(kind, 0.0) for kind in _LISTS) >= LIKELY or (chance < UNLIKELY and len(blocks) > MANY):
        return none
    product = main_product(page)
    name = product.text("name") if product else None
    focus = Focus(page, name, page.meta("og:title"), page.title, slug_of(page.url))
    is_product = chance >= LIKELY or (product is not None and bool(product.values("offers")))
    if focus.heading is None or not (is_product or stated_availability(page, focus) == IN_STOCK):
        return none
    price = _price_of(page, product, focus)
    if price is None and not is_product:
        return none
    return _Parts(page, product, focus, price).of(blocks, taken)


def _price_of(page: Page, product: Thing | None, focus: Focus) -> str | None:
    stated = offer_of(product).price if product else None
    money = stated or PriceTags(page, focus).price()
    return money.amount if money else None


class _Parts:
    def __init__(self, page: Page, product: Thing | None, focus: Focus, price: str | None) -> None:
        self._page, self._focus, self._nodes = page, focus, page.outline.nodes
        whole, _, fraction = (price or "").partition(".")
        self._value = Decimal(price) if price else None
        self._prices = {whole + fraction, *([whole] if not fraction.strip("0") else [])} - {""}
        numbers = identifiers_of(page, product, focus)
        self._codes = [code for code in (numbers.sku, numbers.mpn) if code]
        self._description = one_line(description_of(page, product, focus).text)

    def of(self, blocks: Sequence[TextBlock], taken: Sequence[bool]) -> list[bool]:
        found = [self._is_heading(block) for block in blocks]
        described = [self._is_described(block) for block in blocks]
        if not any(map(and_, described, taken)):
            found = list(map(or_, found, described))
        below = [at for at, block in enumerate(blocks) if block.words <= SHORT and self._is_near(block)]
        places = [next((at for at in below if self._has_price(blocks[at])), None)]
        places += [next((at for at in below if code in blocks[at].text), None) for code in self._codes]
        for place in places:
            if place is not None:
                found[place] = True
        return list(map(or_, found, self._of_properties(blocks))) if len(blocks) <= MANY else found

    def _of_properties(self, blocks: Sequence[TextBlock]) -> list[bool]:
        """Return for each block whether it is of a property, or of the heading right above the first one."""
        pairs = properties_on(self._page, self._focus)
        rows = {row for pair in pairs for row in _row_of(pair)} if len(pairs) >= FEWEST_PROPERTIES else set()
        found = [self._is_near(block) and any(box.node in rows for box in block.box.chain()) for block in blocks]
        first = found.index(True) if True in found else 0
        if first and any(box.tag in HEADINGS for box in blocks[first - 1].box.chain()[:2]):
            found[first - 1] = self._is_near(blocks[first - 1])
        return found

    def _is_heading(self, block: TextBlock) -> bool:
        return any(box.node is self._focus.heading for box in block.box.chain()[:4])

    def _is_described(self, block: TextBlock) -> bool:
        return block.words > 2 and one_line(block.text) in self._description and self._is_near(block)

    def _is_near(self, block: TextBlock) -> bool:
        # The box of a text beside the heading is around both.
        node = self._nodes[block.pieces[0] // 2]
        return self._focus.distance(node) >= 0 and not self._focus.elsewhere(node)

    def _has_price(self, block: TextBlock) -> bool:
        digits = "".join(str(int(sign)) for sign in block.text if sign.isdecimal())
        if any(digits.startswith(price) for price in self._prices):
            return True
        # A former price may stand before it.
        return any(amount.value == self._value for amount in amounts_in(block.text, place_on(self._page)))


def _row_of(pair: Pair) -> Iterator[HtmlElement]:
    """Yield the element of a value, and those of its label: the row of a table, the terms before a definition."""
    yield pair.node
    for around in islice(pair.node.iterancestors(), MAX_ROW):
        if around.tag in {"tr", "li"}:
            yield around
            return
    before = pair.node.getprevious()
    if before is not None and one_line(before.text_content()).startswith(pair.label):
        yield before

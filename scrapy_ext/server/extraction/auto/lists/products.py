"""The products that a page lists."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.lists.listing import Listed, Shape, listed, things_of
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.products.main_product import TYPES
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: A group of entries that scores less is no list of products.
ENOUGH: Final = 4.0

_VOCABULARY: Final = load_vocabulary("products")
_NAMES = _VOCABULARY.pattern("list_names")
_ADDRESS = _VOCABULARY.pattern("list_address", re.IGNORECASE)


def products_on(page: Page) -> Listed:
    """The list of products of a page; empty when it has none."""
    return listed(page, _score, things_of(page, *TYPES), ENOUGH)


def _score(shape: Shape) -> float:
    image, named = shape.part(lambda card: card.block.image), shape.matches(_NAMES)
    known = (
        shape.prices >= 0.5
        or shape.marked >= 0.5
        or (named >= 0.8 and image >= 0.5 and shape.leads_to(_ADDRESS) >= 0.5)
    )
    if not known or shape.of_site < 0.5 or shape.counted >= 0.5:
        return 0.0
    score = 4.0 * shape.prices + image + named + shape.orders + 3.0 * shape.marked + 0.5 * shape.leads_to(_ADDRESS)
    return score + shape.size - 2.0 * shape.part(lambda card: card.block.date)

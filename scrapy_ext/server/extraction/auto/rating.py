"""How a product is rated, as its markup tells."""

from __future__ import annotations

import math
import re
from typing import Final

from zyte_common_items import AggregateRating

from scrapy_ext.server.extraction.auto.markup import Thing

_NUMBER = re.compile(r"\d{1,9}(?:[.,]\d{1,6})?")
_COUNT = re.compile(r"\d{1,3}(?:[.,\s]\d{3})+|\d{1,9}")
MAX_RATING: Final = 1000.0


def rating_of(product: Thing | None) -> AggregateRating | None:
    """The rating; None where neither value nor number of reviews is known."""
    for thing in product.things("aggregateRating") if product else ():
        value = _number(thing.text("ratingValue"))
        count = _count(thing.text("reviewCount")) or _count(thing.text("ratingCount"))
        # Shops write 0 for what nobody has rated yet.
        if value or count:
            best = _number(thing.text("bestRating")) if value else None
            return AggregateRating(ratingValue=value or None, bestRating=best, reviewCount=count)
    return None


def _number(text: str | None) -> float | None:
    match = _NUMBER.search(text or "")
    number = float(match.group().replace(",", ".")) if match else math.nan
    return number if 0 <= number <= MAX_RATING else None


def _count(text: str | None) -> int | None:
    match = _COUNT.search(text or "")
    return int(re.sub(r"\D", "", match.group())) if match else None

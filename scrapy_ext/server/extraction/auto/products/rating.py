"""How a product is rated, as its markup tells, or what is written by its heading."""

from __future__ import annotations

import math
import re
from typing import Final

from zyte_common_items import AggregateRating

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import node_text
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_NUMBER = re.compile(r"\d{1,9}(?:[.,]\d{1,6})?")
_COUNT = re.compile(r"\d{1,3}(?:[.,\s]\d{3})+|\d{1,9}")
_VOCABULARY: Final = load_vocabulary("products")
#: ``4.5 out of 5``, in several languages.
_OUT_OF = _VOCABULARY.pattern("out_of")
_REVIEWS = _VOCABULARY.pattern("reviews", re.IGNORECASE)
_NAMES: Final = ("rating", "stars", "review")
MAX_RATING: Final = 1000.0
MAX_NODES: Final = 300
#: Longer texts are reviews themselves.
MAX_TEXT_LENGTH: Final = 80
#: How far from the heading, in elements, the rating of the product stands.
BEFORE_HEADING: Final = 10
AFTER_HEADING: Final = 100


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


def rating_on(page: Page, focus: Focus) -> AggregateRating | None:
    """The rating that is written out by the heading; None for stars without a number."""
    if focus.heading is None:
        return None
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if not -BEFORE_HEADING <= focus.distance(node) <= AFTER_HEADING:
            continue
        text = node_text(node, MAX_TEXT_LENGTH + 1) or node.get("aria-label") or node.get("title") or ""
        match = _OUT_OF.search(text) if len(text) <= MAX_TEXT_LENGTH else None
        value = _number(match.group(1)) if match else None
        if match and value and value <= int(match.group(2)):
            reviews = _REVIEWS.search(text, match.end())
            count = _count(reviews.group(1)) if reviews else None
            return AggregateRating(ratingValue=value, bestRating=float(match.group(2)), reviewCount=count)
    return None


def _number(text: str | None) -> float | None:
    match = _NUMBER.search(text or "")
    number = float(match.group().replace(",", ".")) if match else math.nan
    return number if 0 <= number <= MAX_RATING else None


def _count(text: str | None) -> int | None:
    match = _COUNT.search(text or "")
    return int(re.sub(r"\D", "", match.group())) if match else None

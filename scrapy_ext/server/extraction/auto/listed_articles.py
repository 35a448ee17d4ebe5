"""The articles that a page lists."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.article import TYPES
from scrapy_ext.server.extraction.auto.listing import Listed, Shape, listed, things_of
from scrapy_ext.server.extraction.auto.page import Page

#: A group of entries that scores less is no list of articles.
ENOUGH: Final = 4.5
#: Headlines are longer, in Latin letters; names of sections and products are shorter.
SHORTEST_HEADLINE: Final = 25

_NAMES = re.compile(
    r"article|(?:^|[\s_-])(?:posts?|story|stories|news|entry|teaser|headline|blog|magazine)(?:$|[\s_-])"
    r"|storycard|hentry"
)
_ADDRESS = re.compile(
    r"/(?:19|20)\d\d[/-]|/(?:articles?|news|blog|posts?|story|stories|artikel|noticias?)/|\w+(?:-\w+){4}", re.I
)


def articles_on(page: Page) -> Listed:
    """The list of articles of a page; empty when it has none."""
    return listed(page, _score, things_of(page, *TYPES), ENOUGH)


def _score(shape: Shape) -> float:
    dated, told = shape.part(lambda card: card.block.date), shape.part(lambda card: card.block.summary)
    by, marked = shape.part(lambda card: card.block.authors), shape.marked
    long = shape.name_length >= SHORTEST_HEADLINE
    headed, led = shape.part(lambda card: card.linked_heading is not None), shape.leads_to(_ADDRESS)
    # Long names alone are those of articles where they stand as headings do, or in addresses, and there are many.
    titled = long and (
        (headed >= 0.6 and (led >= 0.6 or told >= 0.6)) or (led >= 0.6 and len(shape.group.entries) >= 6)
    )
    known = marked >= 0.5 or dated >= 0.5 or by >= 0.5 or titled
    if not known or shape.prices >= 0.4 or shape.counted >= 0.5:
        return 0.0
    score = 2.0 * dated + 1.5 * told + by + 3.0 * marked + 0.5 * shape.part(lambda card: card.block.image)
    score += 1.5 if long else 0.0
    score += headed + shape.matches(_NAMES) + led
    return score + shape.size - 3.0 * shape.prices - 3.0 * shape.orders

"""Products beside the list of a page: seen before, suggested or paid for, below a heading that says so."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_HEADINGS: Final = 400
#: Longer texts are no headings of a part.
MAX_HEADING_LENGTH: Final = 80

_BESIDE = load_vocabulary("lists").pattern("beside_list", re.IGNORECASE)
#: The heading of the first level is that of the page.
_OF_PARTS: Final = HEADINGS - {"h1"}


def without_asides(page: Page, cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """Return the entries of a list without those beside it; all where nothing else is left.

    A heading stands over the entries after it, up to the next one, in the smallest box with it that has any.
    """
    headings = _headings(page, cards)
    starts = [page.order[node] for node in headings]
    beside: set[str] = set()
    for heading, start, end in zip(headings, starts, [*starts[1:], len(page.elements)], strict=False):
        text = node_text(heading, MAX_HEADING_LENGTH + 1)
        if len(text) <= MAX_HEADING_LENGTH and _BESIDE.search(text):
            beside |= _below(heading, [card for card in cards if start < page.order[card.entry.node] < end])
    return tuple(card for card in cards if card.url not in beside) or cards


def _headings(page: Page, cards: tuple[Card, ...]) -> list[HtmlElement]:
    """Return the headings of parts of the page, without those of the entries."""
    nodes = {node for card in cards for node in (card.entry.node, *card.entry.following)}
    found = islice(page.tree.iter(*_OF_PARTS), MAX_HEADINGS)
    return [node for node in found if nodes.isdisjoint((node, *node.iterancestors()))]


def _below(heading: HtmlElement, cards: list[Card]) -> set[str]:
    """Return the URLs of those of the entries after a heading that it stands over."""
    around = {card.url: set(card.entry.node.iterancestors()) for card in cards}
    box = next((box for box in heading.iterancestors() if any(box in each for each in around.values())), None)
    return {url for url, each in around.items() if box in each}

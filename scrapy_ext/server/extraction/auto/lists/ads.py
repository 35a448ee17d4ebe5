"""Advertisements between the entries of a list: those with a label that says so, and those that lead to other sites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.lists.listing import form_of
from scrapy_ext.server.extraction.auto.page import one_line
from scrapy_ext.server.extraction.auto.page.urls import site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longer texts are no labels.
MAX_LABEL: Final = 40
#: Elements of an entry that may be its label.
MAX_ELEMENTS: Final = 60
#: The share of the entries that lead to one site, from which the others are advertisements. It is also that of the
#: entries without a label, from which one with a label is an advertisement: a list of a sponsor has it on most.
MOST: Final = 0.7
_LABEL = load_vocabulary("lists").pattern("ad_label", re.IGNORECASE)


def without_ads_of_articles(cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """Return the entries of a list of articles without those that are labelled as paid for."""
    ads = {card.url for card in cards if _is_labelled(card)}
    return _without(cards, ads)


def without_ads_of_products(cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """Return the entries of a list of products without those that lead to other sites than the usual one.

    One with a label is a product of the shop as well where its URL has the form of those of the others.
    """
    sites = Counter(site_of(card.url) for card in cards).most_common(1)
    forms = _usual(cards)
    ads = {
        card.url
        for card in cards
        if (sites[0][1] >= MOST * len(cards) and site_of(card.url) != sites[0][0])
        or (form_of(card.url) not in forms and _is_labelled(card))
    }
    return _without(cards, ads)


def _usual(cards: Sequence[Card]) -> set[tuple[object, ...]]:
    """Return the forms of the URLs of several entries."""
    counts = Counter(form_of(card.url) for card in cards)
    return {form for form, count in counts.items() if count > 1}


def _is_labelled(card: Card) -> bool:
    """Return whether an entry has a label; one that links to another page names a section."""
    leaves = (node for node in islice(card.content.elements, MAX_ELEMENTS) if not len(node))
    texts = (
        one_line(node.text) for node in leaves if node.tag != "a" or node.get("href") == card.entry.link.get("href")
    )
    return any(1 < len(text) <= MAX_LABEL and _LABEL.fullmatch(text) for text in texts)


def _without(cards: tuple[Card, ...], urls: set[str]) -> tuple[Card, ...]:
    kept = tuple(card for card in cards if card.url not in urls)
    return kept if len(kept) >= MOST * len(cards) else cards

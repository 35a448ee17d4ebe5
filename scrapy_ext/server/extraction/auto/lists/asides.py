"""Products beside the list of a page: seen before, suggested or paid for, below a heading that says so."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.layout import step_of
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.auto.page.urls import bare
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_HEADINGS: Final = 400
#: Longer texts are no headings of a part.
MAX_HEADING_LENGTH: Final = 80
#: Most lines between a heading and its first entry, such as "View all", and their characters: below one with more is
#: something else, such as the values of a filter.
MAX_BETWEEN: Final = 2
MAX_LENGTH_BETWEEN: Final = 60

_VOCABULARY: Final = load_vocabulary("lists")
_BESIDE, _NOTHING = _VOCABULARY.patterns("beside_list", "nothing_found", flags=re.IGNORECASE)
#: Names of elements that are headings without a tag for one.
_HEADING_NAME = _VOCABULARY.pattern("heading_name")
_HEADING_TAGS: Final = frozenset({"div", "p", "span", "strong", "b"})
#: The heading of the first level is that of the page.
_OF_PARTS: Final = HEADINGS - {"h1"}


def without_asides(page: Page, cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """Return the entries of a list without those beside it; all where nothing else is left, unless the page says above
    them that it found nothing.

    An entry to which a link elsewhere leads as well is kept: it is one of the list that was seen before.
    """
    asides = list(_asides(page, cards))
    if asides and all(_is_in(asides, page.order[card.entry.node]) for card in cards):
        return () if _finds_nothing(page, asides[0].start) else cards
    beside = {bare(card.url) for card in cards if _is_in(asides, page.order[card.entry.node])}
    if beside:
        links = (link for link in page.tree.iter("a") if not _is_in(asides, page.order[link]))
        beside -= {bare(url) for link in links if (url := page.link(link.get("href")))}
    return tuple(card for card in cards if bare(card.url) not in beside) or cards


def _finds_nothing(page: Page, end: int) -> bool:
    """Return whether a line before a position says that nothing was found."""
    before = page.lines[: bisect_left(page.line_positions, end)]
    return any(_NOTHING.fullmatch(text) and not page.hides(node) for node, text in before)


def _asides(page: Page, cards: tuple[Card, ...]) -> Iterator[range]:
    """Yield the positions of the parts of the page below headings that say that they are beside the list.

    A heading stands over what is after it, up to the next one, in the smallest box with it that has any entry.
    """
    positions = [page.order[card.entry.node] for card in cards]
    headings = _headings(page, cards)
    starts = [page.order[node] for node in headings]
    for heading, start, end in zip(headings, starts, [*starts[1:], len(page.elements)], strict=False):
        text = node_text(heading, MAX_HEADING_LENGTH + 1)
        first = bisect_left(positions, start)
        if first == len(positions) or positions[first] >= end:
            continue
        if len(text) <= MAX_HEADING_LENGTH and _BESIDE.search(text) and _is_right_below(page, start, positions[first]):
            around = set(cards[first].entry.node.iterancestors())
            box = next(box for box in heading.iterancestors() if box in around)
            yield range(start, min(end, page.outline.ends[page.order[box]]))


def _is_in(asides: list[range], position: int) -> bool:
    at = bisect_left(asides, position, key=lambda part: part.stop - 1)
    return at < len(asides) and position in asides[at]


def _is_right_below(page: Page, start: int, entry: int) -> bool:
    """Return whether little stands between the heading at ``start`` and the position of its first entry."""
    first, last = (bisect_left(page.line_positions, at) for at in (page.outline.ends[start], entry))
    between = page.lines[first:last]
    return len(between) <= MAX_BETWEEN and sum(len(text) for _, text in between) <= MAX_LENGTH_BETWEEN


def _headings(page: Page, cards: tuple[Card, ...]) -> list[HtmlElement]:
    """Return the headings of parts of the page in its order, without those of the entries.

    A line that is named as a heading counts where it, or a line of the same kind, says that a part is beside the list.
    """
    nodes = {node for card in cards for node in (card.entry.node, *card.entry.following)}
    found = list(islice(page.tree.iter(*_OF_PARTS), MAX_HEADINGS))
    named = [
        node
        for node, text in page.lines
        if node.tag in _HEADING_TAGS and len(text) <= MAX_HEADING_LENGTH and _HEADING_NAME.search(page.names(node))
    ][:MAX_HEADINGS]
    kinds = {step_of(node) for node in named if _BESIDE.search(node_text(node, MAX_HEADING_LENGTH))}
    found += [node for node in named if step_of(node) in kinds]
    found = [node for node in found if nodes.isdisjoint((node, *node.iterancestors()))]
    return sorted(found, key=page.order.__getitem__)

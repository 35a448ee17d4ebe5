"""Which of the blocks that repeat on a page are the list that it is about.

Every group of entries (:mod:`repeats`) is judged by what its entries show, by a judge of each kind of thing. The group
that scores best is the list, if it scores at all; groups of like entries that score nearly as well belong to it, as
lists in several sections do. What the page's markup says of its lists is evidence beside that, and stands in where no
group is found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.lists.cards import LEADS_ON, Block, Card
from scrapy_ext.server.extraction.auto.lists.repeats import Entry, Group, Surroundings, groups_of
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import node_text
from scrapy_ext.server.extraction.auto.page.urls import bare, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Entries of a group that are looked at to judge it.
SAMPLE: Final = 12
#: The part of the best score that another group needs to belong to the same list.
ALIKE: Final = 0.75
#: An entry that leads to more addresses on average is a section.
MOST_LINKS: Final = 14
MAX_ITEMS: Final = 500
#: Things that markup must list to be a list where the page shows none, and how sure that is.
FEWEST_STATED: Final = 3
SURE_OF_MARKUP: Final = 0.7
#: Entries that must be alike by their tags alone.
FEWEST_ALIKE: Final = 4
_ORDER = load_vocabulary("products").pattern("order", re.IGNORECASE)
_COUNTED = re.compile(r"[(\[]\d[\d.,]*[)\]]$")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What a page lists: the entries, how sure it is that they are what was looked for, and what markup has of each."""

    cards: tuple[Card, ...]
    sure: float
    things: dict[str, Thing]
    #: What the markup lists, by address, where the page itself shows no list.
    stated: dict[str, Thing]

    def thing(self, url: str) -> Thing | None:
        """What the markup has of the thing at an address."""
        return self.things.get(bare(url))

    @property
    def urls(self) -> list[str]:
        """The addresses of what is listed."""
        return [card.url for card in self.cards]


class _Blocks:
    """The blocks of a page, each read once, as several groups may be of one: by picture, by name, by price."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._known: dict[HtmlElement, Block] = {}

    def card(self, entry: Entry) -> Card:
        """The card of an entry."""
        block = self._known.get(entry.node)
        if block is None:
            block = self._known[entry.node] = Block(self._page, entry)
        return Card(entry, block)


class Shape:
    """What the entries of a group have in common, each as the part of them (0 to 1) that has it."""

    def __init__(self, page: Page, group: Group, marked: frozenset[str], blocks: _Blocks) -> None:
        self.group = group
        self._page = page
        self._marked = marked
        step = max(1, len(group.entries) // SAMPLE)
        self.cards = [blocks.card(entry) for entry in islice(group.entries, 0, None, step)][:SAMPLE]

    def part(self, has: Callable[[Card], object]) -> float:
        """The part of the entries that has something."""
        return sum(1 for card in self.cards if has(card)) / len(self.cards)

    @cached_property
    def size(self) -> float:
        """How much the number of entries speaks for a list."""
        return min(math.log2(len(self.group.entries)), 5.0) * 0.4

    @cached_property
    def named(self) -> float:
        """The part of the entries with a name of its own."""
        return len({card.name for card in self.cards if card.name}) / len(self.cards)

    @cached_property
    def name_length(self) -> float:
        """The middle length of the names, in Latin letters: others say more with one."""
        lengths = sorted(len(card.name) + 1.5 * len(_WIDE.findall(card.name)) for card in self.cards if card.name)
        return lengths[len(lengths) // 2] if lengths else 0.0

    @cached_property
    def link_quality(self) -> float:
        """How much the links of the entries look like those that the entries are about (about 0 to 3)."""
        return sum(map(self._quality, self.cards)) / len(self.cards)

    @cached_property
    def marked(self) -> float:
        """The part of the entries that the page's markup tells of as such things."""
        return self.part(lambda card: bare(card.url) in self._marked)

    @cached_property
    def prices(self) -> float:
        """The part of the entries with a price."""
        return self.part(lambda card: card.block.price)

    @cached_property
    def pictured(self) -> float:
        """The part of the entries with a picture of its own."""
        return len({card.block.image.url for card in self.cards if card.block.image}) / len(self.cards)

    @cached_property
    def is_block(self) -> bool:
        """Whether entries are more than links in a text: with pictures, days, prices or headings of their own."""
        return (
            max(self.pictured, self.prices, self.part(lambda card: card.block.date or card.linked_heading is not None))
            >= 0.5
        )

    @cached_property
    def is_section(self) -> bool:
        """Whether entries are so large that they are lists themselves."""
        return sum(card.block.links for card in self.cards) / len(self.cards) > MOST_LINKS

    @cached_property
    def of_site(self) -> float:
        """The part of the entries that leads to the page's own site."""
        own = site_of(self._page.url)
        return self.part(lambda card: site_of(card.url) == own)

    @cached_property
    def counted(self) -> float:
        """The part of the entries whose names end in a number of things, as those of categories do."""
        return self.part(lambda card: _COUNTED.search(card.name or ""))

    @cached_property
    def orders(self) -> float:
        """The part of the entries with a button that orders the thing."""
        return self.part(lambda card: _ORDER.search(card.block.text))

    def matches(self, pattern: re.Pattern[str]) -> float:
        """The part of the entries whose names in the page's code match."""
        return self.part(lambda card: pattern.search(card.block.names))

    def leads_to(self, pattern: re.Pattern[str]) -> float:
        """The part of the entries whose addresses match."""
        return self.part(lambda card: pattern.search(card.url))

    def _quality(self, card: Card) -> float:
        link = card.entry.link
        text = node_text(link, 200)
        score = 1.0 if card.linked_heading is not None else 0.0
        score += 1.0 if text and not LEADS_ON.fullmatch(text) else 0.0
        score += 0.5 if card.name and card.name in text else 0.0
        same = sum(1 for node in card.block.elements if node.tag == "a" and node.get("href") == link.get("href"))
        return score + (0.5 if same > 1 else 0.0)


#: Scores a group for a kind of thing; nought or less for one that does not hold such things.
Judge = Callable[[Shape], float]


def listed(page: Page, judge: Judge, things: dict[str, Thing], enough: float) -> Listed:
    """The list of the things that a judge looks for; empty when no group scores ``enough``."""
    surroundings, blocks = Surroundings(page), _Blocks(page)
    scored: list[tuple[float, Shape]] = []
    known: set[object] = set()
    for by_class in (True, False):
        groups = [
            group
            for group in groups_of(page, surroundings, by_class=by_class)
            if group.key not in known and (by_class or len(group.entries) >= FEWEST_ALIKE)
        ]
        known.update(group.key for group in groups)
        shapes = [Shape(page, group, frozenset(things), blocks) for group in groups]
        # Links of one kind by their tags alone are any links.
        shapes = [one for one in shapes if _fit(one) and (by_class or one.is_block)]
        scored = [(score, one) for one in shapes if (score := judge(one) + one.link_quality) > 0]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        if scored and scored[0][0] >= enough:
            break
    else:
        return _of_markup(page, things)
    scored = _finest_first(scored, max(enough, ALIKE * scored[0][0]))
    best = scored[0][0]
    chosen: list[Group] = []
    for score, shape in scored:
        if score >= max(enough, ALIKE * best) and not any(_overlap(shape.group, other) for other in chosen):
            chosen.append(shape.group)
    sure = round(min(0.99, 0.5 + 0.5 * best / (2.0 * enough)), 2)
    return Listed(tuple(_cards(page, chosen, blocks)), sure, things, {})


def _finest_first(scored: list[tuple[float, Shape]], enough: float) -> list[tuple[float, Shape]]:
    """The groups with one before the best that it is made of: several of its entries in each of the best's."""
    best = scored[0][1].group
    nodes = {entry.node for entry in best.entries}
    for score, shape in scored[1:]:
        entries = shape.group.entries
        if score < enough or len(entries) < 2 * len(best.entries):
            continue
        if all(entry.node not in nodes and not nodes.isdisjoint(entry.node.iterancestors()) for entry in entries):
            return [(score, shape), *((other, one) for other, one in scored if one is not shape)]
    return scored


def things_of(page: Page, *types: str) -> dict[str, Thing]:
    """The things of these types that the markup tells of with addresses of their own, by those."""
    found: dict[str, Thing] = {}
    for thing in page.markup.all(*types):
        url = address_of_thing(page, thing)
        if url and not page.is_at(url):
            found.setdefault(bare(url), thing)
    return found


def address_of_thing(page: Page, thing: Thing) -> str | None:
    """The address that the markup has of a thing: its own, or that of its offer."""
    offered = (offer.text("url") for offer in thing.things("offers"))
    return page.link(thing.text("url") or thing.id or next(offered, None))


def _of_markup(page: Page, things: dict[str, Thing]) -> Listed:
    """What the markup alone lists; one thing, or two, are what the page is about, and something beside it."""
    urls = {url: thing for thing in islice(things.values(), MAX_ITEMS) if (url := address_of_thing(page, thing))}
    return Listed((), SURE_OF_MARKUP, things, urls) if len(urls) >= FEWEST_STATED else Listed((), 0.0, things, {})


def _cards(page: Page, groups: Iterable[Group], blocks: _Blocks) -> list[Card]:
    entries = sorted((entry for group in groups for entry in group.entries), key=lambda entry: page.order[entry.node])
    found: dict[str, Card] = {}
    for entry in entries:
        if bare(entry.url) not in found and (card := blocks.card(entry)).name:
            found[bare(entry.url)] = card
            if len(found) >= MAX_ITEMS:
                break
    return list(found.values())


def _fit(shape: Shape) -> bool:
    return shape.named >= 0.6 and not shape.is_section


def _overlap(first: Group, second: Group) -> bool:
    """Whether entries of two groups are, or hold, or lead to the same."""
    nodes = {node for entry in first.entries for node in (entry.node, *entry.following)}
    others = {node for entry in second.entries for node in (entry.node, *entry.following)}
    if any(not nodes.isdisjoint((entry.node, *entry.node.iterancestors())) for entry in second.entries):
        return True
    if any(not others.isdisjoint(entry.node.iterancestors()) for entry in first.entries):
        return True
    return len(set(first.urls) & set(second.urls)) > len(second.entries) // 2

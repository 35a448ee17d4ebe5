"""Choice of the list that a page is about among its repeated contents.

Every group of entries (:mod:`.repeats`) is scored by the contents of its entries, with a function for each kind of
thing. The group with the best score is the list, if the score is high enough; groups of similar entries that score
nearly as well belong to it, as in lists with sections. Lists in structured data add to the scores, and are used alone
where no group is found.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.lists.cards import MAX_LINES, Card, EntryContent
from scrapy_ext.server.extraction.auto.lists.repeats import Group, ListEntry, Surroundings, groups_of
from scrapy_ext.server.extraction.auto.page import Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import step_of
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.auto.page.urls import bare, parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Entries of a group that are read to score it.
SAMPLE: Final = 12
#: The share of the best score that another group needs to belong to the same list: sections of one list differ in what
#: some of their entries lack.
ALIKE: Final = 0.75
#: The same for a group whose URLs have the form of those of the best group, and the share of them that need it.
NEARLY_ALIKE: Final = 0.5
SAME_FORM: Final = 0.8
#: Entries with more links on average are sections: a card has links for its image, name, author, tags and buttons.
MOST_LINKS: Final = 14
#: The share of the entries of a group with several entries of another one, from which these are the list.
MOST_OF_SECTIONS: Final = 0.6
#: The share of the entries of a list with a name of their own, and of variants with a price and an image of their own.
MOST_NAMED: Final = 0.6
MOST_VARIANTS: Final = 0.9
FEWEST_VARIANTS: Final = 2
#: The share of the entries of a group that are posts in full, from which their links do not count.
MOST_OF_POSTS: Final = 0.8
#: The least number of links of a list with one text, and the share of them: the text is that of a button.
FEWEST_BUTTONS: Final = 3
MOST_SHARED: Final = 0.8
MAX_BUTTON_LENGTH: Final = 60
#: The share of different texts in the place that has the names of entries.
OF_NAMES: Final = 0.8
MAX_ITEMS: Final = 500
#: The least number of entities of a list in structured data alone, and its probability.
FEWEST_STATED: Final = 3
SURE_OF_MARKUP: Final = 0.7
#: The least number of entries of a group by tags alone.
FEWEST_ALIKE: Final = 4
_ORDER = load_vocabulary("products").pattern("order", re.IGNORECASE)
_COUNTED = re.compile(r"[(\[]\d[\d.,]*[)\]]$")
#: Names of elements that hold one post each, in full.
_POST_NAMES = load_vocabulary("lists").pattern("post_names")
_DIGITS = re.compile(r"\d{3}")
MAX_PARAMETERS: Final = 20
#: A form of URLs is usual in a group where at least one in so many has it.
FEW_FORMS: Final = 5
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True, eq=False)
class PageList:
    """The list of a page: its entries, its probability, and the structured data of the entries."""

    cards: tuple[Card, ...]
    sure: float
    things: dict[str, Thing]
    #: The entities of structured data by URL, where the page itself shows no list.
    stated: dict[str, Thing]

    def thing(self, url: str) -> Thing | None:
        """Return the entity of structured data with a URL."""
        return self.things.get(bare(url))

    @property
    def urls(self) -> list[str]:
        return [card.url for card in self.cards]

    @property
    def rule(self) -> str:
        """The source of the entries."""
        return "repeated parts with a link" if self.cards else "structured data"


class _EntryContents:
    """The contents of the entries of a page, each read once: an entry may be in several groups."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._known: dict[HtmlElement, EntryContent] = {}

    def cards(self, group: Group, entries: Iterable[ListEntry]) -> list[Card]:
        """Return the cards of some entries of a group."""
        shared, labels = _shared_text(group), _labels(group)
        return [self._card(entry, shared, labels) for entry in entries]

    def _card(self, entry: ListEntry, shared: str | None, labels: frozenset[str]) -> Card:
        block = self._known.get(entry.node)
        if block is None:
            block = self._known[entry.node] = EntryContent(self._page, entry)
        return Card(entry, block, shared, labels)


def _shared_text(group: Group) -> str | None:
    """Return the text that most links of a group have, as buttons do; None where it is in a heading, as names are."""
    entries = group.entries[:SAMPLE]
    link = entries[0].link
    if any(node.tag in HEADINGS for node in chain(link.iter("*"), link.iterancestors())):
        return None
    texts = [node_text(entry.link, MAX_BUTTON_LENGTH + 1) for entry in entries]
    text, count = Counter(texts).most_common(1)[0]
    return text if len(texts) >= FEWEST_BUTTONS and count >= MOST_SHARED * len(texts) else None


def _labels(group: Group) -> frozenset[str]:
    """Return the texts within the links of a group that are no names: those of several entries, and all in a place
    where many are, such as sections or towns."""
    if next(islice(group.entries[0].link.itertext(), 1, None), None) is None:
        return frozenset()
    by_place: dict[tuple[str, int], list[str]] = {}
    for entry in group.entries:
        for node in islice(entry.link.iter("*"), MAX_LINES):
            own = (node.text, *(child.tail for child in node))
            place = step_of(node), sum(1 for _ in node.itersiblings(node.tag, preceding=True))
            by_place.setdefault(place, []).extend(dict.fromkeys(text for each in own if (text := one_line(each))))
    counts = {place: Counter(texts) for place, texts in by_place.items()}
    labels = {text for count in counts.values() for text, times in count.items() if times > 1}
    return frozenset(labels.union(*(count for count in counts.values() if len(count) < OF_NAMES * count.total())))


class Shape:
    """Common properties of the entries of a group, most of them as the share (0 to 1) of entries with something."""

    def __init__(self, page: Page, group: Group, marked: frozenset[str], contents: _EntryContents) -> None:
        self.group = group
        self._page = page
        self._marked = marked
        step = max(1, len(group.entries) // SAMPLE)
        self.cards = contents.cards(group, group.entries[::step][:SAMPLE])

    def part(self, has: Callable[[Card], object]) -> float:
        """Return the share of the entries that have something."""
        return sum(1 for card in self.cards if has(card)) / len(self.cards)

    @cached_property
    def size(self) -> float:
        """The score for the number of entries."""
        return min(math.log2(len(self.group.entries)), 5.0) * 0.4

    @cached_property
    def named(self) -> float:
        """The share of the entries with a distinct name."""
        return len({card.name for card in self.cards if card.name}) / len(self.cards)

    @property
    def is_of_variants(self) -> bool:
        """True if entries share their names as variants of a few products do: each with a price and an own image.

        The names are the whole texts of the links; links with one text for all are buttons.
        """
        if len({card.name for card in self.cards}) < FEWEST_VARIANTS:
            return False
        linked = self.part(lambda card: card.name and card.name == node_text(card.entry.link, len(card.name) + 1))
        return min(linked, self.prices, self.pictured) >= MOST_VARIANTS

    @cached_property
    def name_length(self) -> float:
        """The median length of the names, in Latin letters: signs of other scripts count more."""
        lengths = sorted(len(card.name) + 1.5 * len(_WIDE.findall(card.name)) for card in self.cards if card.name)
        return lengths[len(lengths) // 2] if lengths else 0.0

    @cached_property
    def link_quality(self) -> float:
        """The average score of the links as the main links of their entries (about 0 to 3)."""
        return sum(map(self._quality, self.cards)) / len(self.cards)

    @cached_property
    def marked(self) -> float:
        """The share of the entries that the structured data has as such things."""
        return self.part(lambda card: bare(card.url) in self._marked)

    @cached_property
    def prices(self) -> float:
        """The share of the entries with a price."""
        return self.part(lambda card: card.content.price)

    @cached_property
    def pictured(self) -> float:
        """The share of the entries with a distinct image."""
        return len({card.content.image.url for card in self.cards if card.content.image}) / len(self.cards)

    @cached_property
    def is_block(self) -> bool:
        """True if entries are more than links in a text: with images, dates, prices or headings."""
        return (
            max(
                self.pictured, self.prices, self.part(lambda card: card.content.date or card.linked_heading is not None)
            )
            >= 0.5
        )

    @cached_property
    def is_section(self) -> bool:
        """True if entries are so large that they are lists themselves.

        A post in full has as many links as its text has, and one heading that leads to it.
        """
        if sum(card.content.links for card in self.cards) / len(self.cards) <= MOST_LINKS:
            return False
        return self.part(self._is_post) < MOST_OF_POSTS

    def _is_post(self, card: Card) -> bool:
        return card.linked_heading is not None and _POST_NAMES.search(self._page.names(card.entry.node)) is not None

    @cached_property
    def of_site(self) -> float:
        """The share of the entries that link to the page's own site, or to that of its base URL: a copy has another."""
        own = {site_of(self._page.url), site_of(self._page.base_url)}
        return self.part(lambda card: site_of(card.url) in own)

    @cached_property
    def counted(self) -> float:
        """The share of the entries whose names end in a count, as those of categories do."""
        return self.part(lambda card: _COUNTED.search(card.name or ""))

    @cached_property
    def orders(self) -> float:
        """The share of the entries with a button to order."""
        return self.part(lambda card: _ORDER.search(card.content.text))

    def matches(self, pattern: re.Pattern[str]) -> float:
        """Return the share of the entries whose names in the page's code match."""
        return self.part(lambda card: pattern.search(card.content.names))

    def leads_to(self, pattern: re.Pattern[str]) -> float:
        """Return the share of the entries whose URLs match."""
        return self.part(lambda card: pattern.search(card.url))

    def _quality(self, card: Card) -> float:
        link = card.entry.link
        text = node_text(link, 200)
        score = 1.0 if card.linked_heading is not None else 0.0
        score += 1.0 if text and not card.leads_on else 0.0
        score += 0.5 if card.name and card.name in text else 0.0
        same = sum(1 for node in card.content.elements if node.tag == "a" and node.get("href") == link.get("href"))
        return score + (0.5 if same > 1 else 0.0)


#: Scores a group for a kind of thing; zero or less for a group without such things.
Judge = Callable[[Shape], float]


def find_list(page: Page, judge: Judge, things: dict[str, Thing], enough: float) -> PageList:
    """Return the list of the things that ``judge`` scores; empty where no group scores ``enough``."""
    surroundings, contents = Surroundings(page), _EntryContents(page)
    scored: list[tuple[float, Shape]] = []
    known: set[object] = set()
    for by_class in (True, False):
        groups = [
            group
            for group in groups_of(page, surroundings, by_class=by_class)
            if group.key not in known and (by_class or len(group.entries) >= FEWEST_ALIKE)
        ]
        known.update(group.key for group in groups)
        shapes = [Shape(page, group, frozenset(things), contents) for group in groups]
        # Links that are similar in their tags alone may be any links.
        shapes = [one for one in shapes if not one.is_section and (by_class or one.is_block)]
        scored = _scored(judge, (one for one in shapes if one.named >= MOST_NAMED))
        if not scored or scored[0][0] < enough:
            scored = _scored(judge, (one for one in shapes if one.is_of_variants))
        if scored and scored[0][0] >= enough:
            break
    else:
        return _of_markup(page, things)
    scored = _finest_first(scored, max(enough, ALIKE * scored[0][0]))
    best = scored[0][0]
    chosen: list[Group] = []
    forms = Counter(form_of(entry.url) for entry in scored[0][1].group.entries)
    for score, shape in scored:
        alike = score >= ALIKE * best or (score >= NEARLY_ALIKE * best and _share_of(forms, shape.group) >= SAME_FORM)
        if score >= enough and alike and not any(_overlap(shape.group, other) for other in chosen):
            chosen.append(shape.group)
    sure = round(min(0.99, 0.5 + 0.5 * best / (2.0 * enough)), 2)
    return PageList(tuple(_cards(page, chosen, contents)), sure, things, {})


def _scored(judge: Judge, shapes: Iterable[Shape]) -> list[tuple[float, Shape]]:
    """Return the groups with a score above zero, the best first."""
    scored = [(score, one) for one in shapes if (score := judge(one) + one.link_quality) > 0]
    return sorted(scored, key=lambda pair: pair[0], reverse=True)


def _finest_first(scored: list[tuple[float, Shape]], enough: float) -> list[tuple[float, Shape]]:
    """Put a group first that the best group consists of: with several entries in all or most of the best group's."""
    best = scored[0][1].group
    nodes = {entry.node for entry in best.entries}
    for score, shape in scored[1:]:
        entries = shape.group.entries
        if score < enough or len(entries) < 2 * len(best.entries):
            continue
        around = [next((node for node in entry.node.iterancestors() if node in nodes), None) for entry in entries]
        several = sum(count > 1 for node, count in Counter(around).items() if node is not None)
        if nodes.isdisjoint(entry.node for entry in entries) and (
            None not in around or several >= MOST_OF_SECTIONS * len(nodes)
        ):
            return [(score, shape), *((other, one) for other, one in scored if one is not shape)]
    return scored


def things_of(page: Page, *types: str) -> dict[str, Thing]:
    """Return the entities of these types that have URLs of their own in structured data, by URL."""
    found: dict[str, Thing] = {}
    for thing in page.markup.all(*types):
        url = address_of_thing(page, thing)
        if url and not page.is_at(url):
            found.setdefault(bare(url), thing)
    return found


def address_of_thing(page: Page, thing: Thing) -> str | None:
    """Return the URL of an entity of structured data: its own, or that of its offer."""
    offered = (offer.text("url") for offer in thing.things("offers"))
    return page.link(thing.text("url") or thing.id or next(offered, None))


def _of_markup(page: Page, things: dict[str, Thing]) -> PageList:
    """Return the list in structured data; one or two entities are the subject of the page and something beside it."""
    urls = {url: thing for thing in islice(things.values(), MAX_ITEMS) if (url := address_of_thing(page, thing))}
    return PageList((), SURE_OF_MARKUP, things, urls) if len(urls) >= FEWEST_STATED else PageList((), 0.0, things, {})


def form_of(url: str) -> tuple[object, ...]:
    """Return what the URLs of things of one kind have in common on a site: equal for two products, or two articles.

    These are the host, the number of path segments, the first of several, digits in the last one, its extension, and
    the names of the parameters.
    """
    parts = parts_of(url)
    segments = [segment for segment in parts.path.split("/") if segment]
    last = segments[-1] if segments else ""
    first = segments[0] if len(segments) > 1 and not segments[0].isdigit() else ""
    names = sorted({pair.partition("=")[0] for pair in parts.query.split("&", MAX_PARAMETERS)})
    extension = last.rpartition(".")[2] if "." in last[-6:] else ""
    return parts.netloc, len(segments), first, bool(_DIGITS.search(last)), extension, *names


def _share_of(forms: Counter[tuple[object, ...]], group: Group) -> float:
    """Return the share of the entries of a group whose URLs have one of the usual forms."""
    usual = {form for form, count in forms.items() if count * FEW_FORMS >= forms.total()}
    return sum(form_of(entry.url) in usual for entry in group.entries) / len(group.entries)


def _cards(page: Page, groups: Iterable[Group], contents: _EntryContents) -> list[Card]:
    cards = (card for group in groups for card in contents.cards(group, group.entries))
    found: dict[str, Card] = {}
    for card in sorted(cards, key=lambda card: page.order[card.entry.node]):
        if bare(card.url) not in found and card.name:
            found[bare(card.url)] = card
            if len(found) >= MAX_ITEMS:
                break
    return list(found.values())


def _overlap(first: Group, second: Group) -> bool:
    """Return whether entries of two groups are the same, contain each other or have the same URLs."""
    nodes = {node for entry in first.entries for node in (entry.node, *entry.following)}
    others = {node for entry in second.entries for node in (entry.node, *entry.following)}
    if any(not nodes.isdisjoint((entry.node, *entry.node.iterancestors())) for entry in second.entries):
        return True
    if any(not others.isdisjoint(entry.node.iterancestors()) for entry in first.entries):
        return True
    common = {entry.url for entry in first.entries} & {entry.url for entry in second.entries}
    return len(common) > len(second.entries) // 2

"""Stories that stand alone above a list of articles, in a form of their own, and belong to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.lists.cards import Card, EntryContent
from scrapy_ext.server.extraction.auto.lists.listing import PageList, form_of
from scrapy_ext.server.extraction.auto.lists.repeats import ListEntry, Surroundings
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.page.urls import bare

#: Most stories above a list; more are a list of their own.
MAX_LEADS: Final = 3
#: Fewer entries do not show which form their URLs have.
FEWEST: Final = 3
#: The share of the entries with a date from which a story needs one.
MOST: Final = 0.5
_HEADINGS: Final = ("h1", "h2", "h3")


def with_leads(page: Page, listed: PageList) -> PageList:
    """Return a list of articles with the stories above it: linked headings whose URLs have the form of those below."""
    if len(listed.cards) < FEWEST:
        return listed
    usual = Counter(form_of(card.url) for card in listed.cards).most_common(1)[0][0]
    dated = sum(card.content.date is not None for card in listed.cards) >= MOST * len(listed.cards)
    leads = [
        card for card in _cards_above(page, listed.cards) if form_of(card.url) == usual and _is_whole(card, dated=dated)
    ]
    return replace(listed, cards=(*leads, *listed.cards)) if 0 < len(leads) <= MAX_LEADS else listed


def _cards_above(page: Page, cards: Sequence[Card]) -> Iterator[Card]:
    surroundings = Surroundings(page)
    begin = min(page.order[card.entry.node] for card in cards)
    around = {box for card in cards for box in card.entry.node.iterancestors()}
    # The heading of an article may link to its own page.
    known = {bare(page.url), *(bare(card.url) for card in cards)}
    for heading in page.tree.iter(*_HEADINGS):
        if page.order[heading] >= begin:
            return
        link = next(heading.iter("a"), None)
        link = next(heading.iterancestors("a"), None) if link is None else link
        url = page.link(link.get("href")) if link is not None else None
        if link is None or url is None or bare(url) in known or surroundings.hold(link):
            continue
        known.add(bare(url))
        entry = ListEntry(_box_of(heading, around), link, url)
        yield Card(entry, EntryContent(page, entry))


def _box_of(node: HtmlElement, around: set[HtmlElement]) -> HtmlElement:
    """Return the outermost element with a node and without entries of the list."""
    box = node
    for parent in node.iterancestors():
        if parent in around:
            break
        box = parent
    return box


def _is_whole(lead: Card, *, dated: bool) -> bool:
    """Return whether a story has a name, and a date where most entries have one, else a summary."""
    return bool(lead.name) and (lead.content.date if dated else lead.content.summary) is not None

"""Lists of articles: what a page of a section or a blog shows of each."""

from __future__ import annotations

from zyte_common_items import ArticleFromList, ArticleList, ArticleListMetadata, Author

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.authors import authors_in
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.dates import Date, read
from scrapy_ext.server.extraction.auto.fields.language import language_of
from scrapy_ext.server.extraction.auto.lists import items as list_items
from scrapy_ext.server.extraction.auto.lists.articles import articles_on
from scrapy_ext.server.extraction.auto.lists.cards import Card
from scrapy_ext.server.extraction.auto.lists.listing import Listed
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import first, one_line


def extract(page: Page) -> ArticleList:
    """The list of articles of a page. Only ``url`` and ``metadata`` are sure to be there."""
    listed = articles_on(page)
    found = [_of_card(page, listed, card) for card in listed.cards]
    found = found or [_of_thing(page, listed, url, thing) for url, thing in listed.stated.items()]
    return ArticleList(
        url=page.url,
        canonicalUrl=page.canonical_url,
        breadcrumbs=breadcrumbs_of(page),
        articles=found or None,
        metadata=list_items.metadata().cast(ArticleListMetadata),
    )


def _of_card(page: Page, listed: Listed, card: Card) -> ArticleFromList:
    thing = listed.thing(card.url)
    date = _date(page, thing) or card.block.date
    pictures = images.merged([card.block.image] if card.block.image else [], images.of_thing(page, thing))
    return ArticleFromList(
        url=card.url,
        headline=first((card.name, _headline(thing))),
        datePublished=date.iso if date else None,
        datePublishedRaw=date.raw if date else None,
        authors=_authors(page, thing) or card.block.authors,
        articleBody=first((_summary(card), thing.text("description") if thing else None)),
        mainImage=pictures[0] if pictures else None,
        images=pictures or None,
        inLanguage=language_of(page, thing),
        metadata=list_items.sure_of(listed),
    )


def _of_thing(page: Page, listed: Listed, url: str, thing: Thing) -> ArticleFromList:
    date, pictures = _date(page, thing), images.of_thing(page, thing)
    return ArticleFromList(
        url=url,
        headline=_headline(thing),
        datePublished=date.iso if date else None,
        datePublishedRaw=date.raw if date else None,
        authors=_authors(page, thing),
        articleBody=thing.text("articleBody", "description"),
        mainImage=pictures[0] if pictures else None,
        images=pictures or None,
        inLanguage=language_of(page, thing),
        metadata=list_items.sure_of(listed),
    )


def _summary(card: Card) -> str | None:
    summary = card.block.summary
    # A text that begins with the headline is that of the whole entry.
    return summary if summary and not summary.startswith(card.name or summary) else None


def _headline(thing: Thing | None) -> str | None:
    return one_line(thing.text("headline", "name")) or None if thing else None


def _date(page: Page, thing: Thing | None) -> Date | None:
    return read(thing.text("datePublished", "dateCreated"), page) if thing else None


def _authors(page: Page, thing: Thing | None) -> list[Author] | None:
    return authors_in(page, thing) or None

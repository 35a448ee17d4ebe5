"""Which article of its markup a page is about."""

from __future__ import annotations

from itertools import chain
from typing import Final

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line

TYPES: Final = (
    "Article", "NewsArticle", "BlogPosting", "TechArticle", "ScholarlyArticle", "Report", "ReportageNewsArticle",
    "OpinionNewsArticle", "AnalysisNewsArticle", "BackgroundNewsArticle", "ReviewNewsArticle",
    "AdvertiserContentArticle", "SatiricalArticle", "MedicalScholarlyArticle", "LiveBlogPosting",
    "SocialMediaPosting", "APIReference", "Recipe", "HowTo",
)  # fmt: skip
#: What tells of the page itself, and so of its article when nothing else does.
PAGE_TYPES: Final = ("WebPage", "ItemPage", "AboutPage", "MedicalWebPage")


def main_article(page: Page, focus: Focus) -> Thing | None:
    """The article that the page is about, where several stand in the markup; else what tells of the page itself."""
    things = page.markup.things(*TYPES)
    if len(things) > 1:
        own = [thing for thing in things if _is_of(page, thing, focus)]
        # Many articles of which none is this page's are a list of others.
        things = own or (things if len(things) <= 2 else [])
    return _first_thing(things) or _first_thing(page.markup.things(*PAGE_TYPES))


def _first_thing(things: list[Thing]) -> Thing | None:
    """The one with the most to say of the first few."""
    return max(things[:3], key=lambda thing: len(thing.properties), default=None)


def _is_of(page: Page, thing: Thing, focus: Focus) -> bool:
    references = chain(
        thing.texts("url"),
        thing.texts("mainEntityOfPage"),
        (value.id or "" for value in thing.things("mainEntityOfPage")),
    )
    if any(page.is_at(page.link(reference)) for reference in references):
        return True
    headline = one_line(thing.text("headline", "name")).casefold()
    titles = (focus.heading_text, page.title, page.meta("og:title"))
    return len(headline) > 10 and any(
        headline in (title or "").casefold() or (title or "#").casefold() in headline for title in titles
    )

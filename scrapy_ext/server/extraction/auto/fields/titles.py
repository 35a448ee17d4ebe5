"""The headline of a page, without the name of the site that titles carry."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line

MAX_LENGTH: Final = 500
_WORD = re.compile(r"\w{2,}")
_SITE_PART = re.compile(r"^(.{15,}?)\s+[|»·•–—-]\s+([^|»·•–—]{2,60})$")


def headline_of(page: Page, thing: Thing | None, focus: Focus) -> str | None:
    """The headline: the heading that readers see, else that of the markup, else the title."""
    if focus.heading_text and _is_of_page(page, focus.heading_text):
        return focus.heading_text
    stated = thing.text("headline") if thing else None
    title = stated or page.meta("og:title", "twitter:title") or page.title
    return without_site(page, one_line(title)[:MAX_LENGTH]) or None


def _is_of_page(page: Page, heading: str) -> bool:
    """Whether a heading has anything to do with the titles of its page, as far as there are any."""
    words = set(_WORD.findall(heading.casefold()))
    titles = [title for title in (page.title, page.meta("og:title", "twitter:title")) if title]
    return not titles or any(not words.isdisjoint(_WORD.findall(title.casefold())) for title in titles)


def without_site(page: Page, title: str) -> str:
    """A title without the name of its site at the end."""
    site = one_line(page.meta("og:site_name", "application-name")).casefold()
    match = _SITE_PART.match(title)
    if match and (not site or match.group(2).casefold() in site or site in match.group(2).casefold()):
        return match.group(1)
    return title

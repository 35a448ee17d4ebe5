"""The language that an item is in."""

from __future__ import annotations

import re

from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page

_STATED = re.compile(r"[a-z]{2}(?=$|[-_])")


def language_of(page: Page, thing: Thing | None) -> str | None:
    """The ISO 639-1 code of the language of a thing of the markup, else of its page."""
    stated = _STATED.match((thing.text("inLanguage") or "").lower()) if thing else None
    language = stated.group() if stated else page.language
    return language if language and len(language) == 2 else None

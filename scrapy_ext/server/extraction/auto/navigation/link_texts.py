"""What the links between the pages of a list say, in the languages of most of the web."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("pagination")
NEXT_WORDS: Final = _VOCABULARY.text("next_words")
PAGE_WORDS: Final = _VOCABULARY.text("page_words")

_ARROWS: Final = _VOCABULARY.text("arrows")
_LEFT: Final = _VOCABULARY.text("left")
_BEFORE: Final = _VOCABULARY.text("before")
#: A text that leads to the next page, whole.
NEXT_TEXT = _VOCABULARY.pattern("next_text", re.IGNORECASE)
ARROW = re.compile(rf"[\s{_ARROWS}=-]+")
#: A text that leads to more of the same: the next page, where its address says so.
MORE = _VOCABULARY.pattern("more", re.IGNORECASE)
#: A text that leads to the page before, or to the ends of the list: whatever else speaks for it, not the next page.
NOT_NEXT_TEXT = _VOCABULARY.pattern("not_next_text", re.IGNORECASE)
#: Older entries, which blogs that go back in time call the previous ones.
OLDER = _VOCABULARY.pattern("older", re.IGNORECASE)
#: What links between pages are called: by a number, a word, or an arrow.
PAGE_NAME = _VOCABULARY.pattern("page_name", re.IGNORECASE)
#: The number of a page as a link says it: ``2``, ``[2]``, ``Page 2``, ``第2页``.
NUMBER = _VOCABULARY.pattern("number", re.IGNORECASE)
#: ``Page 2 of 10``.
OF_PAGES = _VOCABULARY.pattern("of_pages", re.IGNORECASE)

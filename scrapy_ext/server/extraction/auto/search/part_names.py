"""What search engines call the parts of their pages: names in the code, and words that readers see."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5"})
BLOCKS: Final = ("div", "p", "li", "ul", "ol", "table", "tr", "td", "section", "article", "h2", "h3", "h4", "dl", "dd")
_VOCABULARY: Final = load_vocabulary("search")
TITLE_NAME = _VOCABULARY.pattern("title_name")
OUTSIDE_TAGS: Final = frozenset({"nav", "footer", "aside", "header", "form"})
OUTSIDE_NAME = _VOCABULARY.pattern("outside_name")
AD_NAME = _VOCABULARY.pattern("ad_name")
AD_LABEL = _VOCABULARY.pattern("ad_label", re.IGNORECASE)
AD_LINK = _VOCABULARY.pattern("ad_link", re.IGNORECASE)
SHOWN_URL_NAME = _VOCABULARY.pattern("shown_url_name")
LOOKS_LIKE_URL = re.compile(r"(?:https?://)?(?:[\w-]+\.)+[a-z]{2,12}(?:\s*[›/»>].{0,200})?", re.IGNORECASE)
DESCRIPTION_NAME = _VOCABULARY.pattern("description_name")
NO_DESCRIPTION: Final = frozenset({"cite", "button", "nav", "time", "form", "select", "h1", "h2", "h3", "h4", "h5"})
QUERY_KEYS: Final = _VOCABULARY.words("query_keys")
TOTAL = _VOCABULARY.pattern("total", re.IGNORECASE)

"""The next page of a list as pages keep it for scripts that load more of it when asked to, or when scrolled."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from zyte_common_items import Request

from scrapy_ext.server.extraction.auto.navigation.numbers import Address, address_of
from scrapy_ext.server.extraction.auto.navigation.parts import NOT_PAGES
from scrapy_ext.server.extraction.auto.navigation.site_links import link_name
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.urls import same_page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("pagination")
#: Attributes by which scripts know where the list goes on.
_SCRIPTED: Final = _VOCABULARY.words("scripted")
MAX_SCRIPTED: Final = 200
_LOADS_MORE = _VOCABULARY.pattern("loads_more")


def scripted_next(page: Page, own: Address) -> Request | None:
    """The request for the next page that an attribute holds, where its address is that of the page after ``own``."""
    # To look for the names first is many times faster than to look at every element.
    there = [name for name in _SCRIPTED if f"{name}=".encode() in page.source]
    nodes = [node for name in there for node in islice(page.tree.iterfind(f".//*[@{name}]"), MAX_SCRIPTED)]
    for node in nodes:
        names = page.names(node)
        for attribute in there:
            value = (node.get(attribute) or "").strip()
            if not re.match(r"https?://|[/?]", value) or (url := page.link(value)) is None:
                continue
            follows = -1.0 if same_page(url, page.url) else own.score_of_next(address_of(url))
            named = f"{names} {attribute}"
            if follows >= 2.0 and _LOADS_MORE.search(named) and not NOT_PAGES.search(named):
                return Request(url=url, name=link_name(node))
    return None

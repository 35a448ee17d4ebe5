"""Signs of the kind of a page, as numbers by name: the types that its markup declares, and words in its URL.

The models of kinds and of blocks, and the probabilities of items, are trained on these: train them again after any
change (``benchmarks/quality``).
"""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

URL_GROUPS: Final = load_vocabulary("page_parts").table("url_groups")
URL_SAYS: Final = {name: re.compile(words) for name, words in URL_GROUPS.items()}
MAX_MARKUP: Final = 400_000
MAX_ADDRESS: Final = 2000
_TYPE = re.compile(r'"@type"\s*:\s*(?:\[\s*)?"(\w+)"')
_MARKUP: Final = {
    "product": frozenset({"Product", "ProductGroup"}),
    "article": frozenset({"Article", "NewsArticle", "BlogPosting", "TechArticle", "Report"}),
    "forum": frozenset({"DiscussionForumPosting", "QAPage", "Question", "Answer"}),
    "list": frozenset({"ItemList", "CollectionPage", "OfferCatalog"}),
    "faq": frozenset({"FAQPage"}),
}


def og_signs(page: Page) -> dict[str, float]:
    kind = (page.meta("og:type") or "").lower()
    return {
        "og_article": float(kind == "article"),
        "og_product": float("product" in kind),
        "og_site": float(kind == "website"),
    }


def markup_signs(page: Page) -> dict[str, float]:
    attributes, typed = page.outline.attributes, page.with_attribute.get("itemtype", ())
    found = {attributes[position]["itemtype"].rsplit("/", 1)[-1] for position in typed}
    for script in page.scripts:
        if "json" in script.type:
            found.update(_TYPE.findall(script.source[:MAX_MARKUP]))
    return {f"markup_{name}": float(not types.isdisjoint(found)) for name, types in _MARKUP.items()}


def address_signs(page: Page) -> dict[str, float]:
    site, _, path = page.url.lower()[:MAX_ADDRESS].partition("//")[2].partition("/")
    # A port such as 42015 is not a year.
    host, path = site.rpartition("@")[2].partition(":")[0], "/" + path
    says = {f"url_{name}": float(bool(words.search(path) or words.search(host))) for name, words in URL_SAYS.items()}
    return {"path": float(path.rstrip("/").count("/")), **says}


def page_signs(page: Page) -> dict[str, float]:
    """Return all signs of a page."""
    return {**og_signs(page), **markup_signs(page), **address_signs(page)}

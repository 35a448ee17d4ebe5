"""What is counted of a whole page, in numbers: what kind of page it is shows in them."""

from __future__ import annotations

import math
import re
from typing import Final

from scrapy_ext.server.extraction.auto.content.blocks import Blocks
from scrapy_ext.server.extraction.auto.content.part_names import URL_SAYS
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import HEADINGS

#: Texts of fewer words may be labels with a price.
LABEL_WORDS: Final = 14
#: Blocks of at least as many words, few of them in links, are prose.
PROSE_WORDS: Final = 15
MAX_MARKUP: Final = 400_000
_PRICE = re.compile(r"[$€£¥₹]\s?\d|\d\s?(?:[$€£¥₹]|USD|EUR|GBP|kr\b|zł)")
_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(\w+)"')
_MARKUP: Final = {
    "product": frozenset({"Product", "ProductGroup"}),
    "article": frozenset({"Article", "NewsArticle", "BlogPosting", "TechArticle", "Report"}),
    "forum": frozenset({"DiscussionForumPosting", "QAPage", "Question", "Answer"}),
    "list": frozenset({"ItemList", "CollectionPage", "OfferCatalog"}),
    "faq": frozenset({"FAQPage"}),
}


def page_features(page: Page, blocks: Blocks) -> dict[str, float]:
    """The numbers of a page, by name."""
    words = max(1, blocks.root.words)
    prose = sum(block.words for block in blocks if block.words >= PROSE_WORDS and 3 * block.link_words < block.words)
    tags = [block.box.tag for block in blocks]
    count = max(1, len(tags))
    kind = (page.meta("og:type") or "").lower()
    return {
        "page_words": math.log1p(words),
        "page_blocks": math.log1p(len(blocks)),
        "page_links": blocks.root.link_words / words,
        "page_prose": prose / words,
        "page_prose_words": math.log1p(prose),
        "page_p": tags.count("p") / count,
        "page_li": tags.count("li") / count,
        "page_headings": sum(tag in HEADINGS for tag in tags) / count,
        "page_h1": float(tags.count("h1")),
        "page_pre": math.log1p(tags.count("pre")),
        "page_articles": math.log1p(sum(node.tag == "article" for node in page.elements)),
        "page_main": float(next(page.tree.iter("main"), None) is not None),
        "page_prices": math.log1p(
            sum(bool(block.words < LABEL_WORDS and _PRICE.search(block.text)) for block in blocks)
        ),
        "page_og_article": float(kind == "article"),
        "page_og_product": float("product" in kind),
        "page_og_site": float(kind == "website"),
        **_markup(page),
        **_address(page),
    }


def _markup(page: Page) -> dict[str, float]:
    found = {str(value).rsplit("/", 1)[-1] for value in page.tree.xpath("//@itemtype")}
    for script in page.scripts:
        if "json" in script.type:
            found.update(_TYPE.findall(script.source[:MAX_MARKUP]))
    return {f"page_markup_{name}": float(not types.isdisjoint(found)) for name, types in _MARKUP.items()}


def _address(page: Page) -> dict[str, float]:
    host, _, path = page.url.lower()[:2000].partition("//")[2].partition("/")
    path = "/" + path
    says = {
        f"page_url_{name}": float(bool(words.search(path) or words.search(host))) for name, words in URL_SAYS.items()
    }
    return {"page_path": float(path.rstrip("/").count("/")), **says}

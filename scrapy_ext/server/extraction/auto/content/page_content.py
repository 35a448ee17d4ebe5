"""Content of a page of any kind: its main text, and the links around it.

The text is of the blocks that models of pages and blocks, and the rules of the page's kind, choose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from operator import and_, or_
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks, TextBlock
from scrapy_ext.server.extraction.auto.content.choice import (
    Candidate,
    block_model,
    choose,
    copies,
    in_consent_dialogs,
    kind_model,
)
from scrapy_ext.server.extraction.auto.content.entry_headings import entry_headings
from scrapy_ext.server.extraction.auto.content.features import Features
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import breadcrumbs_of
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.items import DetailsMetadata, PageContent
from scrapy_ext.server.extraction.auto.navigation.links import footer_links, header_links, sidebar_links
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page import Focus, Page, now, one_line
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.text import joined
from scrapy_ext.server.extraction.auto.page.urls import slug_of
from scrapy_ext.server.extraction.auto.products.availability import stated_availability
from scrapy_ext.server.extraction.auto.products.description import description_of
from scrapy_ext.server.extraction.auto.products.identifiers import identifiers_of
from scrapy_ext.server.extraction.auto.products.offers import IN_STOCK, main_product, offer_of
from scrapy_ext.server.extraction.auto.products.shown_prices import PriceTags

#: Number of words from which on a longer text is no surer.
MANY_WORDS: Final = 1000
_PLAIN_ID = re.compile(r"[\w-]{1,80}")


def extract(page: Page) -> PageContent:
    """Return the content of a page. Only ``url`` and ``metadata`` are always present."""
    focus = Focus(page, page.meta("og:title", "twitter:title"), page.title)
    content, pagination = main_content(page, focus), Pagination(page)
    signs = {"words": math.log10(max(1, min(content.words, MANY_WORDS))), "chance": content.chance}
    sure = probability.of("pageContent", page, signs) if content.text else probability.LEAST
    return PageContent(
        url=page.url,
        canonicalUrl=page.canonical_url,
        headline=headline_of(page, None, focus),
        title=page.title,
        itemMain=content.text or None,
        itemMainXPath=_xpath(page, content.node) if content.node is not None else None,
        breadcrumbs=breadcrumbs_of(page),
        navigationHeader=header_links(page),
        navigationFooter=footer_links(page),
        navigationSidebar=sidebar_links(page),
        pagination=pagination.links,
        nextPage=pagination.next,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=sure),
    )


def _xpath(page: Page, node: HtmlElement) -> str:
    """Return an XPath by the id of the node where that is unique, as it outlives changes; else by its position."""
    own = node.get("id") or ""
    with_id = page.with_attribute.get("id", ())
    if _PLAIN_ID.fullmatch(own) and sum(page.outline.attributes[position]["id"] == own for position in with_id) == 1:
        return f'//*[@id="{own}"]'
    return str(page.tree.getroottree().getpath(node))


# ── its main text ──

#: The blocks of a page that are classified; the rest of a longer page is left out. Of several hundred real pages, the
#: longest has 9,000.
MAX_BLOCKS: Final = 4_000
#: The share of the words that the element of the content must contain: not all, as one stray block elsewhere on the
#: page, such as a date in the header, would make it the body.
MOST: Final = 0.97
#: Tags whose blocks follow each other line by line, rather than as paragraphs.
_LINES: Final = frozenset({"li", "dt", "dd", "tr", "option", "summary", "label", "caption"})
_CELLS: Final = frozenset({"td", "th"})


class Content(NamedTuple):
    """The main text of a page, and the smallest element with nearly all of it, where there is one."""

    text: str
    node: HtmlElement | None
    #: Words of its blocks, and the average of the chances of these.
    words: int
    chance: float


class ContentBlocks(NamedTuple):
    """The blocks of the content, in the order of the page, with the average chance of their words to be content."""

    blocks: list[TextBlock]
    chance: float = 0.0


def main_content(page: Page, focus: Focus | None = None) -> Content:
    """Return the primary content of a page; an empty text where there is none."""
    chosen, chance = content_blocks(page, Blocks(page, MAX_BLOCKS), focus)
    return Content(text_of(chosen), place_of(chosen), sum(block.words for block in chosen), chance)


def chosen_blocks(page: Page, focus: Focus | None = None) -> tuple[Blocks, list[TextBlock]]:
    """Return the blocks of a page, and those of its content."""
    blocks = Blocks(page, MAX_BLOCKS)
    return blocks, content_blocks(page, blocks, focus).blocks


def content_blocks(page: Page, blocks: Blocks, focus: Focus | None = None) -> ContentBlocks:
    """Return the blocks of the content."""
    if not blocks:
        return ContentBlocks([])
    article = ArticleMarks(page, blocks, focus)
    features = Features(page, blocks, article)
    of_kind, of_block = kind_model(), block_model()
    if features.names != of_block.features or features.names_of_page != of_kind.features:
        raise RuntimeError("The models were trained on other numbers: run benchmarks/quality/train_block_model.py")
    kinds = of_kind.likelihoods(features.of_page)
    chances = of_block.likelihoods(features.rows, features.of_page)
    taken = choose(candidates(page, blocks, chances, article), kinds)
    parts = product_parts(page, blocks, kinds, taken)
    is_product = kinds.get("product", 0.0) >= UNLIKELY
    headings = [False] * len(blocks) if is_product else entry_headings(blocks, taken)
    rows = zip(blocks, chances, taken, parts, headings, strict=True)
    chosen = [(block, chance) for block, chance, *reasons in rows if any(reasons)]
    words = max(1, sum(block.words for block, _ in chosen))
    chance = sum(block.words * chance for block, chance in chosen) / words
    return ContentBlocks([block for block, _ in chosen], chance)


def candidates(
    page: Page, blocks: Sequence[TextBlock], chances: Sequence[float], article: ArticleMarks
) -> list[Candidate]:
    """Return what the choice needs of each block."""
    marks = zip(blocks, chances, article.shares, copies(blocks), in_consent_dialogs(page, blocks), strict=True)
    return [
        Candidate(block.words, chance, share, is_copy, is_consent)
        for block, chance, share, is_copy, is_consent in marks
    ]


def text_of(blocks: Sequence[TextBlock]) -> str:
    """Return the text of blocks: an empty line between paragraphs, items line by line, cells of a row in one line."""
    return joined(blocks, lambda block: block.text, _between)


def _between(before: TextBlock, block: TextBlock) -> str:
    if before.box.tag in _CELLS and block.box.tag in _CELLS:
        return " " if before.box.parent is block.box.parent else "\n"
    return "\n" if before.box.tag in _LINES and block.box.tag in _LINES else "\n\n"


def place_of(blocks: Sequence[TextBlock]) -> HtmlElement | None:
    """Return the smallest element with nearly all words of these blocks."""
    if not blocks:
        return None
    total = sum(block.words for block in blocks)
    held: dict[HtmlElement, int] = {}
    depths: dict[HtmlElement, int] = {}
    for block in blocks:
        for box in block.box.chain():
            held[box.node] = held.get(box.node, 0) + block.words
            depths[box.node] = box.depth
    return max((node for node, words in held.items() if words >= MOST * total), key=lambda node: depths[node])


# ── blocks with what a product page is for: its heading, price, numbers and description ──
#
# They are short, and stand among buttons and options, so that a model of blocks leaves them out.


#: A page is a product with this chance, and none with this chance of a list: more likely than not.
LIKELY: Final = 0.5
#: A page of more than MANY blocks with a lower chance of a product is none. Of small pages the model knows little.
UNLIKELY: Final = 0.1
MANY: Final = 60
_LISTS: Final = ("collection", "listing")
#: Words of a block with a price or a number.
SHORT: Final = 15


def product_parts(
    page: Page, blocks: Sequence[TextBlock], kinds: Mapping[str, float], taken: Sequence[bool]
) -> list[bool]:
    """Return for each block whether it is such a part; none on a page that is not of one product.

    The description counts where nothing of it is ``taken`` already: pages have parts of it in several places.
    """
    none = [False] * len(blocks)
    chance = kinds.get("product", 0.0)
    if sum(kinds.get(kind, 0.0) for kind in _LISTS) >= LIKELY or (chance < UNLIKELY and len(blocks) > MANY):
        return none
    product = main_product(page)
    name = product.text("name") if product else None
    focus = Focus(page, name, page.meta("og:title"), page.title, slug_of(page.url))
    is_product = chance >= LIKELY or (product is not None and bool(product.values("offers")))
    if focus.heading is None or not (is_product or stated_availability(page, focus) == IN_STOCK):
        return none
    price = _price_of(page, product, focus)
    if price is None and not is_product:
        return none
    return _Parts(page, product, focus, price).of(blocks, taken)


def _price_of(page: Page, product: Thing | None, focus: Focus) -> str | None:
    stated = offer_of(product).price if product else None
    money = stated or PriceTags(page, focus).price()
    return money.amount if money else None


class _Parts:
    def __init__(self, page: Page, product: Thing | None, focus: Focus, price: str | None) -> None:
        self._focus, self._nodes = focus, page.outline.nodes
        whole, _, fraction = (price or "").partition(".")
        self._prices = {whole + fraction, *([whole] if not fraction.strip("0") else [])} - {""}
        numbers = identifiers_of(page, product, focus)
        self._codes = [code for code in (numbers.sku, numbers.mpn) if code]
        self._description = one_line(description_of(page, product, focus).text)

    def of(self, blocks: Sequence[TextBlock], taken: Sequence[bool]) -> list[bool]:
        found = [self._is_heading(block) for block in blocks]
        described = [self._is_described(block) for block in blocks]
        if not any(map(and_, described, taken)):
            found = list(map(or_, found, described))
        below = [at for at, block in enumerate(blocks) if block.words <= SHORT and self._is_near(block)]
        places = [next((at for at in below if self._has_price(blocks[at])), None)]
        places += [next((at for at in below if code in blocks[at].text), None) for code in self._codes]
        for place in places:
            if place is not None:
                found[place] = True
        return found

    def _is_heading(self, block: TextBlock) -> bool:
        return any(box.node is self._focus.heading for box in block.box.chain()[:4])

    def _is_described(self, block: TextBlock) -> bool:
        return block.words > 2 and one_line(block.text) in self._description and self._is_near(block)

    def _is_near(self, block: TextBlock) -> bool:
        # The box of a text beside the heading is around both.
        node = self._nodes[block.pieces[0] // 2]
        return self._focus.distance(node) >= 0 and not self._focus.elsewhere(node)

    def _has_price(self, block: TextBlock) -> bool:
        digits = "".join(str(int(sign)) for sign in block.text if sign.isdecimal())
        return any(digits.startswith(price) for price in self._prices)

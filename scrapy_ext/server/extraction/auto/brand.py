"""The brand of a product."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml.html import HtmlElement
from zyte_parsers import extract_brand_name

from scrapy_ext.server.extraction.auto import vocabulary
from scrapy_ext.server.extraction.auto.focus import Focus
from scrapy_ext.server.extraction.auto.markup import Thing
from scrapy_ext.server.extraction.auto.page import Page
from scrapy_ext.server.extraction.auto.specification import Specification
from scrapy_ext.server.extraction.auto.text import node_text, one_line

MAX_LENGTH: Final = 60
MAX_NODES: Final = 200
#: How far from the heading, in elements, something named as the brand may stand when no title has its name.
NEAR: Final = 12

_LABELLED = re.compile(rf"(?:{'|'.join(vocabulary.BRAND_ROWS)})\s*[:：]\s*(.+)", re.IGNORECASE)
#: What shops say around the name.
_AROUND: Final = (
    re.compile(r"(?:visit the|besuche den|bezoek de) (.+?)[ -](?:store|shop|winkel)", re.IGNORECASE),
    re.compile(r"(?:visita lo store di|visiter la boutique|visita la tienda de|visite a loja) (.+)", re.IGNORECASE),
    re.compile(r"(?:by|von|par|por|from|shop all|more from|view all|see all) (.+)", re.IGNORECASE),
)
_NAMES: Final = ("brand", "manufacturer", "byline", "vendor", "marca", "marque", "marke")
_NAME = re.compile(
    r"(?:^|[\s_-])(?:(?:product|item)[-_]?)?(?:brand|manufacturer|marke|marque|marca|by-?line(?:-?info)?|vendor)"
)
_NO_BRAND = re.compile(
    r"(?:n/?a|none|null|-|unknown|generic|other|does not apply|no brand|not specified|brands?|marcas?|marken?"
    r"|manufacturers?|home|shop|logo|(?:view|see|read|more|all|info|about)\b.*)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]{2}|^[^\W\d_][^\w\s][^\W\d_]$")
#: Templates that were not filled in, addresses, alphabets, sentences.
_NO_NAME = re.compile(r"[${}<>|]|://|^(?:\S \S )|[.!?] |!$")


def brand_of(page: Page, product: Thing | None, focus: Focus, specification: Specification) -> str | None:
    """The brand as the page writes it: of its markup, of a labelled value, of what is named so by its author."""
    sources: tuple[Callable[[], str | None], ...] = (
        lambda: _of_markup(page, product),
        lambda: _of_pairs(specification, focus, listed=True),
        lambda: _of_named_nodes(page, focus),
        lambda: _of_pairs(specification, focus, listed=False),
    )
    return next((brand for source in sources if (brand := source())), None)


def _of_markup(page: Page, product: Thing | None) -> str | None:
    stated = product.texts("brand", "manufacturer") if product else []
    candidates = [*stated, page.meta("product:brand", "og:brand", "brand")]
    return next((brand for text in candidates if (brand := cleaned(text))), None)


def _of_pairs(specification: Specification, focus: Focus, *, listed: bool) -> str | None:
    for pair in specification.of(vocabulary.BRAND):
        if pair.listed is listed and not focus.elsewhere(pair.node) and (brand := cleaned(pair.value)):
            return brand
    return None


def _of_named_nodes(page: Page, focus: Focus) -> str | None:
    best: tuple[float, str] | None = None
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if not _NAME.search(page.names(node)) or focus.elsewhere(node):
            continue
        stated = node.get("data-brand") or node.get("data-brand-name")
        sure = bool(stated) or node.get("itemprop") in {"brand", "manufacturer"}
        brand = cleaned(stated or _text(node))
        if not brand or brand == focus.heading_text:
            continue
        distance = abs(focus.distance(node))
        if sure or distance <= NEAR or brand.casefold() in titles:
            score = distance - (1000 if sure else 0)
            if best is None or score < best[0]:
                best = (score, brand)
    return best[1] if best else None


def _text(node: HtmlElement) -> str | None:
    if node.tag == "meta":
        return str(node.get("content") or "")
    return extract_brand_name(node, search_depth=3) or node_text(node, 100)


def cleaned(text: str | None) -> str | None:
    """A brand without the words that shops put around it; None for what cannot be one."""
    brand = one_line(text).strip(" |:–-\"'")
    if match := _LABELLED.fullmatch(brand):
        brand = match.group(1).strip()
    for pattern in _AROUND:
        if match := pattern.fullmatch(brand):
            brand = match.group(1).strip()
            break
    if not brand or len(brand) > MAX_LENGTH or _NO_BRAND.fullmatch(brand):
        return None
    return brand if _LETTERS.search(brand) and not _NO_NAME.search(brand) else None

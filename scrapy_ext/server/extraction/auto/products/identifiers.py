"""Identifiers of a product: of the shop (sku), of the manufacturer (mpn), global ones (gtin)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Gtin
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.markup import JSON_LD
from scrapy_ext.server.extraction.auto.page.text import first
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.auto.products.gtins import gtins_on
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Shorter codes are sizes and counts.
MIN_CODE_LENGTH: Final = 4
MAX_CODE_LENGTH: Final = 64
MAX_CODE_NODES: Final = 300
#: Longest text with a label and a code.
MAX_LINE_LENGTH: Final = 120
#: Part of a script that is read, in characters.
MAX_SCRIPT_LENGTH: Final = 1_000_000

_VOCABULARY: Final = load_vocabulary("products")
_SKU, _MPN = _VOCABULARY.patterns("sku", "mpn", flags=re.IGNORECASE)
#: A label and a code, with or without a colon between them: ``Produkta kods 545642356``.
_LABELLED_SKU, _LABELLED_MPN = _VOCABULARY.patterns("labelled_sku", "labelled_mpn", flags=re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"\w[\w./+-]*(?: ?[\w./+-]+){0,3}")
_NO_CODE = re.compile(r"n/?a|none|null|undefined|nan|false|true|[-_.0]+", re.IGNORECASE)
_CODE_NAMES, _MPN_NAMES = map(_VOCABULARY.words, ("number_names", "mpn_names"))
_CONTENT: Final = ("content",)
_ATTRIBUTES: Final = ("content", "data-sku", "data-product-sku", "data-product-code", "data-asin")
_INPUT_NAME = _VOCABULARY.pattern("input_name", re.IGNORECASE)
#: The last part of a path when it ends in a number: ``lamp-iid-1021493409``, ``p4999298.html``.
_ID_IN_PATH = re.compile(
    r"(?:[^/]*[-_])?(?:p|id)?([A-Z]{0,4}\d{5,}[A-Z0-9]{0,6})(?:\.\w{2,5})?|(\d{6,12})_.*|((?=[A-Z\d]*[A-Z])(?:[A-Z]*\d){4}[A-Z\d]*)"
)
_MPN_IN_SCRIPT = re.compile(
    r"""["'](?:mpn|manufacturerPartNumber|modelNumber|partNumber)\\*["']\s*:\s*\\*["']([\w./+-]{4,40})\\*["']"""
)
_SKU_IN_SCRIPT = re.compile(r"""sku\\*["']?\s*:\s*\\*["']([\w./+-]{4,40})\\*["']""")


class Identifiers(NamedTuple):
    sku: str | None
    mpn: str | None
    product_id: str | None
    gtin: list[Gtin]


def identifiers_of(page: Page, product: Thing | None, focus: Focus) -> Identifiers:
    """Return the identifiers of a product: of structured data, the page, its form and its URL, in this order."""
    page_id = _id_of_page(page)
    stated = [code for text in _stated_skus(product) if (code := _stated_code(text) or _code(text))]
    shown = _codes(_skus(page, product, focus))
    # The numbers of variants begin with that of the product.
    whole = [code for code in (*shown, page_id) if code and any(text.startswith(f"{code}-") for text in stated)]
    skus = [*whole, *stated, *shown]
    # A code with spaces is often a name, so others precede it.
    sku = first([*(code for code in skus if " " not in code), page_id, *skus]) or first(
        _only_in_scripts(page, _SKU_IN_SCRIPT)
    )
    gtins = gtins_on(page, product, focus)
    # Shops without a manufacturer's number repeat their own there.
    others = {sku, *stated, *(gtin.value for gtin in gtins)}
    stated_mpn = first(_codes(_stated_mpns(product)))
    shown_mpns = _codes(_mpns(page, focus)) if stated_mpn is None or stated_mpn in others else []
    mpn = first(code for code in (stated_mpn, *shown_mpns) if code not in others)
    stated_id = first(_codes(product.texts("productID", "productId", "identifier"))) if product else None
    return Identifiers(
        sku=sku,
        mpn=mpn,
        product_id=stated_id or page_id,
        gtin=gtins,
    )


def _stated_skus(product: Thing | None) -> Iterator[str]:
    if product is not None:
        yield from product.texts("sku")
        # The number of one variant is not that of the product.
        of_offers = [text for offer in product.things("offers") for text in offer.texts("sku")]
        yield from of_offers if len(set(of_offers)) == 1 else ()


def _skus(page: Page, product: Thing | None, focus: Focus) -> Iterator[str]:
    """Yield candidates for the shop's number on the page, the most reliable first."""
    for node in page.named(*_CODE_NAMES)[:MAX_CODE_NODES]:
        if node.tag != "option" and not focus.elsewhere(node):
            yield from _codes_of_node(node, _LABELLED_SKU)
    for pair in page.labelled.of(_SKU):
        if not focus.elsewhere(pair.node):
            yield pair.value
    for node, text in page.lines:
        match = _LABELLED_SKU.fullmatch(text) if len(text) <= MAX_LINE_LENGTH and _DIGIT.search(text) else None
        if match and not focus.elsewhere(node):
            yield match.group(1)
    if product is not None:
        yield from product.texts("productID", "productId")
    yield from page.metas.get("product:retailer_item_id", ())


def _codes_of_node(node: HtmlElement, labelled: re.Pattern[str]) -> Iterator[str]:
    for attribute in _ATTRIBUTES if labelled is _LABELLED_SKU else _CONTENT:
        if value := node.get(attribute):
            yield value.removeprefix("sku:")
    text = node_text(node, MAX_LINE_LENGTH)
    match = labelled.fullmatch(text)
    code = match.group(1) if match else text.rpartition(":")[2].strip()
    if " " not in code:
        yield code


def _only_in_scripts(page: Page, pattern: re.Pattern[str]) -> set[str]:
    """Return the number in scripts, if there is only one: several are those of other products."""
    found: set[str] = set()
    for script in page.scripts:
        # Structured data has been read as such.
        source = "" if script.type == JSON_LD else script.source[:MAX_SCRIPT_LENGTH]
        matches = pattern.finditer(source)
        found.update(match.group(1) for match in islice(matches, MAX_CODE_NODES))
    return found if len(found) == 1 else set()


def _stated_mpns(product: Thing | None) -> Iterator[str]:
    if product is not None:
        yield from product.texts("mpn")
        yield from (value for value in product.values("model") if isinstance(value, str))


def _mpns(page: Page, focus: Focus) -> Iterator[str]:
    """Yield candidates for the manufacturer's number on the page, the most reliable first."""
    for pair in page.labelled.of(_MPN):
        if not focus.elsewhere(pair.node):
            yield pair.value
    yield from page.metas.get("product:mfr_part_no", ())
    for node, text in page.lines:
        match = _LABELLED_MPN.fullmatch(text) if len(text) <= MAX_LINE_LENGTH and _DIGIT.search(text) else None
        if match and not focus.elsewhere(node):
            yield match.group(1)
    for node in page.named(*_MPN_NAMES)[:MAX_CODE_NODES]:
        if node.tag != "option" and not focus.elsewhere(node):
            yield from _codes_of_node(node, _LABELLED_MPN)
    yield from _only_in_scripts(page, _MPN_IN_SCRIPT)


def _codes(texts: Iterable[str]) -> list[str]:
    return [code for text in texts if (code := _code(text))]


def _code(text: str) -> str | None:
    code = one_line(text[:1000]).strip(" :#()[]\"'")
    if not MIN_CODE_LENGTH <= len(code) <= MAX_CODE_LENGTH or not _DIGIT.search(code):
        return None
    return code if _CODE.fullmatch(code) else None


def _stated_code(text: str) -> str | None:
    """Return a number of structured data, which may be short and have no digit."""
    code = one_line(text[:1000]).strip(" :#()[]\"'")
    sound = 1 < len(code) <= MAX_CODE_LENGTH and " " not in code and not _NO_CODE.fullmatch(code)
    return code if sound and _CODE.fullmatch(code) else None


def _id_of_page(page: Page) -> str | None:
    for node in page.tree.iter("input"):
        name = node.get("name") or node.get("id") or ""
        if node.get("type") in {"hidden", "radio"} and _INPUT_NAME.fullmatch(name):
            code = _code(node.get("value") or "")
            if code:
                return code
    parts = parts_of(page.url)
    values = [value for _, value in parse_qsl(parts.query)]
    segments = [unquote(segment) for segment in parts.path.split("/") if segment]
    texts = [text[:MAX_LINE_LENGTH] for text in (*values, *reversed(segments))]
    return first(first(match.groups()) for text in texts if (match := _ID_IN_PATH.fullmatch(text)))

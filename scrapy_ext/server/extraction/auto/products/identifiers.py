"""The numbers by which a product is known: of the shop (sku), of the maker (mpn), of the world (gtin)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from lxml.html import HtmlElement
from zyte_common_items import Gtin
from zyte_parsers import extract_gtin

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.specification import Specification
from scrapy_ext.server.extraction.auto.page.text import first, node_text, one_line
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Shorter codes are sizes and counts.
MIN_LENGTH: Final = 4
MAX_LENGTH: Final = 64
MAX_NODES: Final = 300
MAX_SCRIPT_LENGTH: Final = 1_000_000
#: Texts with a label and a code are shorter.
MAX_LINE_LENGTH: Final = 120

_VOCABULARY: Final = load_vocabulary("products")
_SKU = _VOCABULARY.pattern("sku", re.IGNORECASE)
_MPN = _VOCABULARY.pattern("mpn", re.IGNORECASE)
_GTIN = _VOCABULARY.pattern("gtin", re.IGNORECASE)
_GTIN_PROPERTIES: Final = ("gtin13", "gtin12", "gtin14", "gtin8", "gtin", "isbn")
#: A label and a code, with or without a colon between them: ``Produkta kods 545642356``.
_LABELLED = _VOCABULARY.pattern("labelled_sku", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"\w[\w./+-]*(?: ?[\w./+-]+){0,3}")
_NO_CODE = re.compile(r"n/?a|none|null|undefined|nan|false|true|[-_.0]+", re.IGNORECASE)
_NAMES: Final = _VOCABULARY.words("number_names")
_ATTRIBUTES: Final = ("content", "data-sku", "data-product-sku", "data-product-code", "data-asin")
_INPUT_NAME = _VOCABULARY.pattern("input_name", re.IGNORECASE)
#: The last part of a path when it ends in a number: ``lamp-iid-1021493409``, ``p4999298.html``.
_ID_IN_PATH = re.compile(
    r"(?:[^/]*[-_])?(?:p|id)?([A-Z]{0,4}\d{5,}[A-Z0-9]{0,6})(?:\.\w{2,5})?|(\d{6,12})_.*|((?=[A-Z\d]*[A-Z])(?:[A-Z]*\d){4}[A-Z\d]*)"
)
_IN_SCRIPT = re.compile(r"""sku\\*["']?\s*:\s*\\*["']([\w./+-]{4,40})\\*["']""")


class Identifiers(NamedTuple):
    """What is known of a product's numbers."""

    sku: str | None
    mpn: str | None
    product_id: str | None
    gtin: list[Gtin]


def identifiers_of(page: Page, product: Thing | None, focus: Focus, specification: Specification) -> Identifiers:
    """The numbers of a product: of its markup first, then of the page, then of the page's form and address."""
    page_id = _id_of_page(page)
    stated = [code for text in _stated_skus(product) if (code := _stated_code(text) or _code(text))]
    shown = _codes(_skus(page, product, focus, specification))
    # Variants have a number of the product's with something after it.
    whole = [code for code in (*shown, page_id) if code and any(text.startswith(f"{code}-") for text in stated)]
    skus = [*whole, *stated, *shown]
    # A code with spaces in it is often a name, so that others go before it.
    sku = first([*(code for code in skus if " " not in code), page_id, *skus]) or _of_scripts(page)
    mpn = first(_codes(_mpns(page, product, focus, specification)))
    stated_id = first(_codes(product.texts("productID", "productId", "identifier"))) if product else None
    labelled = [pair.value for pair in specification.of(_GTIN) if not focus.elsewhere(pair.node)]
    return Identifiers(
        sku=sku,
        # Shops that have no number of the maker repeat their own there.
        mpn=mpn if mpn not in {sku, *stated} else None,
        product_id=stated_id or page_id,
        gtin=gtins_of(product, labelled),
    )


def gtins_of(product: Thing | None, others: Iterable[str] = ()) -> list[Gtin]:
    """The sound GTINs of a product's markup and of other texts, each once."""
    texts = [*others]
    for holder in (product, *product.things("offers")) if product else ():
        texts += [text for name in _GTIN_PROPERTIES for text in holder.texts(name)]
    found: dict[str, Gtin] = {}
    for text in texts:
        gtin = extract_gtin(text[:100])
        if gtin is not None and gtin.value.strip("0"):
            found.setdefault(gtin.value, Gtin(type=gtin.type, value=gtin.value))
    return list(found.values())


def _stated_skus(product: Thing | None) -> Iterator[str]:
    if product is not None:
        yield from product.texts("sku")
        # That of one variant is not that of the product.
        of_offers = [text for offer in product.things("offers") for text in offer.texts("sku")]
        yield from of_offers if len(set(of_offers)) == 1 else ()


def _skus(page: Page, product: Thing | None, focus: Focus, specification: Specification) -> Iterator[str]:
    """What may be the shop's number on the page, the surest first."""
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if node.tag != "option" and not focus.elsewhere(node):
            yield from _codes_of_node(node)
    for pair in specification.of(_SKU):
        if not focus.elsewhere(pair.node):
            yield pair.value
    for node, text in page.lines:
        match = _LABELLED.fullmatch(text) if len(text) <= MAX_LINE_LENGTH and _DIGIT.search(text) else None
        if match and not focus.elsewhere(node):
            yield match.group(1)
    if product is not None:
        yield from product.texts("productID", "productId")
    yield from page.metas.get("product:retailer_item_id", ())


def _codes_of_node(node: HtmlElement) -> Iterator[str]:
    for attribute in _ATTRIBUTES:
        if value := node.get(attribute):
            yield value.removeprefix("sku:")
    text = node_text(node, MAX_LINE_LENGTH)
    match = _LABELLED.fullmatch(text)
    code = match.group(1) if match else text.rpartition(":")[2].strip()
    if " " not in code:
        yield code


def _of_scripts(page: Page) -> str | None:
    """The number that scripts tell; one for all is that of the product, several are those of others."""
    found: set[str] = set()
    for script in page.scripts:
        matches = _IN_SCRIPT.finditer(script.source[:MAX_SCRIPT_LENGTH])
        found.update(match.group(1) for match in islice(matches, MAX_NODES))
    return found.pop() if len(found) == 1 else None


def _mpns(page: Page, product: Thing | None, focus: Focus, specification: Specification) -> Iterator[str]:
    """What may be the maker's number, the surest first."""
    if product is not None:
        yield from product.texts("mpn")
        yield from (value for value in product.values("model") if isinstance(value, str))
    for pair in specification.of(_MPN):
        if not focus.elsewhere(pair.node):
            yield pair.value
    yield from page.metas.get("product:mfr_part_no", ())


def _codes(texts: Iterable[str]) -> list[str]:
    return [code for text in texts if (code := _code(text))]


def _code(text: str) -> str | None:
    code = one_line(text[:1000]).strip(" :#()[]\"'")
    if not MIN_LENGTH <= len(code) <= MAX_LENGTH or not _DIGIT.search(code):
        return None
    return code if _CODE.fullmatch(code) else None


def _stated_code(text: str) -> str | None:
    """A number that markup says is one: it may be short, and have no digit."""
    code = one_line(text[:1000]).strip(" :#()[]\"'")
    sound = 1 < len(code) <= MAX_LENGTH and " " not in code and not _NO_CODE.fullmatch(code)
    return code if sound and _CODE.fullmatch(code) else None


def _id_of_page(page: Page) -> str | None:
    """The number in the form to order the product, else in the page's own address."""
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

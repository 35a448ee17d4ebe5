"""Brand and identifiers of a product: of the shop (sku), of the manufacturer (mpn), global ones (gtin)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import html_text
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Gtin
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.text import first
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.auto.products.gtins import gtin_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_BRAND_LENGTH: Final = 60
MAX_BRAND_NODES: Final = 200
#: Most characters of the text of an image, or of several elements, that is a brand.
SHORT_BRAND: Final = 50
#: Greatest distance from the heading, in elements, of an element named as the brand that no title contains.
NEAR: Final = 12

#: Greatest distance from the heading, in elements, of a link to the page of the brand.
BEFORE_HEADING: Final = 20
AFTER_HEADING: Final = 80
#: Greatest distance before the heading, and into it, of a text that the title begins with.
JUST_BEFORE: Final = 8
IN_HEADING: Final = 3
MAX_BEGINNING: Final = 40
#: Bounds of a script: characters, brands, and characters between a brand and the name of the product.
MAX_SCRIPT_LENGTH: Final = 1_000_000
MAX_MATCHES: Final = 100
AROUND: Final = 400

_VOCABULARY: Final = load_vocabulary("products")
_BRAND, _BRAND_PAGE = _VOCABULARY.patterns("brand", "brand_page", flags=re.IGNORECASE)
_BRAND_IN_SCRIPT = re.compile(
    r"""(?:brand|manufacturer)(?:_?[Nn]ame)?\\*["']?\s*[:=]\s*(?:\{[^{}]{0,80}?\bname\\*["']?\s*:\s*)?\\*["']([^"'{}]{2,60}?)\\*["']"""
)
_LABELLED_BRAND = _VOCABULARY.pattern("labelled_brand", re.IGNORECASE)
#: Words that shops write around the name.
_AROUND: Final = tuple(re.compile(words, re.IGNORECASE) for words in _VOCABULARY.table("around_brand").values())
_BRAND_NAMES: Final = _VOCABULARY.words("brand_names")
_NAME = _VOCABULARY.pattern("brand_name")
_NO_BRAND = _VOCABULARY.pattern("no_brand", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}|^[^\W\d_][^\w\s][^\W\d_]$")
#: Unfilled templates, URLs, alphabets, sentences.
_NO_NAME = re.compile(r"[${}<>|]|://|^(?:\S \S )|[.!?] |!$")


def brand_of(page: Page, product: Thing | None, focus: Focus) -> str | None:
    """Return the brand as the page writes it: of structured data, a labelled value, or an element named so."""
    of_markup = _of_markup(page, product)
    if of_markup:
        return of_markup
    return page.sources.first(
        "brand",
        ("listed label", lambda: _of_pairs(page, focus, listed=True)),
        ("named part", lambda: _of_named_nodes(page, focus)),
        ("link", lambda: _of_links(page, focus)),
        ("script", lambda: _brand_of_scripts(page, focus)),
        ("beginning of the title", lambda: _of_beginning_of_title(page, focus)),
        ("label", lambda: _of_pairs(page, focus, listed=False)),
    )


def _of_markup(page: Page, product: Thing | None) -> str | None:
    stated = product.texts("brand", "manufacturer") if product else []
    candidates = [*stated, page.meta("product:brand", "og:brand", "brand")]
    return next((brand for text in candidates if (brand := cleaned(text))), None)


def _of_pairs(page: Page, focus: Focus, *, listed: bool) -> str | None:
    for pair in page.labelled.of(_BRAND):
        if pair.listed is listed and not focus.elsewhere(pair.node) and (brand := cleaned(pair.value)):
            return brand
    return None


def _of_named_nodes(page: Page, focus: Focus) -> str | None:
    best: tuple[float, str] | None = None
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    for node in page.named(*_BRAND_NAMES)[:MAX_BRAND_NODES]:
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


def _of_links(page: Page, focus: Focus) -> str | None:
    best: tuple[int, str] | None = None
    heading, site = (focus.heading_text or "").casefold(), (page.meta("og:site_name") or "").casefold()
    for node in page.tree.iter("a") if focus.heading is not None else ():
        href = node.get("href")
        if href is None or not _BRAND_PAGE.search(href):
            continue
        distance = focus.distance(node)
        if -BEFORE_HEADING <= distance <= AFTER_HEADING and not focus.elsewhere(node):
            brand = cleaned(_text(node))
            if brand and brand.casefold() not in {heading, site} and (best is None or abs(distance) < best[0]):
                best = (abs(distance), brand)
    return best[1] if best else None


def _brand_of_scripts(page: Page, focus: Focus) -> str | None:
    """Return the brand in scripts (such as those of analytics) that stands by the product's name or is in it."""
    titles = f"{focus.heading_text} {page.title} {page.meta('og:title')}".casefold()
    name = focus.heading_text or ""
    brands: Counter[str] = Counter()
    for script in page.scripts:
        source = script.source[:MAX_SCRIPT_LENGTH]
        for match in islice(_BRAND_IN_SCRIPT.finditer(source), MAX_MATCHES):
            brand = cleaned(match.group(1))
            if brand is None or "\\" in brand:
                continue
            around = source[max(0, match.start() - AROUND) : match.end() + AROUND]
            if brand.casefold() in titles or (name and name in around):
                brands[brand] += 1
    return brands.most_common(1)[0][0] if brands else None


def _of_beginning_of_title(page: Page, focus: Focus) -> str | None:
    """Return a text or image, just before or in the heading, that the title begins with."""
    if focus.heading is None:
        return None
    titles = [title.casefold() for title in (page.title, page.meta("og:title")) if title]
    heading, site = (focus.heading_text or "").casefold(), (page.meta("og:site_name") or "").casefold()
    position = page.order[focus.heading]
    for node in reversed(page.elements[max(0, position - JUST_BEFORE) : position + 1 + IN_HEADING]):
        text = node.get("alt") if node.tag == "img" else node.text if not len(node) else None
        if not text or len(text) > MAX_BEGINNING or focus.elsewhere(node):
            continue
        # A heading may begin with the name of a series, which has no page of its own.
        if focus.distance(node) >= 0 and not any(part.tag == "a" for part in (node, *islice(node.iterancestors(), 2))):
            continue
        brand = cleaned(text)
        word = brand.casefold() if brand else ""
        if word and word not in {heading, site} and any(title.startswith(f"{word} ") for title in titles):
            return brand
    return None


def _text(node: HtmlElement) -> str | None:
    if node.tag == "meta":
        return str(node.get("content") or "")
    if text := html_text.extract_text(node, guess_layout=False):
        return text if len(text) < SHORT_BRAND else node_text(node, 100)
    images = node.xpath("self::img | img | */img | */*/img")
    texts = ((image.get(name) or "").strip() for image in images for name in ("alt", "title"))
    return next((text for text in texts if 0 < len(text) < SHORT_BRAND), None)


def cleaned(text: str | None) -> str | None:
    """Return a brand without the words that shops write around it; None for what cannot be one."""
    brand = one_line(text).strip(" |:–-\"'")
    if match := _LABELLED_BRAND.fullmatch(brand):
        brand = match.group(1).strip()
    for pattern in _AROUND:
        if match := pattern.fullmatch(brand):
            brand = match.group(1).strip()
            break
    if not brand or len(brand) > MAX_BRAND_LENGTH or _NO_BRAND.fullmatch(brand):
        return None
    return brand if _LETTERS.search(brand) and not _NO_NAME.search(brand) else None


#: Shorter codes are sizes and counts.
MIN_CODE_LENGTH: Final = 4
MAX_CODE_LENGTH: Final = 64
MAX_CODE_NODES: Final = 300
#: Longest text with a label and a code.
MAX_LINE_LENGTH: Final = 120

_SKU, _MPN, _GTIN = _VOCABULARY.patterns("sku", "mpn", "gtin", flags=re.IGNORECASE)
_GTIN_PROPERTIES: Final = ("gtin13", "gtin12", "gtin14", "gtin8", "gtin", "isbn")
#: A label and a code, with or without a colon between them: ``Produkta kods 545642356``.
_LABELLED_SKU = _VOCABULARY.pattern("labelled_sku", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"\w[\w./+-]*(?: ?[\w./+-]+){0,3}")
_NO_CODE = re.compile(r"n/?a|none|null|undefined|nan|false|true|[-_.0]+", re.IGNORECASE)
_CODE_NAMES: Final = _VOCABULARY.words("number_names")
_ATTRIBUTES: Final = ("content", "data-sku", "data-product-sku", "data-product-code", "data-asin")
_INPUT_NAME = _VOCABULARY.pattern("input_name", re.IGNORECASE)
#: The last part of a path when it ends in a number: ``lamp-iid-1021493409``, ``p4999298.html``.
_ID_IN_PATH = re.compile(
    r"(?:[^/]*[-_])?(?:p|id)?([A-Z]{0,4}\d{5,}[A-Z0-9]{0,6})(?:\.\w{2,5})?|(\d{6,12})_.*|((?=[A-Z\d]*[A-Z])(?:[A-Z]*\d){4}[A-Z\d]*)"
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
    sku = first([*(code for code in skus if " " not in code), page_id, *skus]) or _sku_of_scripts(page)
    mpn = first(_codes(_mpns(page, product, focus)))
    stated_id = first(_codes(product.texts("productID", "productId", "identifier"))) if product else None
    labelled = [pair.value for pair in page.labelled.of(_GTIN) if not focus.elsewhere(pair.node)]
    return Identifiers(
        sku=sku,
        # Shops without a manufacturer's number repeat their own there.
        mpn=mpn if mpn not in {sku, *stated} else None,
        product_id=stated_id or page_id,
        gtin=gtins_of(product, labelled),
    )


def gtins_of(product: Thing | None, others: Iterable[str] = ()) -> list[Gtin]:
    """Return the valid GTINs of structured data and of other texts, each once."""
    texts = [*others]
    for holder in (product, *product.things("offers")) if product else ():
        texts += [text for name in _GTIN_PROPERTIES for text in holder.texts(name)]
    found: dict[str, Gtin] = {}
    for text in texts:
        gtin = gtin_of(text[:100])
        if gtin is not None and gtin.value.strip("0"):
            found.setdefault(gtin.value, gtin)
    return list(found.values())


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
            yield from _codes_of_node(node)
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


def _codes_of_node(node: HtmlElement) -> Iterator[str]:
    for attribute in _ATTRIBUTES:
        if value := node.get(attribute):
            yield value.removeprefix("sku:")
    text = node_text(node, MAX_LINE_LENGTH)
    match = _LABELLED_SKU.fullmatch(text)
    code = match.group(1) if match else text.rpartition(":")[2].strip()
    if " " not in code:
        yield code


def _sku_of_scripts(page: Page) -> str | None:
    """Return the number in scripts, if there is only one: several are those of other products."""
    found: set[str] = set()
    for script in page.scripts:
        matches = _SKU_IN_SCRIPT.finditer(script.source[:MAX_SCRIPT_LENGTH])
        found.update(match.group(1) for match in islice(matches, MAX_CODE_NODES))
    return found.pop() if len(found) == 1 else None


def _mpns(page: Page, product: Thing | None, focus: Focus) -> Iterator[str]:
    """Yield candidates for the manufacturer's number, the most reliable first."""
    if product is not None:
        yield from product.texts("mpn")
        yield from (value for value in product.values("model") if isinstance(value, str))
    for pair in page.labelled.of(_MPN):
        if not focus.elsewhere(pair.node):
            yield pair.value
    yield from page.metas.get("product:mfr_part_no", ())


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

"""Identifiers of a product: of the shop (sku), of the manufacturer (mpn), and global ones with valid check digits
(GTIN; ISBN of books, ISMN of music, ISSN of periodicals).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from lxml.html import HtmlElement
from stdnum import ean, isbn, ismn, issn

from scrapy_ext.server.extraction.auto.fields.price_notation import is_count
from scrapy_ext.server.extraction.auto.items import Gtin
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.markup import JSON_LD
from scrapy_ext.server.extraction.auto.page.sources import origin
from scrapy_ext.server.extraction.auto.page.text import first, letters_of
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.auto.products.vouchers import is_voucher
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest text that is read as a number, and longest line with a label and a number, in characters.
MAX_TEXT_LENGTH: Final = 100
MAX_LINE_LENGTH: Final = 120
MAX_NODES: Final = 100
#: Bounds of scripts: characters, and numbers. More numbers are those of other products.
MAX_SCRIPT_LENGTH: Final = 1_000_000
MAX_MATCHES: Final = 20

_VOCABULARY: Final = load_vocabulary("products")
_LABELS = _VOCABULARY.pattern("gtin", re.IGNORECASE)
_IN_LINE = _VOCABULARY.pattern("labelled_gtin", re.IGNORECASE)
_GTIN_NAMES: Final = _VOCABULARY.words("gtin_names")
_GTIN_NAME = _VOCABULARY.pattern("gtin_name")
_PROPERTIES: Final = ("gtin13", "gtin12", "gtin14", "gtin8", "gtin", "isbn")
_GTIN_ATTRIBUTES: Final = ("content", "data-gtin", "data-ean", "data-upc", "data-barcode", "data-isbn")
_IN_SCRIPT = re.compile(
    r"""["'](?:product_?)?(?:gtin(?:8|1[234])?|ean(?:_?code|13)?|upc|isbn(?:13)?|barcode)\\*["']\s*:\s*\\*["']?(\d{12,14})\b""",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_SEVERAL = re.compile(r"\s*[,;|/]\s*")

_OTHER = re.compile(r"[^0-9A-Za-z]")
#: A label that ends in the number of digits: ``EAN13: 7350053850019``.
_GTIN_LABEL = re.compile(r"(?:isbn|ean|gtin)(8|1[0-4])", re.IGNORECASE)
_NUMBER = re.compile(r"\D*(\d+)\D*")
#: The kind of a number before it: ``isbn:978-3-16-148410-0``; and the path of a digital link of GS1.
_KIND_BEFORE = re.compile(r"(?:gtin(?:8|1[234])?|ean|upc|isbn|issn|ismn)\s*:", re.IGNORECASE)
_DIGITAL_LINK = re.compile(r"https?://[^/\s]+/(?:[^?#]{0,60}/)?01/(\d{14})(?![^/?#])")
#: The check digit of an ISBN may be an X, which stands for ten.
_WITH_X = re.compile(r"(?:isbn)?(\d{9}x)", re.IGNORECASE)
_BY_LENGTH: Final = {8: "gtin8", 12: "upc", 13: "gtin13", 14: "gtin14"}
#: Numbers of 13 digits that GS1 leaves to regions, companies, shops and coupons: they name no product elsewhere.
#: Those of eight digits, which have the same beginnings without the zeros of their own, begin with 0 or 2.
_OF_SHOPS = re.compile(r"0[245]|2|98[0-4]|99")
_OF_SHOPS_IN_EIGHT = re.compile(r"[02]")


def gtins_of(product: Thing | None) -> list[Gtin]:
    """Return the numbers of structured data, each once."""
    return _valid(_stated(product))


def gtins_on(page: Page, product: Thing | None, focus: Focus) -> list[Gtin]:
    """Return the numbers by the labels of the page and of structured data, else those in attributes or scripts."""
    stated = [*_labelled(page, focus), *_stated(product)]
    return _valid(stated) or _valid(_named(page, focus)) or _of_scripts(page, focus)


def _stated(product: Thing | None) -> Iterator[str]:
    for holder in (product, *product.things("offers")) if product else ():
        for name in _PROPERTIES:
            yield from holder.texts(name)
        yield from (text for text in holder.texts("productID", "identifier") if _KIND_BEFORE.match(text))


def _labelled(page: Page, focus: Focus) -> Iterator[str]:
    for value in _in_pairs(page, focus, _LABELS):
        yield value
        yield from _SEVERAL.split(value[:MAX_LINE_LENGTH])
    for node, text in page.numbered_lines:
        match = _IN_LINE.search(text) if len(text) <= MAX_LINE_LENGTH else None
        if match and not focus.elsewhere(node):
            yield match.group(1)


def _named(page: Page, focus: Focus) -> Iterator[str]:
    for node in page.named(*_GTIN_NAMES)[:MAX_NODES]:
        if _GTIN_NAME.search(page.names(node)) and not focus.elsewhere(node):
            yield from (node.get(name) or "" for name in _GTIN_ATTRIBUTES)
            yield node_text(node, MAX_TEXT_LENGTH)


def _of_scripts(page: Page, focus: Focus) -> list[Gtin]:
    """Return the number in scripts that hold the name of the product, if there is only one.

    Several are those of other products.
    """
    found = _valid(_in_scripts(page, _IN_SCRIPT, MAX_MATCHES, focus.heading_text))
    return found if len(found) == 1 else []


def _in_scripts(page: Page, pattern: re.Pattern[str], most: int, name: str | None = None) -> set[str]:
    """Return the numbers in the scripts of a page, of each the first ``most``; only of those with ``name`` in them."""
    found: set[str] = set()
    letters = letters_of(name or "")
    for script in page.scripts:
        # Structured data has been read as such.
        source = "" if script.type == JSON_LD else script.source[:MAX_SCRIPT_LENGTH]
        numbers = {match.group(1) for match in islice(pattern.finditer(source), most)}
        if numbers and letters in letters_of(_unescaped(source)):
            found |= numbers
    return found


def _unescaped(source: str) -> str:
    """Return the source of a script with the characters that its strings, or HTML in them, write as escapes."""
    return html.unescape(_ESCAPE.sub(lambda match: chr(int(match.group(1) or match.group(2), 16)), source))


def _valid(texts: Iterable[str]) -> list[Gtin]:
    found: dict[str, Gtin] = {}
    for text in texts:
        gtin = gtin_of(text[:MAX_TEXT_LENGTH])
        if gtin is not None and gtin.value.strip("0"):
            found.setdefault(gtin.value, gtin)
    return list(found.values())


def gtin_of(text: str) -> Gtin | None:
    """Return the number in a text. Numbers with letters between their digits are those of shops."""
    link = _DIGITAL_LINK.match(text)
    code = link.group(1) if link else _OTHER.sub("", text)
    label = _GTIN_LABEL.search(code)
    if label:
        rest = code[: label.start()] + code[label.end() :]
        if sum(char.isdigit() for char in rest) == int(label.group(1)):
            code = rest
    if (match := _WITH_X.fullmatch(code)) and isbn.is_valid(match.group(1)):
        return Gtin(type="isbn10", value=match.group(1).upper())
    match = _NUMBER.fullmatch(code)
    number = match.group(1) if match else ""
    kind = _kind(number)
    return Gtin(type=kind, value=number) if kind else None


def _kind(number: str) -> str | None:
    if ismn.is_valid(number):
        return "ismn"
    # Python's stdnum also takes the nine digits of its predecessor.
    if len(number) in (10, 13) and isbn.is_valid(number):
        return f"isbn{len(number)}"
    if issn.is_valid(number):
        return "issn"
    return _BY_LENGTH.get(len(number)) if ean.is_valid(number) and not _is_of_shop(number) else None


def _is_of_shop(number: str) -> bool:
    """Return whether a number with a valid check digit is from a range that shops and companies fill themselves."""
    if len(number) == 8:
        return _OF_SHOPS_IN_EIGHT.match(number) is not None
    return _OF_SHOPS.match(number.zfill(14)[1:]) is not None


# ── identifiers of a product: of the shop (sku), of the manufacturer (mpn), global ones (gtin) ──


#: Shorter codes are sizes and counts.
MIN_CODE_LENGTH: Final = 4
MAX_CODE_LENGTH: Final = 64
MAX_CODE_NODES: Final = 300
_SKU, _MPN, _MODEL = _VOCABULARY.patterns("sku", "mpn", "model", flags=re.IGNORECASE)
#: A label and a code, with or without a colon between them: ``Produkta kods 545642356``.
_LABELLED_SKU, _LABELLED_MPN = _VOCABULARY.patterns("labelled_sku", "labelled_mpn", flags=re.IGNORECASE)
_SHORT_SKU = _VOCABULARY.pattern("short_sku", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"\w[\w./+-]*(?: ?[\w./+-]+){0,3}")
#: Between the numbers of one line: ``Item # 2385458 | Mfr # DCD771C2``.
_SEPARATORS: Final = " |·•,;/()[]"
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
#: A model that is a number rather than a name: ``A60.5700-BV00X``.
_MODEL_NUMBER = re.compile(r"(?=(?:[^\d]*\d){2})(?=[^A-Z]*[A-Z])[A-Z\d][A-Z\d./+-]{4,}")
_MEASURE = re.compile(r"\d+(?:\.\d+)?([A-Z]{0,3})")
_BETWEEN_MEASURES = re.compile(r"[X/+-]")
#: Shorter numbers of a shop are in others by chance.
MIN_OWN_LENGTH: Final = 5
#: Identifiers of databases: long numbers, UUIDs. Longer ones of manufacturers have letters.
_OF_DATABASE = re.compile(r"\d{12,}|[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}", re.IGNORECASE)
_PART = re.compile(r"[^\W_]+")
_LOWER_WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]?[a-z]{3,}")
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
    shown = list(_skus(page, product, focus))
    # The numbers of variants begin with that of the product.
    whole = [code for code in (*shown, page_id) if code and any(text.startswith(f"{code}-") for text in stated)]
    skus = [*whole, *stated, *shown]
    # A code with spaces is often a name, so others precede it.
    sku = first([*(code for code in skus if " " not in code), page_id, *skus]) or first(
        _only_in_scripts(page, _SKU_IN_SCRIPT)
    )
    page.sources.chosen(
        "sku",
        sku,
        (origin(product, "sku", "offers"), lambda: first(stated)),
        ("text named or labelled so", lambda: first(shown)),
        ("number in a form or the URL", lambda: page_id),
        ("script", lambda: first(_only_in_scripts(page, _SKU_IN_SCRIPT))),
    )
    gtins = gtins_on(page, product, focus)
    stated_id = first(_codes(product.texts("productID", "productId", "identifier"))) if product else None
    of_shop = (sku, page_id, stated_id, *_codes(_stated_skus(product, all_offers=True)), *stated)
    known = [code for code in (*of_shop, *(gtin.value for gtin in gtins)) if code]
    others = {_signless(code) for code in known}
    mpns = (code for text in _mpns(page, product, focus, known) if (code := _code(text)))
    mpn = first(code for code in mpns if _is_of_manufacturer(code, others))
    return Identifiers(
        sku=sku,
        mpn=mpn,
        product_id=stated_id or page_id,
        gtin=gtins,
    )


def _stated_skus(product: Thing | None, *, all_offers: bool = False) -> Iterator[str]:
    if product is not None:
        yield from product.texts("sku")
        # The number of one variant is not that of the product.
        of_offers = [text for offer in product.things("offers") for text in offer.texts("sku")]
        yield from of_offers if all_offers or len(set(of_offers)) == 1 else ()


def _skus(page: Page, product: Thing | None, focus: Focus) -> Iterator[str]:
    """Yield candidates for the shop's number on the page, the most reliable first."""
    yield from _codes(_in_names(page, focus, _CODE_NAMES, _LABELLED_SKU))
    yield from _codes(_in_pairs(page, focus, _SKU))
    yield from _codes(_in_lines(page, focus, _LABELLED_SKU))
    yield from _short_skus(page, focus)
    if product is not None:
        yield from _codes(product.texts("productID", "productId"))
    yield from _codes(page.metas.get("product:retailer_item_id", ()))


def _short_skus(page: Page, focus: Focus) -> Iterator[str]:
    """Yield the short codes behind a label and a sign after it, or in a row of their label."""
    for text in (*_in_pairs(page, focus, _SKU), *_in_lines(page, focus, _SHORT_SKU)):
        if (
            len(text) < MIN_CODE_LENGTH
            and _DIGIT.search(text)
            and _CODE.fullmatch(text)
            and not _NO_CODE.fullmatch(text)
        ):
            yield text


def _in_names(page: Page, focus: Focus, names: Iterable[str], labelled: re.Pattern[str]) -> Iterator[str]:
    for node in page.named(*names)[:MAX_CODE_NODES]:
        if node.tag != "option" and not focus.elsewhere(node):
            yield from _codes_of_node(node, labelled)


def _in_pairs(page: Page, focus: Focus, labels: re.Pattern[str]) -> Iterator[str]:
    pairs = (pair for pair in page.labelled.of(labels) if not focus.elsewhere(pair.node))
    return (pair.value for pair in pairs if not is_voucher(page, pair.node, pair.label, pair.value))


def _in_lines(page: Page, focus: Focus, labelled: re.Pattern[str]) -> Iterator[str]:
    for node, text in page.numbered_lines:
        match = labelled.fullmatch(text.strip(_SEPARATORS)) if len(text) <= MAX_LINE_LENGTH else None
        if match and not focus.elsewhere(node) and not is_voucher(page, node, match[0][: -len(match[1])], match[1]):
            yield match.group(1)


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
    found = _in_scripts(page, pattern, MAX_CODE_NODES)
    return found if len(found) == 1 else set()


def _mpns(page: Page, product: Thing | None, focus: Focus, others: Iterable[str]) -> Iterator[str]:
    """Yield candidates for the manufacturer's number, the most reliable first. ``others``: numbers of the product."""
    stated = [*(product.texts("mpn") if product else ()), *page.metas.get("product:mfr_part_no", ())]
    # Where a page shows a number of the product, one that only structured data has is of the shop's database: of the
    # pages with labels by hand, three have one, and none of these is labelled.
    numbers = [code for code in others if len(code) >= MIN_OWN_LENGTH] if stated else []
    yield from _shown(page, stated) if any(_shown(page, numbers)) else stated
    yield from _in_pairs(page, focus, _MPN)
    yield from _in_lines(page, focus, _LABELLED_MPN)
    named = _in_names(page, focus, _MPN_NAMES, _LABELLED_MPN)
    yield from _shown(page, named) if focus.heading is not None else named
    models = [value for value in product.values("model") if isinstance(value, str)] if product else []
    yield from (code for code in (*models, *_in_pairs(page, focus, _MODEL)) if _is_model_number(code))
    yield from _only_in_scripts(page, _MPN_IN_SCRIPT)


def _is_model_number(text: str) -> bool:
    """Return whether a model is a number: neither a name nor sizes (``110V/220V``, ``1200X600MM``)."""
    if not _MODEL_NUMBER.fullmatch(text):
        return False
    parts = [_MEASURE.fullmatch(part) for part in _BETWEEN_MEASURES.split(text)]
    return not all(part and (not part.group(1) or is_count(part.group(1))) for part in parts)


def _shown(page: Page, codes: Iterable[str]) -> Iterator[str]:
    """Yield the codes that the text of a page has, with whichever signs between their parts."""
    body = page.tree.find("body")
    different = list(dict.fromkeys(islice(codes, MAX_MATCHES))) if body is not None else []
    texts = body.itertext() if different else ()
    shown = "\n".join(text for text in texts if _DIGIT.search(text))
    for code in different:
        parts = r"[\W_]{0,3}".join(_PART.findall(code[:MAX_CODE_LENGTH]))
        if parts and re.search(rf"(?<![^\W_]){parts}(?![^\W_])", shown, re.IGNORECASE):
            yield code


def _is_of_manufacturer(code: str, others: set[str]) -> bool:
    """Return whether a number may be of the manufacturer: neither the shop's own, with additions or not, nor a name.

    Shops without a manufacturer's number repeat their own, an identifier of their database or a name there.
    """
    bare = _signless(code)
    repeated = bare in others or bare.lstrip("0") in {other.lstrip("0") for other in others}
    extended = any(len(other) >= MIN_OWN_LENGTH and other.isdigit() and other in bare for other in others)
    return not (repeated or extended or _OF_DATABASE.fullmatch(code) or (" " in code and _LOWER_WORD.search(code)))


def _signless(code: str) -> str:
    """Return a code without the signs and the case that pages write in several ways: ``802.758.87``."""
    return _OTHER.sub("", code).casefold()


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

"""Global numbers of products (GTIN), books (ISBN), music (ISMN) and periodicals (ISSN), with valid check digits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from stdnum import ean, isbn, ismn, issn

from scrapy_ext.server.extraction.auto.items import Gtin
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text
from scrapy_ext.server.extraction.auto.page.markup import JSON_LD
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
_NAMES: Final = _VOCABULARY.words("gtin_names")
_NAME = _VOCABULARY.pattern("gtin_name")
_PROPERTIES: Final = ("gtin13", "gtin12", "gtin14", "gtin8", "gtin", "isbn")
_ATTRIBUTES: Final = ("content", "data-gtin", "data-ean", "data-upc", "data-barcode", "data-isbn")
_IN_SCRIPT = re.compile(
    r"""["'](?:product_?)?(?:gtin(?:8|1[234])?|ean(?:_?code|13)?|upc|isbn(?:13)?|barcode)\\*["']\s*:\s*\\*["']?(\d{12,14})\b""",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\s*[,;|/]\s*")

_OTHER = re.compile(r"[^0-9A-Za-z]")
#: A label that ends in the number of digits: ``EAN13: 7350053850019``.
_LABEL = re.compile(r"(?:isbn|ean|gtin)(8|1[0-4])", re.IGNORECASE)
_NUMBER = re.compile(r"\D*(\d+)\D*")
#: The check digit of an ISBN may be an X, which stands for ten.
_WITH_X = re.compile(r"(?:isbn)?(\d{9}x)", re.IGNORECASE)
_BY_LENGTH: Final = {8: "gtin8", 12: "upc", 13: "gtin13", 14: "gtin14"}


def gtins_of(product: Thing | None) -> list[Gtin]:
    """Return the numbers of structured data, each once."""
    return _valid(_stated(product))


def gtins_on(page: Page, product: Thing | None, focus: Focus) -> list[Gtin]:
    """Return the numbers by the labels of the page and of structured data, else those in attributes or scripts."""
    stated = [*_labelled(page, focus), *_stated(product)]
    return _valid(stated) or _valid(_named(page, focus)) or _of_scripts(page)


def _stated(product: Thing | None) -> Iterator[str]:
    for holder in (product, *product.things("offers")) if product else ():
        for name in _PROPERTIES:
            yield from holder.texts(name)


def _labelled(page: Page, focus: Focus) -> Iterator[str]:
    for pair in page.labelled.of(_LABELS):
        if not focus.elsewhere(pair.node):
            yield pair.value
            yield from _SEVERAL.split(pair.value[:MAX_LINE_LENGTH])
    for node, text in page.lines:
        match = _IN_LINE.search(text) if len(text) <= MAX_LINE_LENGTH else None
        if match and not focus.elsewhere(node):
            yield match.group(1)


def _named(page: Page, focus: Focus) -> Iterator[str]:
    for node in page.named(*_NAMES)[:MAX_NODES]:
        if _NAME.search(page.names(node)) and not focus.elsewhere(node):
            yield from (node.get(name) or "" for name in _ATTRIBUTES)
            yield node_text(node, MAX_TEXT_LENGTH)


def _of_scripts(page: Page) -> list[Gtin]:
    """Return the number in scripts, if there is only one: several are those of other products."""
    texts: set[str] = set()
    for script in page.scripts:
        # Structured data has been read as such.
        source = "" if script.type == JSON_LD else script.source[:MAX_SCRIPT_LENGTH]
        matches = _IN_SCRIPT.finditer(source)
        texts.update(match.group(1) for match in islice(matches, MAX_MATCHES))
    found = _valid(texts)
    return found if len(found) == 1 else []


def _valid(texts: Iterable[str]) -> list[Gtin]:
    found: dict[str, Gtin] = {}
    for text in texts:
        gtin = gtin_of(text[:MAX_TEXT_LENGTH])
        if gtin is not None and gtin.value.strip("0"):
            found.setdefault(gtin.value, gtin)
    return list(found.values())


def gtin_of(text: str) -> Gtin | None:
    """Return the number in a text. Numbers with letters between their digits are those of shops."""
    code = _OTHER.sub("", text)
    label = _LABEL.search(code)
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
    return _BY_LENGTH.get(len(number)) if ean.is_valid(number) else None

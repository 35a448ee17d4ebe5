"""Global numbers of products (GTIN), books (ISBN), music (ISMN) and periodicals (ISSN), with valid check digits."""

from __future__ import annotations

import re
from typing import Final

from stdnum import ean, isbn, ismn, issn

from scrapy_ext.server.extraction.auto.items import Gtin

_OTHER = re.compile(r"[^0-9A-Za-z]")
#: A label that ends in the number of digits: ``EAN13: 7350053850019``.
_LABEL = re.compile(r"(?:isbn|ean|gtin)(8|1[0-4])", re.IGNORECASE)
_NUMBER = re.compile(r"\D*(\d+)\D*")
_BY_LENGTH: Final = {8: "gtin8", 12: "upc", 13: "gtin13", 14: "gtin14"}


def gtin_of(text: str) -> Gtin | None:
    """Return the number in a text. Numbers with letters between their digits are those of shops."""
    code = _OTHER.sub("", text)
    label = _LABEL.search(code)
    if label:
        rest = code[: label.start()] + code[label.end() :]
        if sum(char.isdigit() for char in rest) == int(label.group(1)):
            code = rest
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

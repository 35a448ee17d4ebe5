"""Comparison of extracted fields with the true ones, by field.

Codes are equal without regard to case and signs; brands, headlines and names as words; prices as numbers; dates by the
day. Images are equal when their files have one name, whatever their size. Of descriptions the runs of four words count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from intervals import Outcome
from scores import shingle_scores, words

#: Sizes in the name of a file, without its ending: ``lamp_600x600``, ``lamp-1024x``, ``lamp@2x``, ``lamp_xl``.
_SIZE = re.compile(
    r"(?:[._-](?:\d{2,4}x\d{0,4}|x\d{2,4}|w?\d{3,4}w?|small|medium|large|thumb(?:nail)?|xx?l|zoom|main)|@\dx)+$"
)
_GENERAL = re.compile(r"(?:image|img|default|main|original|picture|photo|index|large|s-l\d+|\d{0,4})")
_SIGNS = re.compile(r"[\W_]+")

Truth = dict[str, list[str]]


def outcome_of(field: str, site: str, true: list[str], item: dict[str, Any]) -> Outcome | None:
    """Return how right a field is; None where it has neither a true value nor a found one."""
    found = FOUND[field](item)
    if field == "description":
        precision, recall = shingle_scores(found[0] if found else None, true[0])
        return Outcome(site, precision if found else None, recall)
    if field in {"images", "authors"}:
        return _of_several(field, site, true, found)
    if not true and not found:
        return None
    keys = {_key(field, value) for value in true}
    right = float(bool(found) and _key(field, found[0]) in keys)
    return Outcome(site, right if found else None, right if true else None)


def _of_several(field: str, site: str, true: list[str], found: list[str]) -> Outcome | None:
    keys, seen = ({_key(field, value) for value in values} - {()} for values in (true, found))
    if field == "authors" and keys and words(" ".join(true)) in {words(" ".join(found)), words(" and ".join(found))}:
        return Outcome(site, 1.0, 1.0)
    if not keys and not seen:
        return None
    both = len(keys & seen)
    # Markup with a single image leaves out the others that the page has.
    precision = both / len(seen) if seen and (field != "images" or len(keys) > 1) else None
    return Outcome(site, precision, both / len(keys) if keys else None)


def _texts(*names: str) -> Callable[[dict[str, Any]], list[str]]:
    def texts(item: dict[str, Any]) -> list[str]:
        found = [item.get(name) for name in names]
        return [value for value in found if isinstance(value, str) and value]

    return texts


def _inner(name: str, member: str) -> Callable[[dict[str, Any]], list[str]]:
    def texts(item: dict[str, Any]) -> list[str]:
        value = item.get(name) or []
        return [part[member] for part in (value if isinstance(value, list) else [value]) if part.get(member)]

    return texts


#: The extracted values of a field as texts.
FOUND: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "price": _texts("price"),
    "availability": _texts("availability"),
    "sku": _texts("sku"),
    "mpn": _texts("mpn"),
    "gtin": _inner("gtin", "value"),
    "brand": _inner("brand", "name"),
    "description": _texts("description"),
    "mainImage": _inner("mainImage", "url"),
    "images": _inner("images", "url"),
    "headline": _texts("headline"),
    "date": _texts("datePublished"),
    "authors": _inner("authors", "name"),
}


def _key(field: str, value: str) -> object:
    if field == "price":
        try:
            return Decimal(value.strip())
        except InvalidOperation:
            return value.strip()
    if field in {"brand", "headline", "authors"}:
        return words(value) or (value,)
    if field == "date":
        return value[:10]
    if field == "gtin":
        return value.strip().lstrip("0")
    if field in {"images", "mainImage"}:
        return file_key(value)
    return _SIGNS.sub("", value).casefold()


def file_key(url: str) -> str:
    """Return the name of an image's file without its size and ending; with its folder where the name is general."""
    parts = urlsplit(url)
    inner = parse_qs(parts.query).get("url") or parse_qs(parts.query).get("src")
    path = unquote(urlsplit(inner[0]).path if inner else parts.path).lower()
    segments = [segment for segment in path.split("/") if segment] or [""]
    name = _SIZE.sub("", segments[-1].partition("._")[0].rpartition(".")[0] or segments[-1])
    return "/".join([*segments[-2:-1], name]) if _GENERAL.fullmatch(name) else name

"""Conversion of what a rule found into values of the schema, by the parsers of automatic extraction.

A text that is no value of its type is refused, with the text in the message: a wrong value is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from lxml.html import HtmlElement

from scrapy_ext.api.extraction.extract_rules import AVAILABILITIES, ValueType
from scrapy_ext.server.extraction.auto.fields import dates
from scrapy_ext.server.extraction.auto.fields.breadcrumbs import MAX_BREADCRUMBS, trail_of
from scrapy_ext.server.extraction.auto.fields.bylines import names_in
from scrapy_ext.server.extraction.auto.fields.images import MAX_IMAGES, of_nodes
from scrapy_ext.server.extraction.auto.fields.price_notation import CODES, code_of, place_on
from scrapy_ext.server.extraction.auto.fields.prices import currency_in, from_markup, prices_in
from scrapy_ext.server.extraction.auto.items import Breadcrumb, as_dict
from scrapy_ext.server.extraction.auto.jobs.terms import salary_in
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.text import layout_text, lines, shown_text
from scrapy_ext.server.extraction.auto.products.identifiers import gtin_of
from scrapy_ext.server.extraction.auto.products.offers import availability_of

#: Parts of a value that one rule may find.
MAX_PARTS: Final = 500
#: Longest value that is no text with line breaks, in characters.
MAX_TEXT: Final = 2_000
#: Longest text with line breaks, in characters.
MAX_LINES: Final = 1_000_000
_SHOWN: Final = 80
_IMAGE_PATH: Final = re.compile(r"\.(?:avif|bmp|gif|jpe?g|png|svg|tiff?|webp)$", re.IGNORECASE)
_WHOLE: Final = re.compile(r"\d{1,9}")
_RATING: Final = re.compile(r"(\d{1,3}(?:[.,]\d{1,4})?)(?:\s?/\s?(\d{1,3}))?")


class Origin(Enum):
    """Part of a page or a rule that a text was read from."""

    ELEMENT = auto()
    TEXT_NODE = auto()
    #: Its value is written for machines.
    ATTRIBUTE = auto()
    #: What a pattern matched in a text that is not an attribute.
    MATCH = auto()
    CONSTANT = auto()


class Piece(NamedTuple):
    """Text that a rule found, and the element in which it stands, None for a constant."""

    text: str
    node: HtmlElement | None = None
    origin: Origin = Origin.CONSTANT

    @property
    def element(self) -> HtmlElement | None:
        """The element, if its whole was found."""
        return self.node if self.origin is Origin.ELEMENT else None

    @property
    def is_shown(self) -> bool:
        """True for a text of the page for readers."""
        return self.origin in (Origin.ELEMENT, Origin.TEXT_NODE)


class NoValueError(Exception):
    """The text that was found is no value of the field; the message says why: ``is no price``."""

    def __init__(self, text: str, fault: str) -> None:
        shown = one_line(text)
        shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
        super().__init__(f"found {repr(shown) if shown else 'an element without a text'}, which {fault}")


class Converted(NamedTuple):
    """A value, and those of fields beside it that were read from the same text, None for one to remove."""

    value: Any
    beside: Mapping[str, str | None] = {}
    #: Currency that was read with a price whose currency is that of the item.
    currency: str | None = None


def converted(page: Page, field: str, kind: ValueType, pieces: Sequence[Piece]) -> Converted:
    """Return the value of a field; raises :class:`NoValueError`."""
    if kind in (ValueType.PRICE, ValueType.CURRENCY, ValueType.DATE):
        return _WITH_RAW[kind](page, field, pieces[0])
    if (of_list := _OF_LISTS.get(kind)) is not None:
        found = of_list(page, pieces)
        return Converted(found) if found else _refused(pieces, kind)
    if kind is ValueType.LINES:
        return _joined_lines(pieces)
    text = _bounded(" ".join(filter(None, (one_line(piece.text) for piece in pieces))))
    value = _OF_TEXTS[kind](page, text, pieces[0])
    if value is None:
        raise NoValueError(text, f"is no {kind.value}")
    return Converted(value)


def _joined_lines(pieces: Sequence[Piece]) -> Converted:
    if sum(len(piece.text) for piece in pieces) > MAX_LINES:
        raise NoValueError(pieces[0].text, f"has over {MAX_LINES} characters in all")
    text = "\n\n".join(filter(None, map(_lines, pieces)))
    return Converted(text) if text else _refused(pieces, ValueType.LINES)


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise NoValueError(text, f"is no text of {MAX_TEXT} characters at most")
    return text


def _refused(pieces: Sequence[Piece], kind: ValueType) -> Converted:
    raise NoValueError(pieces[0].text, f"is no {kind.value}")


# ── values with what they were read from ──


def _price(page: Page, field: str, piece: Piece) -> Converted:
    place, text = place_on(page), one_line(piece.text)
    money = from_markup(text, place) if piece.origin in (Origin.ATTRIBUTE, Origin.CONSTANT) else None
    if money is None:
        found = prices_in(text, place)
        money = (found.regular or found.price) if field == "regularPrice" else found.price
    if money is None:
        raise NoValueError(text, f"is no {ValueType.PRICE.value}")
    code = code_of(money.currency_raw, place)
    if field != "price":
        return Converted(money.amount, currency=code)
    # A currency that the page states elsewhere belongs to its own price.
    return Converted(money.amount, {"currency": code, "currencyRaw": money.currency_raw} if code else {})


def _currency(page: Page, _field: str, piece: Piece) -> Converted:
    text = one_line(piece.text)
    raw = text if text in CODES else currency_in(text) or text
    code = code_of(raw, place_on(page))
    if code is None:
        raise NoValueError(text, f"is no {ValueType.CURRENCY.value}")
    return Converted(code, {"currencyRaw": raw})


def _date(page: Page, field: str, piece: Piece) -> Converted:
    text = one_line(piece.text)
    stated = piece.node.get("datetime") if piece.node is not None and piece.is_shown else None
    found = (dates.read(stated, page) if stated else None) or dates.read(text, page)
    if found is None:
        raise NoValueError(text, f"is no {ValueType.DATE.value}")
    return Converted(found.iso, {f"{field}Raw": text or found.raw})


_WITH_RAW: Final[Mapping[ValueType, Callable[[Page, str, Piece], Converted]]] = {
    ValueType.PRICE: _price,
    ValueType.CURRENCY: _currency,
    ValueType.DATE: _date,
}


# ── values of one text ──


def _availability(_page: Page, text: str, _piece: Piece) -> str | None:
    return text if text in AVAILABILITIES else availability_of(text)


def _number(_page: Page, text: str, _piece: Piece) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) and text.isascii() else None


def _rating(_page: Page, text: str, _piece: Piece) -> dict[str, float] | None:
    match = _RATING.fullmatch(text)
    if match is None:
        return None
    rating = {"bestRating": float(match[2])} if match[2] else {}
    return {**rating, "ratingValue": float(match[1].replace(",", "."))}


def _url(page: Page, text: str, piece: Piece) -> str | None:
    if piece.element is None:
        return page.link(text)
    reference = _reference(piece)
    if not reference:
        raise NoValueError(text, "has no address")
    return page.link(reference)


def _link(page: Page, text: str, piece: Piece) -> dict[str, str] | None:
    url = _url(page, text, piece)
    if url is None:
        return None
    return {"url": url, "method": "GET", **({"name": text} if text and piece.is_shown else {})}


def _image(page: Page, _text: str, piece: Piece) -> dict[str, str] | None:
    found = _image_urls(page, piece)
    return {"url": found[0]} if found else None


def _salary(page: Page, text: str, _piece: Piece) -> dict[str, Any] | None:
    found = salary_in(text, place_on(page))
    return as_dict(found) if found is not None else None


_OF_TEXTS: Final[Mapping[ValueType, Callable[[Page, str, Piece], Any]]] = {
    ValueType.TEXT: lambda _page, text, _piece: text or None,
    ValueType.AVAILABILITY: _availability,
    ValueType.NUMBER: _number,
    ValueType.RATING: _rating,
    ValueType.URL: _url,
    ValueType.LINK: _link,
    ValueType.IMAGE: _image,
    ValueType.NAMED: lambda _page, text, _piece: {"name": text} if text else None,
    ValueType.PLACE: lambda _page, text, _piece: {"raw": text} if text else None,
    ValueType.ORGANIZATION: lambda _page, text, _piece: {"name": text, "nameRaw": text} if text else None,
    ValueType.SALARY: _salary,
}


# ── values of several elements ──


def _links(page: Page, pieces: Sequence[Piece]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for piece in _with_addresses(pieces):
        link = _link(page, one_line(piece.text), piece)
        if link is not None:
            found.setdefault(link["url"], link)
    return list(found.values())


def _images(page: Page, pieces: Sequence[Piece]) -> list[dict[str, str]]:
    urls = dict.fromkeys(url for piece in pieces for url in _image_urls(page, piece))
    return [{"url": url} for url in list(urls)[:MAX_IMAGES]]


def _media(page: Page, pieces: Sequence[Piece]) -> list[dict[str, str]]:
    found = (_url(page, one_line(piece.text), piece) for piece in _with_addresses(pieces))
    return [{"url": url} for url in dict.fromkeys(filter(None, found))]


def _with_addresses(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Return the pieces without elements that have no address, unless none is left."""
    return [piece for piece in pieces if piece.element is None or _reference(piece)] or pieces


def _texts(_page: Page, pieces: Sequence[Piece]) -> list[str]:
    return [text for piece in pieces if (text := _bounded(one_line(piece.text)))]


def _authors(page: Page, pieces: Sequence[Piece]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for piece in pieces:
        raw = one_line(piece.text)
        names = names_in(raw)
        url = page.link(_reference(piece)) if len(names) == 1 else None
        for name in names:
            found.setdefault(name.casefold(), {"name": name, "nameRaw": raw, **({"url": url} if url else {})})
    return list(found.values())


def _breadcrumbs(page: Page, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    if len(pieces) == 1 and (node := pieces[0].element) is not None and len(node):
        trail = [
            Breadcrumb(name=one_line(crumb.name) or None, url=page.link(crumb.url))
            for crumb in trail_of(node, page.base_url)
            if crumb.name
        ]
    else:
        trail = [
            Breadcrumb(name=name, url=page.link(_reference(piece)))
            for piece in pieces
            if (name := _bounded(one_line(piece.text)))
        ]
    return [as_dict(crumb) for crumb in trail[:MAX_BREADCRUMBS]]


def _gtins(_page: Page, pieces: Sequence[Piece]) -> list[dict[str, str]]:
    found = [gtin for piece in pieces if (gtin := gtin_of(one_line(piece.text)[:_SHOWN])) is not None]
    return [as_dict(gtin) for gtin in found]


_OF_LISTS: Final[Mapping[ValueType, Callable[[Page, Sequence[Piece]], list[Any]]]] = {
    ValueType.LINKS: _links,
    ValueType.IMAGES: _images,
    ValueType.MEDIA: _media,
    ValueType.TEXTS: _texts,
    ValueType.AUTHORS: _authors,
    ValueType.BREADCRUMBS: _breadcrumbs,
    ValueType.GTIN: _gtins,
}


# ── parts of elements ──


def text_of(node: HtmlElement, kind: ValueType) -> str:
    """Return the text of an element that is read for a type: what it shows, or the content of a ``<meta>``."""
    if node.tag in ("meta", "data", "input"):
        return node.get("content") or node.get("value") or ""
    if kind is ValueType.LINES:
        return layout_text(node)
    return shown_text(node, MAX_TEXT + 1)


def _lines(piece: Piece) -> str:
    return piece.text.strip() if piece.is_shown else lines(piece.text)


def _reference(piece: Piece) -> str | None:
    """Return the address that an element leads to; of a link in it, if it is none."""
    if piece.element is None:
        return None
    for node in (piece.element, next(piece.element.iter("a", "source"), None)):
        if node is not None and (reference := node.get("href") or node.get("src") or node.get("content")):
            return str(reference)
    return None


def _image_urls(page: Page, piece: Piece) -> list[str]:
    node = piece.element
    if node is None:
        return [url] if (url := page.link(one_line(piece.text))) else []
    reference = node.get("content")
    # Most links around images lead to pages.
    if not reference and (node.tag == "link" or _IMAGE_PATH.search(_path(page.link(node.get("href"))))):
        reference = node.get("href")
    if reference:
        return [url] if (url := page.link(reference)) else []
    chosen = [node] if node.tag == "img" else list(node.iter("img"))[:MAX_IMAGES]
    return [image.url for image in of_nodes(page, chosen)]


def _path(url: str | None) -> str:
    return urlsplit(url).path if url else ""

"""Breadcrumbs of a page: of its structured data, else links and texts of an element, with separators between them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import urljoin

import html_text
from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.items import Breadcrumb
from scrapy_ext.server.extraction.auto.page import Page, Thing, one_line
from scrapy_ext.server.extraction.auto.page.markup import text_of

MAX_DEPTH: Final = 10
#: Lists with such a class are menus beside the trail.
_MENU_CLASSES: Final = ("dropdown", "actions")
#: Types of markup whose elements are breadcrumbs.
_MARKED: Final = ("data-vocabulary.org/breadcrumb", "listitem")

#: Characters that separate breadcrumbs: these, those of mathematics (``>``, ``|``, ``→``), dashes, and the arrows,
#: lines and shapes among other symbols. Letters of Inuktitut serve as triangles.
_SEPARATORS: Final = frozenset("/\\⁄.,:•·‣«»‹›¦ᐊᐅᐸᐳ〈〉《》⟨⟩⟪⟫❬❭❮❯❰❱⦉⦊⫷⫸⧼⧽")
_FIRST_SYMBOL, _LAST_SYMBOL = "\u2190", "\u2bff"


class Crumb(NamedTuple):
    name: str | None
    url: str | None


class _Piece(NamedTuple):
    """A link or a text."""

    text: str
    url: str | None
    #: Whether it is in an element that markup calls a breadcrumb, and whether it is in an item of a list.
    marked: bool
    listed: bool


@dataclass
class _Entry:
    crumb: Crumb
    marked: bool
    listed: bool
    #: The separator that follows.
    separator: str | None


def trail_of(node: HtmlElement, base_url: str) -> list[Crumb]:
    """Return the breadcrumbs in an element."""
    entries = _entries(_pieces(node, base_url, 0, in_list=False, marked=False))
    if len(entries) == 1 and (name := entries[0].crumb.name) and not entries[0].crumb.url:
        return [Crumb(part, None) for part in _split(name)]
    crumbs = [entry.crumb for entry in _of_trail(entries)]
    return _without_way_back(crumbs)


def _pieces(node: HtmlElement, base_url: str, depth: int, *, in_list: bool, marked: bool) -> Iterator[_Piece]:
    """Yield the links, the elements without children, and the texts behind elements."""
    if not isinstance(node.tag, str) or node.tag == "button":
        return
    if node.tag == "a" or len(node) == 0:
        text = html_text.extract_text(node, guess_layout=False) or (node.get("title") or "").strip()
        yield _Piece(text, _address(node, base_url), marked, in_list)
        return
    is_list = node.tag in ("ul", "ol")
    if depth >= MAX_DEPTH or (is_list and (in_list or _is_menu(node))):
        return
    kind = f"{node.get('itemtype', '')} {node.get('typeof', '')}".lower()
    marked = marked or any(name in kind for name in _MARKED)
    for child in node:
        yield from _pieces(child, base_url, depth + 1, in_list=in_list or is_list, marked=marked)
        yield _Piece(child.tail or "", None, marked, in_list)


def _is_menu(node: HtmlElement) -> bool:
    classes = "".join(char for char in node.get("class", "").lower() if char.isalnum() or char.isspace())
    return any(name in classes for name in _MENU_CLASSES)


def _address(node: HtmlElement, base_url: str) -> str | None:
    address: str = (node.get("href") or node.get("data-url") or "").strip()
    if not address or address.lower().startswith(("javascript:", "#")):
        return None
    try:
        return urljoin(base_url, address)
    except ValueError:
        return None


def _entries(pieces: Iterator[_Piece]) -> list[_Entry]:
    """Return the breadcrumbs among pieces, each with the separator between it and the next."""
    entries: list[_Entry] = []
    for piece in pieces:
        words = piece.text.split()
        before = words.pop(0) if words and _is_separator(words[0]) else None
        after = words.pop() if words and _is_separator(words[-1]) else None
        if before and entries and not entries[-1].separator:
            entries[-1].separator = before
        if words or piece.url:
            entries.append(_Entry(Crumb(" ".join(words) or None, piece.url), piece.marked, piece.listed, after))
    return entries


def _is_separator(word: str) -> bool:
    return all(
        char in _SEPARATORS
        or (category := unicodedata.category(char)) in ("Sm", "Pd")
        or (category == "So" and _FIRST_SYMBOL <= char <= _LAST_SYMBOL)
        for char in word
    )


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a text between separators."""
    part: list[str] = []
    for word in [*text.split(), "/"]:
        if not _is_separator(word):
            part.append(word)
        elif part:
            yield " ".join(part)
            part = []


def _of_trail(entries: Sequence[_Entry]) -> list[_Entry]:
    """Return the entries that are marked, or else have the most frequent separator beside them.

    Of a list they are all its items, which need no separator.
    """
    marked = [index for index, entry in enumerate(entries) if entry.marked]
    if marked:
        # Those before and behind are often the home page and the page itself, which need no markup.
        ends = (marked[0] - 1, marked[-1] + 1)
        return [entry for index, entry in enumerate(entries) if entry.marked or index in ends]
    separators = Counter(entry.separator for entry in entries if entry.separator)
    if not separators:
        return list(entries)
    ((main, _),) = separators.most_common(1)
    befores = [None, *(entry.separator for entry in entries)]
    pairs = list(zip(entries, befores, strict=False))
    is_list = any(entry.listed and entry.separator == main for entry in entries)
    return [entry for entry, before in pairs if main in (entry.separator, before) or (is_list and entry.listed)]


def _without_way_back(crumbs: list[Crumb]) -> list[Crumb]:
    """Leave out a link back to the page before, which stands at one end and has the address of another breadcrumb."""
    if len(crumbs) < 2:
        return crumbs
    first, *rest = crumbs
    if first.url and any(crumb.url == first.url for crumb in rest):
        return rest
    *rest, last = crumbs
    if last.url and any(crumb.url == last.url for crumb in rest[1:]):
        return rest
    return crumbs


MAX_BREADCRUMBS: Final = 20
#: Longer texts are not names of sections.
MAX_NAME_LENGTH: Final = 200
_TRAIL_NAMES: Final = ("breadcrumb", "bread-crumb", "crumbs")
MAX_NODES: Final = 20
#: A part with more links is a menu.
MAX_LINKS: Final = 60


def breadcrumbs_of(page: Page) -> list[Breadcrumb] | None:
    """Return the longest breadcrumb trail of the structured data, else of the part named so."""
    trails = [_of_thing(page, thing) for thing in page.markup.all("BreadcrumbList")]
    if not any(trails):
        trails = [_of_node(page, node) for node in _nodes(page)]
    return max(trails, key=len, default=[]) or None


def _of_thing(page: Page, thing: Thing) -> list[Breadcrumb]:
    entries = [(_position(entry, index), entry) for index, entry in enumerate(thing.things("itemListElement"))]
    trail = []
    for _, entry in sorted(entries, key=lambda pair: pair[0]):
        name, url = _name_and_url(page, entry)
        if name or url:
            trail.append(Breadcrumb(name=name, url=url))
    return trail[:MAX_BREADCRUMBS]


def _position(entry: Thing, index: int) -> float:
    try:
        return float(entry.text("position") or index)
    except ValueError:
        return index


def _name_and_url(page: Page, entry: Thing) -> tuple[str | None, str | None]:
    name, reference = entry.text("name"), None
    for item in entry.values("item"):
        if isinstance(item, Thing):
            name = name or item.text("name", "title")
            reference = item.id or item.text("url", "@id")
        else:
            # For an item that is no entity of its own, microdata has its text, JSON-LD its address.
            reference = text_of(item)
    reference = reference or entry.text("url") or entry.id
    return one_line(name)[:MAX_NAME_LENGTH] or None, page.link(reference)


def _nodes(page: Page) -> Iterator[HtmlElement]:
    named = page.named(*_TRAIL_NAMES)[:MAX_NODES]
    labelled = [node for node, label in page.with_label("nav", "ol", "ul") if "breadcrumb" in label]
    for node in [*named, *labelled[:MAX_NODES]]:
        if node.tag not in {"body", "html", "main", "header"}:
            yield node


def _of_node(page: Page, node: HtmlElement) -> list[Breadcrumb]:
    if len(list(islice(node.iter("a"), MAX_LINKS + 1))) > MAX_LINKS:
        return []
    trail = [
        Breadcrumb(name=one_line(crumb.name) or None, url=page.link(crumb.url))
        for crumb in trail_of(node, page.base_url)
        if crumb.name and len(crumb.name) <= MAX_NAME_LENGTH
    ]
    # One link is no trail, and more are a menu.
    return trail if 2 <= len(trail) <= MAX_BREADCRUMBS else []

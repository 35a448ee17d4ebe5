"""Breadcrumbs in an element that holds them: links and texts in the order of the page, with separators between them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urljoin

import html_text
from lxml.html import HtmlElement

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
    #: Whether it is in an element that markup calls a breadcrumb.
    marked: bool


@dataclass
class _Entry:
    crumb: Crumb
    marked: bool
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
        yield _Piece(text, _address(node, base_url), marked)
        return
    is_list = node.tag in ("ul", "ol")
    if depth >= MAX_DEPTH or (is_list and (in_list or _is_menu(node))):
        return
    kind = f"{node.get('itemtype', '')} {node.get('typeof', '')}".lower()
    marked = marked or any(name in kind for name in _MARKED)
    for child in node:
        yield from _pieces(child, base_url, depth + 1, in_list=in_list or is_list, marked=marked)
        yield _Piece(child.tail or "", None, marked)


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
            entries.append(_Entry(Crumb(" ".join(words) or None, piece.url), piece.marked, after))
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
    """Return the entries that are marked, or else have the most frequent separator beside them."""
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
    return [entry for entry, before in zip(entries, befores, strict=False) if main in (entry.separator, before)]


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

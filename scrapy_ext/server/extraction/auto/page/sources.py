"""Choice among the candidates for a field, and the sources of the fields of items (``fieldSources``).

An extractor that tries several places for a field names each of them, and the place that had the value is recorded.
For other fields the places of the page are searched afterwards, the most reliable first, for exactly their value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.text import one_line

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.markup import Thing
    from scrapy_ext.server.extraction.auto.page.page import Page


def now() -> str:
    """Return the current time in UTC, in the format of metadata."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


T = TypeVar("T")


def lowest(scored: Iterable[tuple[float, T]]) -> T | None:
    """Return the candidate with the lowest score, such as the distance from the heading; the first of equals."""
    return min(scored, key=itemgetter(0), default=(0.0, None))[1]


def highest(scored: Iterable[tuple[float, T]]) -> T | None:
    """Return the candidate with the highest score; the first of equals."""
    return max(scored, key=itemgetter(0), default=(0.0, None))[1]


#: Bounds of the search for a value whose source was not recorded.
MAX_THINGS: Final = 300
MAX_DEPTH: Final = 4
MAX_LINES: Final = 5_000
#: Fields that are not from the page.
_OURS: Final = frozenset({"metadata"})
#: Only the beginning of longer values is compared.
KEY_LENGTH: Final = 200


class Sources:
    """The sources of the fields of one item, by field."""

    def __init__(self) -> None:
        self.noted: dict[str, str] = {}

    def first(self, field: str, *candidates: tuple[str, Callable[[], T | None]]) -> T | None:
        """Return the first value that is not empty, and record the name of its source for the field."""
        for name, value_of in candidates:
            value = value_of()
            if value:
                self.noted[field] = name
                return value
        return None

    def note(self, field: str, source: str) -> None:
        self.noted[field] = source

    def of_item(self, page: Page, item: dict[str, Any]) -> dict[str, str]:
        """Return the known sources of the fields of an item that have a value."""
        places = _Places(page)
        found = {}
        for field, value in item.items():
            if field in _OURS:
                continue
            # The source of a parsed value is that of its raw text.
            source = self.noted.get(field) or places.of(item.get(f"{field}Raw")) or places.of(value)
            if source:
                found[field] = source
        return found


def origin(thing: Thing | None, *names: str) -> str:
    """Return the name of a property of structured data as a source: ``json-ld offers``."""
    if thing is None:
        return "markup"
    name = next((name for name in names if thing.properties.get(name)), names[0])
    return f"{thing.syntax} {name}"


class _Places:
    """Index of the places of a page by their value, the most reliable first, built at the first search."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._by_value: dict[str, str] | None = None

    def of(self, value: object) -> str | None:
        if isinstance(value, dict):
            parts = (inner for name, inner in value.items() if name not in _OURS)
            return next((source for inner in parts if (source := self.of(inner))), None)
        if isinstance(value, list):
            return self.of(value[0]) if value else None
        key = _key(str(value)) if isinstance(value, str | int | float) else ""
        if not key:
            return None
        if self._by_value is None:
            self._by_value = {}
            for place, held in self._all():
                self._by_value.setdefault(_key(held), place)
        return self._by_value.get(key)

    def _all(self) -> Iterator[tuple[str, str]]:
        page = self._page
        yield "url of the page", page.url
        if page.canonical_url:
            yield "link canonical", page.canonical_url
        for thing in page.markup.all()[:MAX_THINGS]:
            yield from _of_thing(thing, "/".join(sorted(thing.types)), MAX_DEPTH)
        for name, contents in page.metas.items():
            for content in contents[:1]:
                yield f"meta {name}", content
        yield "title", page.title or ""
        yield "html lang", page.language or ""
        for node, text in page.lines[:MAX_LINES]:
            yield _called(node), text
        for node in islice(page.tree.iter("time"), MAX_LINES):
            yield _called(node), node.get("datetime") or ""
        for node in islice(page.tree.iter("a", "img"), MAX_LINES):
            yield _called(node), page.link(node.get("href") or node.get("src")) or ""


def _called(node: HtmlElement) -> str:
    names = (node.get("itemprop") or node.get("class") or "").split()[:1]
    return ".".join((str(node.tag), *names))[:80]


def _key(text: str) -> str:
    return one_line(text[: 4 * KEY_LENGTH])[:KEY_LENGTH]


def _of_thing(thing: Thing, path: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, values in thing.properties.items():
        for value in values[:3]:
            if isinstance(value, str):
                yield f"{thing.syntax} {path}.{name}", value
            elif depth > 0:
                yield from _of_thing(value, f"{path}.{name}", depth - 1)

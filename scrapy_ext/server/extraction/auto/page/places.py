"""Places of a value in a page: where its source has it, and the element that shows it to a reader."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any, Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.text import node_text, one_line

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.markup import Thing
    from scrapy_ext.server.extraction.auto.page.page import Page

#: Bounds of the search.
MAX_THINGS: Final = 300
MAX_DEPTH: Final = 4
MAX_LINES: Final = 5_000
MAX_HEADINGS: Final = 200
#: Only the beginning of longer values is compared.
KEY_LENGTH: Final = 200
#: Members of an object that a reader sees, as the page writes them first.
_SHOWN_MEMBERS: Final = ("raw", "nameRaw", "value", "name", "text", "ratingValue", "url")
#: Entries of a list that are searched.
MAX_ENTRIES: Final = 30
#: Elements in that of a list for each of its entries.
MAX_AROUND: Final = 30
#: Longest text or URL that is searched.
LONGEST: Final = 2_000
#: Attributes of an image.
MAX_ATTRIBUTES: Final = 20
#: Shorter texts are only found where they are a whole line.
SHORTEST_PART: Final = 3
#: The share of a line that a text without digits has in it; in a longer one, it is a part of another value.
MOST_OF_LINE: Final = 0.5
#: Lines with a text that are compared, from the first, and searches of all lines for one page.
MAX_PARTS: Final = 50
MAX_SEARCHES: Final = 300
#: Elements without a place of their own in the page.
_UNSEEN: Final = frozenset({"head", "title", "meta", "link", "base", "option", "datalist"})
#: Fields that are not from the page.
OURS: Final = frozenset({"metadata"})


class Places:
    """Index of the sources of a page by their value, the most reliable first, built at the first search."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def of(self, value: object) -> str | None:
        """Return the name of the first source with exactly this value, or with the first known part of it."""
        if isinstance(value, dict):
            parts = (inner for name, inner in value.items() if name not in OURS)
            return next((source for inner in parts if (source := self.of(inner))), None)
        if isinstance(value, list):
            return self.of(value[0]) if value else None
        key = _key(str(value)) if isinstance(value, str | int | float) else ""
        return self._by_value.get(key) if key else None

    @cached_property
    def _by_value(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, held in self._all():
            found.setdefault(_key(held), name)
        return found

    def _all(self) -> Iterator[tuple[str, str]]:
        page = self._page
        yield "url of the page", page.url
        if page.canonical_url:
            yield "link canonical", page.canonical_url
        for thing in page.markup.all()[:MAX_THINGS]:
            yield from _of_thing(thing, type_names(thing), MAX_DEPTH)
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


def type_names(thing: Thing) -> str:
    """Return the types of an entity as the beginning of a source: ``Product``."""
    return "/".join(sorted(thing.types))


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


class Shown:
    """Index of the visible elements of a page by their text, built at the first search.

    Of several elements with a text, the one nearest to the first ``<h1>`` is found.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._searches = 0

    def element(self, value: Any) -> HtmlElement | None:
        """Return the element that shows a value; of a list, the smallest one with its entries."""
        if isinstance(value, list):
            found = [node for each in value[:MAX_ENTRIES] if (node := self.element(each)) is not None]
            return self._common(found) if found else None
        if isinstance(value, dict):
            parts = (value[name] for name in _SHOWN_MEMBERS if value.get(name))
            return next((node for each in parts if (node := self.element(each)) is not None), None)
        if isinstance(value, tuple):
            return next((node for each in value if (node := self.element(each)) is not None), None)
        if isinstance(value, float):
            value = f"{value:g}"
        text = one_line(str(value)).casefold() if isinstance(value, str | int) else ""
        if not text or len(text) > LONGEST:
            return None
        position = self._by_text.get(text)
        if position is None and SHORTEST_PART <= len(text) <= KEY_LENGTH:
            position = self._with_part(text)
        return None if position is None else self._page.elements[position]

    def is_visible(self, node: HtmlElement) -> bool:
        """Return whether an element is shown, as far as that is known."""
        position = self._page.order.get(node)
        return position is not None and self._is_visible(position)

    def _is_visible(self, position: int) -> bool:
        boxes = self._page.boxes
        measured = boxes is not None and boxes.is_complete
        return position not in self._unseen and (not measured or self._page.elements[position] in (boxes or ()))

    @cached_property
    def _unseen(self) -> frozenset[int]:
        """The positions of hidden elements, and of those of the head."""
        outline, ends = self._page.outline, self._page.outline.ends
        unseen = (position for position, tag in enumerate(outline.tags) if tag in _UNSEEN)
        found: set[int] = set()
        for position in sorted(chain(unseen, self._page.unshown)):
            # Those inside of one that is known are known as well.
            if position not in found:
                found.update(range(position, ends[position]))
        return frozenset(found)

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        page = self._page
        found = [(page.order[node], text) for node, text in page.lines[:MAX_LINES]]
        headings = islice(page.tree.iter("h1", "h2", "h3"), MAX_HEADINGS)
        found += [(page.order[node], node_text(node, KEY_LENGTH + 1)) for node in headings]
        shown: list[tuple[int, str]] = []
        for position, text in sorted(found):
            if not text or not self._is_visible(position):
                continue
            # Of an element and the one in it with all of its text, the inner one shows it.
            if shown and shown[-1][1] == text.casefold() and page.outline.ends[shown[-1][0]] > position:
                shown.pop()
            shown.append((position, text.casefold()))
        return shown

    @cached_property
    def _heading(self) -> int:
        heading = next(self._page.tree.iter("h1"), None)
        return self._page.order[heading] if heading is not None else 0

    def _far(self, position: int) -> int:
        return abs(position - self._heading)

    @cached_property
    def _by_text(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for position, text in (*self._lines, *self._attributes()):
            if text not in found or self._far(position) < self._far(found[text]):
                found[text] = position
        return found

    def _attributes(self) -> Iterator[tuple[int, str]]:
        page = self._page
        for node in islice(page.tree.iter("time", "img"), MAX_LINES):
            if not self._is_visible(position := page.order[node]):
                continue
            is_image = node.tag == "img"
            # The address of the large image, or of one that is not loaded yet, is in an attribute of any name.
            held = islice(node.values(), MAX_ATTRIBUTES) if is_image else [node.get("datetime")]
            for text in held:
                if text and len(text) <= LONGEST and (shown := page.link(text) if is_image else text):
                    yield position, one_line(shown).casefold()

    @cached_property
    def _joined(self) -> tuple[str, list[int]]:
        """The lines as one text, which is searched many times faster than each of them, and their ends in it."""
        rows = [f"{text.replace(chr(10), ' ')}\n" for _, text in self._lines]
        return "".join(rows), list(accumulate(map(len, rows)))

    def _with_part(self, text: str) -> int | None:
        """Return the element of the shortest line with a text that is not a part of a word or number there."""
        self._searches += 1
        if self._searches > MAX_SEARCHES:
            return None
        whole, ends = self._joined
        found: list[tuple[int, int, int]] = []
        at = whole.find(text)
        for _ in range(MAX_PARTS):
            if at < 0:
                break
            if _stands_alone(whole, at, at + len(text)):
                position, line = self._lines[bisect_right(ends, at)]
                if len(text) >= MOST_OF_LINE * len(line) or any(map(str.isdigit, text)):
                    found.append((len(line), self._far(position), position))
            at = whole.find(text, at + len(text))
        return min(found)[2] if found else None

    def _common(self, nodes: list[HtmlElement]) -> HtmlElement:
        """Return the smallest element around several; the first of them where that has much else in it."""
        outline, order = self._page.outline, self._page.order
        positions = [order[node] for node in nodes]
        around = next(box for box in outline.around(min(positions)) if outline.ends[box] > max(positions))
        is_wide = outline.ends[around] - around > MAX_AROUND * len(nodes)
        return nodes[0] if is_wide or outline.tags[around] in {"html", "body"} else outline.nodes[around]


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before[-1:].isalnum() or after[:1].isalnum():
        return False
    # ``4.5`` is no part of ``14.50``, nor ``20`` of ``20.99``.
    is_fraction = after[:1] in ".,:" and after[1:].isdigit()
    return not is_fraction and not (before[-1:] in ".,:" and before[:1].isdigit() and text[start].isdigit())

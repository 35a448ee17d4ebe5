"""Page model: everything that the extractors read of a page, each part made once and only when it is needed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate, chain
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.labelled import LabelledPairs
from scrapy_ext.server.extraction.auto.page.layout import between_landmarks
from scrapy_ext.server.extraction.auto.page.markup import Markup, Thing
from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.panels import panels_of
from scrapy_ext.server.extraction.auto.page.parsing import parsed
from scrapy_ext.server.extraction.auto.page.sources import Sources
from scrapy_ext.server.extraction.auto.page.styles import (
    Boxes,
    ComputedStyles,
    Displays,
    displays_of,
    take_boxes,
    take_displays,
    take_styles,
)
from scrapy_ext.server.extraction.auto.page.text import node_text, one_line
from scrapy_ext.server.extraction.auto.page.urls import absolute, bare

#: Longer texts are not lines but prose.
MAX_LINE_LENGTH: Final = 200
#: Longer texts with digits are prose.
MAX_NUMBERED_LENGTH: Final = 400

_NO_LINE: Final = frozenset({"html", "head", "body", "title", "option", "select", "textarea", "meta", "link", "base"})
_NAMES_OF_TESTS: Final = frozenset({
    "data-testid", "data-test", "data-test-id", "data-qa", "data-qa-qualifier", "data-automation-id", "data-hook",
})  # fmt: skip
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
#: Dates in numbers, in lines of this length at most, whose order one of several may show.
_DATE_IN_NUMBERS = re.compile(r"(?<!\d)(\d\d?)([-/])(\d\d?)\2(?:19|20)\d\d(?!\d)")
MAX_DATE_LINE_LENGTH: Final = 40
#: Months of a year.
_MONTHS: Final = 12
_LANGUAGE = re.compile(r"[a-z]{2,3}(?=$|[-_])")
_LANGUAGE_CODE = re.compile(r"[a-z]{2}(?=$|[-_])")


class _Rows:
    """Rows of text to search in. They are joined, as one long text is searched many times faster than row by row."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows
        self._text = "\n".join([*(row.replace("\n", " ") for row in rows), ""])
        self._ends = list(accumulate(len(row) + 1 for row in rows))

    def with_any(self, parts: Iterable[str]) -> Iterator[str]:
        """Yield the rows that contain any of these parts; one row may come more than once."""
        for part in parts:
            at = self._text.find(part)
            while at >= 0:
                row = bisect_right(self._ends, at)
                yield self._rows[row]
                at = self._text.find(part, self._ends[row])


class Page:
    """A page: its address, its tree without what no reader sees, and its structured data.

    ``tree`` lacks scripts (their sources are in ``scripts``), styles, templates, comments. Whatever ``html``
    is, there is a tree: an empty one for an empty page, and the first ``MAX_HTML_LENGTH`` characters and
    ``MAX_ELEMENTS`` elements (about) of a page that is larger. Elements nested deeper than ``MAX_DEPTH`` levels stand
    behind those around them, and at 2,048 levels the page ends. Content before and after the body is part of the body,
    as in browsers, and that of declarative shadow roots stands in the place of their hosts.
    """

    def __init__(
        self, html: str, url: str, *, styles: bool = False, sources: bool = False, boxes: bool = False
    ) -> None:
        self.url = url
        self.sources = Sources(wanted=sources)
        self.source, self.tree, self.elements, attributes, self.scripts, self.paths = parsed(html, with_paths=sources)
        self.outline = Outline(self.elements, attributes)
        self.base_url = self._base_url()
        self._links: dict[str, str | None] = {}
        self.styles = take_styles(self.tree) if styles else ComputedStyles()
        #: The rectangles of visible elements; None where the browser did not write them.
        self.boxes: Boxes | None = take_boxes(self.outline) if boxes else None
        self._computed_displays = take_displays(self.outline) if styles else None

    @cached_property
    def markup(self) -> Markup:
        """The structured data of the page."""
        return Markup.of(self)

    @cached_property
    def labelled(self) -> LabelledPairs:
        """The pairs of label and value of the page: of tables, lists and lines."""
        return LabelledPairs(self)

    @cached_property
    def visible_text(self) -> str:
        """The text between header, menus, side bars and footer."""
        return between_landmarks(self)

    @cached_property
    def displays(self) -> Displays:
        """The elements that are laid out otherwise than their tags."""
        return displays_of(self.outline, self._computed_displays)

    @property
    def order(self) -> dict[HtmlElement, int]:
        """The position of every element in the document."""
        return self.outline.order

    @cached_property
    def metas(self) -> dict[str, list[str]]:
        """The contents of ``<meta>`` elements by their lower-case ``property``, ``name`` or ``itemprop``.

        Elements outside of ``<head>`` count as well: browsers and parsers move them out of a broken one.
        """
        found: dict[str, list[str]] = {}
        for node in self.tree.iter("meta"):
            content = one_line(node.get("content"))
            if content:
                for attribute in ("property", "name", "itemprop"):
                    name = (node.get(attribute) or "").strip().lower()
                    if name:
                        found.setdefault(name, []).append(content)
        return found

    def meta(self, *names: str) -> str | None:
        """Return the first content of the first of these ``<meta>`` names that has one."""
        return next((self.metas[name][0] for name in names if name in self.metas), None)

    def names(self, node: HtmlElement) -> str:
        """Return the ``class``, ``id`` and ``itemprop`` of an element in lower case: its author's words for it.

        Attributes for tests (``data-testid`` and the like) count as well, as classes are often generated, and so do
        the tags of custom elements.
        """
        position = self.outline.order.get(node)
        return "" if position is None else self.all_names[position]

    def named(self, *parts: str) -> list[HtmlElement]:
        """Return the elements whose names contain any of these parts (in lower case), in the order of the page."""
        found = {position for names in self._all_names.with_any(parts) for position in self._positions[names]}
        return [self.elements[position] for position in sorted(found)]

    @cached_property
    def all_names(self) -> list[str]:
        """The names of each element as :meth:`names` returns them, in the order of the page."""
        found = []
        for tag, attributes in zip(self.outline.tags, self.outline.attributes, strict=True):
            custom = tag if "-" in tag else ""
            if not attributes:
                found.append(custom)
                continue
            get = attributes.get
            names = f"{get('class', '')} {get('id', '')} {get('itemprop', '')} {custom}".strip().lower()
            if not _NAMES_OF_TESTS.isdisjoint(attributes):
                tests = (
                    value[:MAX_LINE_LENGTH].lower() for name, value in attributes.items() if name in _NAMES_OF_TESTS
                )
                names = " ".join((names, *tests)).lstrip()
            found.append(names)
        return found

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for position, names in enumerate(self.all_names):
            if names:
                positions.setdefault(names, []).append(position)
        return positions

    @cached_property
    def _all_names(self) -> _Rows:
        return _Rows(list(self._positions))

    @cached_property
    def with_attribute(self) -> dict[str, list[int]]:
        """The positions of the elements that have each attribute, in the order of the page."""
        found: dict[str, list[int]] = {}
        for position, attributes in enumerate(self.outline.attributes):
            for name in attributes:
                found.setdefault(name, []).append(position)
        return found

    def with_label(self, *tags: str) -> Iterator[tuple[HtmlElement, str]]:
        """Yield the elements of these tags that have an ``aria-label``, with that in lower case."""
        outline = self.outline
        for position in self.with_attribute.get("aria-label", ()):
            if outline.tags[position] in tags:
                yield outline.nodes[position], outline.attributes[position]["aria-label"].lower()

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The positions of elements that the page marks as not shown to all; those inside of them are not listed.

        What a click on its heading opens is none of them.
        """
        attributes, marked = self.outline.attributes, self.with_attribute.get("aria-hidden", ())
        found = self.unshown.union(position for position in marked if attributes[position]["aria-hidden"] == "true")
        return found - panels_of(self.outline, found)

    @cached_property
    def unshown(self) -> frozenset[int]:
        """The positions of elements that the page itself does not show; those inside of them are not listed."""
        attributes, styled = self.outline.attributes, self.with_attribute.get("style", ())
        by_style = (position for position in styled if _HIDING_STYLE.search(attributes[position]["style"]))
        return frozenset(chain(self.with_attribute.get("hidden", ()), by_style))

    def hides(self, node: HtmlElement) -> bool:
        """Return whether an element is not shown by its own attributes."""
        return self.order.get(node) in self.unshown

    @cached_property
    def by_role(self) -> dict[str, list[HtmlElement]]:
        """The elements with each ``role``, in the order of the page."""
        found: dict[str, list[HtmlElement]] = {}
        for position in self.with_attribute.get("role", ()):
            if role := self.outline.attributes[position]["role"]:
                found.setdefault(role, []).append(self.elements[position])
        return found

    @cached_property
    def lines(self) -> list[tuple[HtmlElement, str]]:
        """The short texts of the page: of elements that contain at most three others, which contain none."""
        found = []
        outline = self.outline
        for position, (node, tag, end) in enumerate(zip(outline.nodes, outline.tags, outline.ends, strict=True)):
            inside = end - position - 1
            if inside > 3 or tag in _NO_LINE:
                continue
            if not inside:
                raw = outline.texts[position]
            elif inside == len(node):
                raw = " ".join(outline.pieces(position))
            else:
                continue
            if raw and 0 < len(text := one_line(raw)) <= MAX_LINE_LENGTH:
                found.append((node, text))
        return found

    @cached_property
    def line_positions(self) -> list[int]:
        """The positions of the elements of the lines."""
        return [self.outline.order[node] for node, _ in self.lines]

    @cached_property
    def numbered_lines(self) -> list[tuple[HtmlElement, str]]:
        """The lines with a digit: numbers, dates and prices are in no others."""
        return [line for line in self.lines if _DIGIT.search(line[1])]

    @cached_property
    def order_of_dates(self) -> str | None:
        """``DMY`` or ``MDY`` where dates in numbers with a day above 12 show it, and none of them the other order."""
        found = set()
        lines = (text for _, text in self.numbered_lines)
        # Behind an icon or a button, a date is in no line.
        beside = (one_line(text) for text in self.outline.tails if text and len(text) <= 2 * MAX_DATE_LINE_LENGTH)
        for text in chain(lines, beside):
            for match in _DATE_IN_NUMBERS.finditer(text) if len(text) <= MAX_DATE_LINE_LENGTH else ():
                first, second = int(match.group(1)), int(match.group(3))
                if (first > _MONTHS) != (second > _MONTHS):
                    found.add("DMY" if first > _MONTHS else "MDY")
        return found.pop() if len(found) == 1 else None

    @cached_property
    def numbered(self) -> frozenset[int]:
        """The positions of elements with a digit right in them, in a text of :data:`MAX_NUMBERED_LENGTH` at most."""
        outline = self.outline
        inside = enumerate(outline.texts)
        behind = zip(outline.parents, outline.tails, strict=True)
        return frozenset(
            position
            for position, text in chain(inside, behind)
            if text and len(text) <= MAX_NUMBERED_LENGTH and _DIGIT.search(text)
        )

    @cached_property
    def title(self) -> str | None:
        """The text of ``<title>``."""
        node = self.tree.find(".//title")
        return node_text(node, 2000) or None if node is not None else None

    @cached_property
    def language(self) -> str | None:
        """The ISO 639 code of the language that the page declares."""
        declared = (
            self.tree.get("lang"),
            self.tree.get("{http://www.w3.org/XML/1998/namespace}lang"),
            self.tree.get("xml:lang"),
            self.meta("content-language", "og:locale", "language", "inlanguage"),
        )
        for value in declared:
            match = _LANGUAGE.match((value or "").strip().lower())
            if match:
                return match.group()
        return None

    def language_of(self, thing: Thing | None) -> str | None:
        """Return the ISO 639-1 code of the language of an entity of the markup, else of the page."""
        return _code_in(thing.text("inLanguage") if thing else None) or _code_in(self.language)

    def language_at(self, node: HtmlElement) -> str | None:
        """Return the ISO 639-1 code of the language that an element or one around it declares, else of the page."""
        around = (each for each in (node, *node.iterancestors()) if each.tag not in ("body", "html"))
        return next((code for each in around if (code := _code_in(each.get("lang")))), None) or _code_in(self.language)

    @cached_property
    def canonical_url(self) -> str | None:
        """The canonical URL that the page declares, absolute."""
        for node in self.tree.iter("link"):
            if "canonical" in (node.get("rel") or "").lower().split():
                url = self.link(node.get("href"))
                if url:
                    return url
        return self.link(self.meta("og:url"))

    def link(self, reference: str | None) -> str | None:
        """Return the absolute URL of a reference of this page; None for one that is not http or https."""
        if not reference:
            return None
        if reference not in self._links:
            self._links[reference] = absolute(self.base_url, reference)
        return self._links[reference]

    def is_at(self, url: str | None) -> bool:
        """Return whether a URL is an address of this page: its own, or the canonical one."""
        return url is not None and bare(url) in self._addresses

    @cached_property
    def _addresses(self) -> frozenset[str]:
        return frozenset({bare(self.url), bare(self.canonical_url or self.url)})

    def _base_url(self) -> str:
        node = self.tree.find(".//base[@href]")
        declared = absolute(self.url, node.get("href")) if node is not None else None
        return declared or self.url


def _code_in(language: str | None) -> str | None:
    match = _LANGUAGE_CODE.match((language or "").strip().lower())
    return match.group() if match and len(match.group()) == 2 else None

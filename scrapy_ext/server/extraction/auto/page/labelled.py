"""Values by their labels: in tables, definition lists, lines such as ``Brand: X``, and the line below a label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.layout import Focus
from scrapy_ext.server.extraction.auto.page.text import node_text, one_line
from scrapy_ext.server.extraction.auto.page.urls import host_of
from scrapy_ext.server.extraction.vocabulary import CaselessPattern, Vocabulary, load_vocabulary

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.page import Page

MAX_LABEL_LENGTH: Final = 60
MAX_VALUE_LENGTH: Final = 1000
MAX_PAIRS: Final = 600
#: Values of one label.
MAX_VALUES: Final = 20
#: Larger elements with line breaks in them, in elements, are no sets of labels.
MAX_BROKEN: Final = 60

_TWO_PARTS: Final = frozenset({"li", "div", "p", "span", "a"})
#: A line of a label and a value.
LABELLED_LINE: Final = re.compile(r"^([^:：]{2,50}?)\s*[:：]\s*(\S.{0,150})$")
_LABEL_NAME = re.compile(r"label|name|title|key|term|th\b|attr", re.IGNORECASE)
_VALUE_NAME = re.compile(r"value|data|(?:^|[\s_-])val(?:$|[\s_-])", re.IGNORECASE)
#: Cells of a grid with labels and values in turns.
FEWEST_CELLS: Final = 4
MAX_CELLS: Final = 200
#: A sign beside a label that leads to help.
_HELP = re.compile(r"[?？ⓘℹi]\ufe0f?")
#: Known labels need no colon after them.
_KNOWN: Final = load_vocabulary("products").pattern("known_labels", re.IGNORECASE)
_LABEL_END = re.compile(r"[\s:：]+$")


@dataclass(frozen=True, slots=True)
class Pair:
    """A label and its value. ``listed``: it stands in a table or list, rather than in a line of its own."""

    label: str
    value: str
    node: HtmlElement
    listed: bool
    #: Further values of the label: a number or a name is the first alone.
    more: tuple[str, ...] = ()

    @property
    def values(self) -> str:
        """All values of the label, in one line."""
        return ", ".join((self.value, *self.more))


class LabelledPairs:
    """The pairs of a page in the order of their sureness: tables, then lists, then single lines."""

    def __init__(self, page: Page) -> None:
        self.pairs: list[Pair] = []
        for pair in _all_pairs(page):
            self.pairs.append(pair)
            if len(self.pairs) >= MAX_PAIRS:
                break

    def of(self, labels: re.Pattern[str]) -> Iterator[Pair]:
        """Return the pairs whose whole label matches."""
        return (pair for pair in self.pairs if labels.fullmatch(pair.label))


def _all_pairs(page: Page) -> Iterator[Pair]:
    for row in page.tree.iter("tr"):
        cells = [cell for cell in row if cell.tag in {"td", "th"} and not _is_control(cell)]
        if _is_head(row, cells):
            continue
        # Some tables have two pairs in a row.
        if len(cells) == 2 or (len(cells) in {4, 6} and all(map(_ends_as_label, cells[::2]))):
            for cell, value in zip(cells[::2], cells[1::2], strict=True):
                yield from _pair(cell, value, listed=True)
    for term in page.tree.iter("dt"):
        if values := list(takewhile(lambda node: node.tag == "dd", term.itersiblings()))[:MAX_VALUES]:
            yield from _pair(term, *_of_language(page, values), listed=True)
    yield from _grid_pairs(page)
    parts = [node for node in page.elements if len(node) == 2 and node.tag in _TWO_PARTS and _label_like(node)]
    siblings = Counter(node.getparent() for node in parts)
    for node in parts:
        yield from _pair(node[0], node[1], listed=siblings[node.getparent()] > 1)
    broken: set[HtmlElement] = set()
    for node, text in broken_lines(page):
        if match := LABELLED_LINE.match(text):
            broken.add(node)
            yield Pair(label_of(match.group(1)), match.group(2).strip(), node, listed=False)
    for node, text in page.lines:
        match = LABELLED_LINE.match(text) if node not in broken and (":" in text or "：" in text) else None
        if match:
            yield Pair(label_of(match.group(1)), match.group(2).strip(), node, listed=False)


def _of_language(page: Page, values: list[HtmlElement]) -> list[HtmlElement]:
    """Return the values without those that are marked as of other languages, where one is marked as of the page's."""
    languages = [(value.get("lang") or "").lower().partition("-")[0] for value in values]
    if page.language is None or page.language not in languages:
        return values
    return [value for value, of in zip(values, languages, strict=True) if of in {"", page.language}]


def _grid_pairs(page: Page) -> Iterator[Pair]:
    """Yield the pairs of elements in which labels and values follow each other, by their names: cells of a grid."""
    outline = page.outline
    labels = (at for at in page.with_attribute.get("class", ()) if _LABEL_NAME.search(outline.attributes[at]["class"]))
    for parent in dict.fromkeys(outline.parents[at] for at in labels):
        cells = [outline.nodes[at] for at in islice(outline.children(parent), MAX_CELLS + 1)] if parent >= 0 else []
        if not FEWEST_CELLS <= len(cells) <= MAX_CELLS or len(cells) % 2:
            continue
        kinds = [{(cell.tag, cell.get("class")) for cell in cells[at::2]} for at in (0, 1)]
        if any(len(kind) > 1 for kind in kinds) or cells[0].tag not in _TWO_PARTS or cells[1].tag not in _TWO_PARTS:
            continue
        label, value = (cell.get("class") or "" for cell in cells[:2])
        if _LABEL_NAME.search(label) and not _VALUE_NAME.search(label) and _VALUE_NAME.search(value):
            for label, value in zip(cells[::2], cells[1::2], strict=True):
                yield from _pair(label, value, listed=True)


def broken_lines(page: Page) -> Iterator[tuple[HtmlElement, str]]:
    """Yield the lines of elements with line breaks in them: ``Place: <b>Leeds</b><br>Hours: <b>20</b>``."""
    outline = page.outline
    for parent in dict.fromkeys(outline.parents[at] for at, tag in enumerate(outline.tags) if tag == "br"):
        if outline.ends[parent] - parent > MAX_BROKEN:
            continue
        pieces = [outline.texts[parent] or ""]
        for child in outline.children(parent):
            is_break = outline.tags[child] == "br"
            pieces += ["\n" if is_break else " ".join(outline.texts_in(child)), outline.tails[child] or ""]
        lines = "".join(piece if piece == "\n" else piece.replace("\n", " ") for piece in pieces).split("\n")
        yield from ((outline.nodes[parent], line) for each in lines if (line := one_line(each)))


def _label_like(node: HtmlElement) -> bool:
    first, second = node
    if len(first) > 2 or len(second) > 3:
        return False
    text = (first.text or (first[0].text if len(first) else "") or "").strip()
    # The time of a search grows with the square of white space in the text.
    is_known = len(text) <= MAX_LABEL_LENGTH and _KNOWN.fullmatch(text)
    if is_known and not (first.tag == "a" and second.tag == "a"):
        return True
    if text.endswith((":", "：")) or first.tag in {"strong", "b"}:
        return True
    return bool(_LABEL_NAME.search(first.get("class") or ""))


def _ends_as_label(node: HtmlElement) -> bool:
    return node_text(node, MAX_LABEL_LENGTH + 1).endswith((":", "："))


def _is_head(row: HtmlElement, cells: list[HtmlElement]) -> bool:
    """Return whether a row names the columns below it: ``<th>Property</th><th>Value</th>``."""
    # A number is a value: "Model", "12G-P4".
    if any(cell.tag != "th" for cell in cells) or any(map(str.isdigit, node_text(row, 2 * MAX_LABEL_LENGTH))):
        return False
    around, below = row.getparent(), row.getnext()
    is_first = row.getprevious() is None and below is not None and next(below.iter("td"), None) is not None
    return is_first or (around is not None and around.tag == "thead")


def _is_control(cell: HtmlElement) -> bool:
    """Return whether a cell holds a box to tick or the like, and no text."""
    return next(cell.iter("input", "button"), None) is not None and not node_text(cell)


def _pair(term: HtmlElement, *values: HtmlElement, listed: bool) -> Iterator[Pair]:
    text = node_text(term, MAX_LABEL_LENGTH + 1)
    label = label_of(_without_help(term, text))
    if 1 < len(label) <= MAX_LABEL_LENGTH and not _is_button(term, text):
        text, *more = (node_text(value, MAX_VALUE_LENGTH) for value in values)
        # Options to choose from are not a property of the product.
        if text and next(values[0].iter("select", "option"), None) is None:
            yield Pair(label, text, values[0], listed, tuple(filter(None, more)))


def _is_button(term: HtmlElement, text: str) -> bool:
    """Return whether a term is a button, which folds the part below it in and out."""
    button = next(term.iter("button"), None)
    return button is not None and node_text(button, MAX_LABEL_LENGTH + 1) == text


def _without_help(term: HtmlElement, text: str) -> str:
    """Return the text of a label without the sign of help at its end, in an element of its own."""
    mark = node_text(term[-1], 3) if len(term) and not (term[-1].tail or "").strip() else ""
    return text.removesuffix(mark) if mark != text and _HELP.fullmatch(mark) else text


def label_of(text: str) -> str:
    """Return a label without the colon behind it."""
    return one_line(_LABEL_END.sub("", text))


#: Longer lines are no labels.
MAX_LABEL_LINE_LENGTH: Final = 40
#: Lines in which labels are searched.
MAX_LINES: Final = 20_000

_LABEL_LINE_END = re.compile(r"[\s:：?]+$")
_NO_VALUES: Final = frozenset({"h1", "h2", "button", "label", "th", "dt"})


class LabelWords:
    """The words of the labels of several values, by the names that these have in a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, *names: str) -> None:
        self.by_name = {name: vocabulary.pattern(name, re.IGNORECASE) for name in names}
        languages = vocabulary.table("label_languages") if "label_languages" in vocabulary else {}
        #: The languages and top-level domains of the labels that mean something else in others.
        self.languages = {label: frozenset(names.split()) for label, names in languages.items()}
        #: The words of all labels: most lines of a page are none of them.
        self.any = CaselessPattern("|".join(f"(?:{vocabulary.text(name)})" for name in names))


class Labels:
    """The labelled values of a page, without those of its parts about other things.

    With ``words``, only those of their labels. A heading or control below a label is as likely something else as its
    value.
    """

    def __init__(self, page: Page, focus: Focus, words: LabelWords | None = None) -> None:
        self._page = page
        self._focus = focus
        self._any = words.any if words else None
        self._by_name = words.by_name if words else {}
        self._languages = words.languages if words else {}

    def value(self, name: str, fits: Callable[[str], object] = bool) -> str | None:
        """Return the first value that fits of the labels with a name in ``words``: listed pairs, then lines below."""
        found = self.pair(name, fits)
        return found.value if found else None

    def pair(self, name: str, fits: Callable[[str], object] = bool) -> Pair | None:
        """Return that value with its label."""
        words = self._by_name[name]
        pairs = (pair for pair in self._pairs if words.fullmatch(pair.label) and fits(pair.value))
        return next((pair for pair in pairs if not self._focus.elsewhere(pair.node)), None)

    def means(self, name: str, text: str) -> bool:
        """Return whether a text is a label with a name in ``words``, in the language of the page."""
        return self._by_name[name].fullmatch(text) is not None and self._is_of_language(text)

    def pairs(self) -> list[Pair]:
        """Return all pairs: those of tables and lists, of lines, then those of a label and the line below."""
        return [pair for pair in self._pairs if not self._focus.elsewhere(pair.node)]

    @cached_property
    def _pairs(self) -> list[Pair]:
        listed = (pair for pair in self._page.labelled.pairs if self._is_label(pair.label))
        return [*listed, *self._below()]

    def _is_label(self, text: str) -> bool:
        return self._any is None or (self._any.fullmatch(text) is not None and self._is_of_language(text))

    def _is_of_language(self, label: str) -> bool:
        languages = self._languages.get(label.casefold())
        return languages is None or not languages.isdisjoint(
            (self._page.language, host_of(self._page.url).rpartition(".")[2])
        )

    def _below(self) -> Iterator[Pair]:
        """Yield short lines as labels of the line below each."""
        lines = self._page.lines[:MAX_LINES]
        for position, (node, text) in enumerate(lines[:-1]):
            if len(text) > MAX_LABEL_LINE_LENGTH or node.tag in {"a", "option", "button", "label"}:
                continue
            label = _LABEL_LINE_END.sub("", text)
            if not self._is_label(label):
                continue
            below = next((line for line in lines[position + 1 : position + 4] if not _inside(line[0], node)), None)
            if below is not None and below[0].tag not in _NO_VALUES:
                yield Pair(label, below[1], below[0], listed=False)


def _inside(node: HtmlElement, outer: HtmlElement) -> bool:
    parent = node.getparent()
    return parent is outer or (parent is not None and parent.getparent() is outer)

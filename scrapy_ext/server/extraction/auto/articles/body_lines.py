"""Lines of the box around an article: a line is text between the borders of two blocks."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.prose import BLOCKS
from scrapy_ext.server.extraction.auto.page import Page, one_line
from scrapy_ext.server.extraction.auto.page.text import code_text, joined, letters_of
from scrapy_ext.server.extraction.auto.page.urls import site_of

_TABLE_CELLS: Final = ("td", "th")
#: Blocks that follow each other line by line in a list or table.
_ROWS: Final = ("li", "dt", "dd", *_TABLE_CELLS)
_GROUPS: Final = ("ul", "ol", "dl", "table")


@dataclass(slots=True, eq=False)
class TextRun:
    """A line of text of one block. Two line breaks in a row end it, as some pages separate paragraphs so.

    ``linked`` is the number of its characters in links, ``away`` in links to other sites. ``texts`` and ``tails`` are
    the positions of the elements whose text and tail it consists of.
    """

    node: HtmlElement
    tag: str
    lines: str
    linked: int
    away: int
    texts: list[int]
    tails: list[int]
    #: The lines as one.
    text: str = field(init=False)
    _letters: str | None = None

    def __post_init__(self) -> None:
        self.text = self.lines.replace("\n", " ")

    @property
    def letters(self) -> str:
        """The letters and digits of the text, for comparison."""
        if self._letters is None:
            self._letters = letters_of(self.text)
        return self._letters


def runs_of(page: Page, box: int, noise: AbstractSet[int]) -> list[TextRun]:
    """Return the lines of a box in the order of the page, without those of noise; all by position in its outline."""
    reader = _LineReader(page, box)
    reader.read(noise)
    return reader.runs


def text_of(runs: Sequence[TextRun]) -> str:
    """Return the text of lines: paragraphs with an empty line between them, items and rows line by line."""
    return joined(runs, lambda run: run.lines, _between)


def _between(first: TextRun, second: TextRun) -> str:
    if first.node is second.node or first.tag not in _ROWS or second.tag not in _ROWS:
        return "\n\n"
    if first.tag in _TABLE_CELLS and second.tag in _TABLE_CELLS and first.node.getparent() is second.node.getparent():
        return " "
    return "\n" if _group(first) is _group(second) else "\n\n"


def _group(run: TextRun) -> HtmlElement | None:
    return next((up for up in run.node.iterancestors() if up.tag in _GROUPS), None)


#: A line break of the page, among texts.
_BREAK: Final = "\ufdd0"


class _LineReader:
    """Reads the lines of a box. ``_block`` and ``_link`` are the positions of those around the current text."""

    def __init__(self, page: Page, box: int) -> None:
        self.runs: list[TextRun] = []
        self._page = page
        self._outline = page.outline
        self._displays = page.displays
        self._box = box
        self._site = site_of(page.url)
        #: Whether links lead to other sites.
        self._away_by_link: dict[int, bool] = {}
        self._block, self._link = box, -1
        #: The end of the code that is being read; 0 outside of code.
        self._end_of_code = 0
        # The line that is being read.
        self._parts: list[str] = []
        self._texts: list[int] = []
        self._tails: list[int] = []
        self._linked = self._away = 0

    def read(self, noise: AbstractSet[int]) -> None:
        """Read all elements of the box but those of noise."""
        tags, texts, ends = self._outline.tags, self._outline.texts, self._outline.ends
        # The elements that have begun: where they end, their position, and the block and link around them.
        begun: list[tuple[int, int, int, int]] = []
        position, end = self._box, ends[self._box]
        while position < end:
            tag = tags[position]
            begun.append((ends[position], position, self._block, self._link))
            if position in noise:
                position = ends[position]
            else:
                if tag == "br":
                    self._break()
                if self._is_block(position, tag):
                    self._close(position)
                    if tag == "pre":
                        self._end_of_code = ends[position]
                elif position in self._displays.apart and self._parts:
                    self._parts.append(" ")
                if tag == "a":
                    self._link = position
                if text := texts[position]:
                    self._texts.append(position)
                    self._add(text)
                position += 1
            while begun and begun[-1][0] == position:
                self._end(*begun.pop()[1:])
        self._close(self._box)

    def _end(self, position: int, block: int, link: int) -> None:
        """Continue behind an element, in the block and link around it."""
        self._link = link
        if self._outline.ends[position] == self._end_of_code and self._outline.tags[position] == "pre":
            self._end_of_code = 0
        if self._is_block(position, self._outline.tags[position]):
            self._close(block)
        tail = self._outline.tails[position]
        if tail and position != self._box:
            self._tails.append(position)
            self._add(tail)

    def _is_block(self, position: int, tag: str) -> bool:
        if position < self._end_of_code:
            # The lines of code are one.
            return False
        in_line = self._displays.get(position)
        return tag in BLOCKS if in_line is None else not in_line

    def _close(self, block: int) -> None:
        """End a line; the next one is of another block."""
        if self._parts:
            tag = self._outline.tags[self._block]
            code = code_text(self._outline, self._block, self._displays) if tag == "pre" else None
            if text := _lines_of("".join(self._parts)) if code is None else code:
                node = self._outline.nodes[self._block]
                self.runs.append(TextRun(node, tag, text, self._linked, self._away, self._texts, self._tails))
            self._parts.clear()
            self._texts, self._tails = [], []
            self._linked = self._away = 0
        self._block = block

    def _break(self) -> None:
        if self._end_of_code:
            return
        for part in reversed(self._parts):
            if part == _BREAK:
                self._close(self._block)
                return
            if not part.isspace():
                break
        self._parts.append(_BREAK)

    def _add(self, text: str) -> None:
        self._parts.append(text)
        if self._link >= 0:
            length = len(one_line(text))
            self._linked += length
            if self._leads_away():
                self._away += length

    def _leads_away(self) -> bool:
        found = self._away_by_link.get(self._link)
        if found is None:
            url = self._page.link(self._outline.nodes[self._link].get("href"))
            found = self._away_by_link[self._link] = url is not None and site_of(url) != self._site
        return found


def _lines_of(text: str) -> str:
    """Return the lines of a text with line breaks of the page."""
    if _BREAK in text:
        return "\n".join(line for part in text.split(_BREAK) if (line := one_line(part)))
    return one_line(text)

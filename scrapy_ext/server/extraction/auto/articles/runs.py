"""The lines of a box, as a reader sees them: text between the borders of two blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.prose import BLOCKS
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import lines, one_line
from scrapy_ext.server.extraction.auto.page.urls import site_of

_CELLS: Final = ("td", "th")
#: Blocks that stand line by line in their list or table.
_ROWS: Final = ("li", "dt", "dd", *_CELLS)
_GROUPS: Final = ("ul", "ol", "dl", "table")
_SPACE = re.compile(r"\s+")


@dataclass(slots=True, eq=False)
class Run:
    """A line of text, of one block. Two breaks in a row end it, as they are how some pages set paragraphs apart.

    ``linked`` is how many of its characters are in links, ``away`` in links to other sites; ``pieces`` are the elements
    whose text (False) or tail (True) it is made of.
    """

    node: HtmlElement
    text: str = ""
    lines: str = ""
    linked: int = 0
    away: int = 0
    pieces: list[tuple[HtmlElement, bool]] = field(default_factory=list)

    @property
    def tag(self) -> str:
        """The name of its block."""
        return str(self.node.tag)


def runs_of(page: Page, box: HtmlElement, noise: AbstractSet[HtmlElement]) -> list[Run]:
    """The runs of a box in the order of the page, without those of what is noise."""
    collector = _Collector(page, noise)
    collector.walk(box, box, None)
    collector.close(box)
    return collector.runs


def text_of(runs: Iterable[Run]) -> str:
    """The text of runs: paragraphs with an empty line between them, items and rows line by line."""
    pieces: list[str] = []
    last: Run | None = None
    for run in runs:
        if last is not None:
            pieces.append(_between(last, run))
        pieces.append(run.lines)
        last = run
    return "".join(pieces)


def _between(first: Run, second: Run) -> str:
    if first.node is second.node or first.tag not in _ROWS or second.tag not in _ROWS:
        return "\n\n"
    if first.tag in _CELLS and second.tag in _CELLS and first.node.getparent() is second.node.getparent():
        return " "
    return "\n" if _group(first) is _group(second) else "\n\n"


def _group(run: Run) -> HtmlElement | None:
    """The list or the table in which a run stands."""
    return next((up for up in run.node.iterancestors() if up.tag in _GROUPS), None)


class _Collector:
    def __init__(self, page: Page, noise: AbstractSet[HtmlElement]) -> None:
        self.runs: list[Run] = []
        self._page = page
        self._noise = noise
        self._site = site_of(page.url)
        self._parts: list[str] = []
        self._run: Run | None = None

    def walk(self, node: HtmlElement, block: HtmlElement, link: HtmlElement | None) -> None:
        """Take in an element of a block, in a link or not."""
        is_block = node.tag in BLOCKS
        if node in self._noise:
            if is_block:
                self.close(block)
            return
        if node.tag == "br":
            self._break(block)
        if is_block:
            self.close(node)
        inner = node if is_block else block
        if node.tag == "a":
            link = node
        self._add(node, False, inner, link)
        for child in node:
            self.walk(child, inner, link)
            self._add(child, True, inner, link)
        if is_block:
            self.close(block)

    def close(self, block: HtmlElement) -> None:
        """End a line; the next one is of another block."""
        text = lines("".join(self._parts))
        if text and self._run is not None:
            self._run.lines, self._run.text = text, one_line(text)
            self.runs.append(self._run)
        self._parts.clear()
        self._run = Run(block)

    def _break(self, block: HtmlElement) -> None:
        said = next((part for part in reversed(self._parts) if not part.isspace() or part == "\n"), None)
        if said == "\n":
            self.close(block)
        else:
            self._parts.append("\n")

    def _add(self, node: HtmlElement, tail: bool, block: HtmlElement, link: HtmlElement | None) -> None:
        text = node.tail if tail else node.text
        if not text:
            return
        if self._run is None:
            self._run = Run(block)
        self._parts.append(text if block.tag == "pre" else _SPACE.sub(" ", text))
        self._run.pieces.append((node, tail))
        if link is not None:
            length = len(one_line(text))
            self._run.linked += length
            url = self._page.link(link.get("href"))
            if url is not None and site_of(url) != self._site:
                self._run.away += length

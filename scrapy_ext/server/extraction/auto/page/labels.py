"""Values by their labels: of tables, definition lists and lines (``specification``), and of the line below a label."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.focus import Focus
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.specification import Specification

#: Longer lines are no labels.
MAX_LABEL_LENGTH: Final = 40
#: Lines that are looked at.
MAX_LINES: Final = 20_000

_END = re.compile(r"[\s:：?]+$")
_NO_VALUES: Final = frozenset({"h1", "h2", "button", "label", "th", "dt"})


class Labelled(NamedTuple):
    """A value, and the label that it stands by."""

    value: str
    label: str


class Labels:
    """The labelled values of a page, without those of its parts about other things.

    A heading or control below a label is as likely something else as its value.
    """

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._focus = focus
        self.specification = Specification(page)

    def value(self, labels: re.Pattern[str], fits: Callable[[str], bool] = bool) -> Labelled | None:
        """The first value that fits of the labels that match whole: listed pairs first, then lines below."""
        for pair in self.specification.of(labels):
            if fits(pair.value) and not self._focus.elsewhere(pair.node):
                return Labelled(pair.value, pair.label)
        for label, value, node in self._below:
            if labels.fullmatch(label) and fits(value) and not self._focus.elsewhere(node):
                return Labelled(value, label)
        return None

    def pairs(self) -> list[Labelled]:
        """All of them: those of tables and lists, of lines, then those below a label."""
        listed = [pair for pair in self.specification.pairs if not self._focus.elsewhere(pair.node)]
        below = [Labelled(value, label) for label, value, node in self._below if not self._focus.elsewhere(node)]
        return [*(Labelled(pair.value, pair.label) for pair in listed), *below]

    @cached_property
    def _below(self) -> list[tuple[str, str, HtmlElement]]:
        """Short lines with the line below each, and its element."""
        found = []
        lines = self._page.lines[:MAX_LINES]
        for position, (node, text) in enumerate(lines[:-1]):
            if len(text) <= MAX_LABEL_LENGTH and node.tag not in {"a", "option", "button", "label"}:
                below = next((line for line in lines[position + 1 : position + 4] if not _inside(line[0], node)), None)
                if below is not None and below[0].tag not in _NO_VALUES:
                    found.append((_END.sub("", text), below[1], below[0]))
        return found


def _inside(node: HtmlElement, outer: HtmlElement) -> bool:
    parent = node.getparent()
    return parent is outer or (parent is not None and parent.getparent() is outer)

"""Computed styles of the elements of a page, as the browser laid it out: sizes and positions that HTML lacks.

The browser's side (``browser/page_html.py``) writes them into a copy of the page, one attribute for each element that
has a short text of its own or is an image. This module reads the attributes and removes them from the tree. Pages may
contain any attribute, so this one is read only where the browser wrote it.
"""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from lxml.html import HtmlElement

#: The attribute: x, y, width, height, size of letters (pixels of the page), their weight, and flags.
ATTRIBUTE: Final = "data-look"
STRUCK: Final = 1
HIDDEN: Final = 2
#: The value of the attribute on the root of a page that has style sheets.
STYLED: Final = "styled"

_VALUE = re.compile(r"(-?\d{1,7}) (-?\d{1,7}) (\d{1,7}) (\d{1,7}) (\d{1,4}) (\d{1,4}) ([0-3])")


class ComputedStyle(NamedTuple):
    """Position of an element, in pixels from the top left of the page, and the style of its text."""

    x: int
    y: int
    width: int
    height: int
    letters: int
    weight: int
    struck: bool
    hidden: bool


class ComputedStyles:
    """The styles of a page's elements; empty for a page that no browser loaded."""

    def __init__(self, found: dict[HtmlElement, ComputedStyle] | None = None, *, styled: bool = False) -> None:
        self._found = found or {}
        sizes = [style.letters for style in self._found.values() if style.letters and not style.hidden]
        #: Whether the page has style sheets; without them, styles mean nothing.
        self.styled = styled and bool(sizes)
        #: The median font size.
        self.usual_letters = median(sizes) if sizes else 0.0

    def of(self, node: HtmlElement | None) -> ComputedStyle | None:
        """Return the style of an element, or of the largest text among the first few inside of it."""
        if not self._found or node is None:
            return None
        own = self._found.get(node)
        if own is not None:
            return own
        inside = []
        for part in node.iter():
            style = self._found.get(part)
            if style is not None:
                inside.append(style)
                if len(inside) == 8:
                    break
        return max(inside, key=lambda style: (not style.hidden, style.letters), default=None)

    def is_struck(self, node: HtmlElement) -> bool:
        """Return whether a text is struck through; False where that is not known."""
        style = self.of(node)
        return style is not None and style.struck

    def is_hidden(self, node: HtmlElement) -> bool:
        """Return whether an element is invisible; False where that is not known."""
        style = self.of(node)
        return style is not None and style.hidden


def take_styles(tree: HtmlElement) -> ComputedStyles:
    """Remove the styles that are written in a tree, and return them."""
    found = {}
    styled = tree.get(ATTRIBUTE) == STYLED
    for value in tree.xpath(f"//@{ATTRIBUTE}"):
        node = value.getparent()
        match = _VALUE.fullmatch(value)
        if match:
            x, y, width, height, letters, weight, flags = map(int, match.groups())
            struck, hidden = bool(flags & STRUCK), bool(flags & HIDDEN)
            found[node] = ComputedStyle(x, y, width, height, letters, weight, struck, hidden)
        del node.attrib[ATTRIBUTE]
    return ComputedStyles(found, styled=styled)

"""Computed styles of the elements of a page, as the browser laid it out: people go by them, and the HTML has them not.

The browser's side (``server/extraction/browser/computed_styles.py``) writes it into a copy of the page, one attribute
for each element that has a short text of its own or is an image; here it is read, and taken out of the tree again.
Pages write what they like into attributes, and are parsed with this one only where the browser has written it.
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
    """Where an element stands, in pixels from the top left of the page, and how its text is written."""

    x: int
    y: int
    width: int
    height: int
    letters: int
    weight: int
    struck: bool
    hidden: bool


class ComputedStyles:
    """The styles of a page's elements; empty where it was not loaded in a browser."""

    def __init__(self, found: dict[HtmlElement, ComputedStyle] | None = None, *, styled: bool = False) -> None:
        self._found = found or {}
        sizes = [style.letters for style in self._found.values() if style.letters and not style.hidden]
        #: Whether the page had style sheets. Without, all is written alike, one below the other.
        self.styled = styled and bool(sizes)
        #: The size of most letters.
        self.usual_letters = median(sizes) if sizes else 0.0

    def of(self, node: HtmlElement | None) -> ComputedStyle | None:
        """The style of an element, or of the largest text among the first few in it."""
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
        """Whether a text is struck out; False where that is not known."""
        style = self.of(node)
        return style is not None and style.struck

    def is_hidden(self, node: HtmlElement) -> bool:
        """Whether nothing is seen of an element; False where that is not known."""
        style = self.of(node)
        return style is not None and style.hidden


def take_styles(tree: HtmlElement) -> ComputedStyles:
    """Take the styles that are written in a tree out of it."""
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

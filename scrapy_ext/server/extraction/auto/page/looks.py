"""How the elements of a page look in the browser: what people go by, and the HTML does not tell.

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


class Look(NamedTuple):
    """Where an element stands, in pixels from the top left of the page, and how its text is written."""

    x: int
    y: int
    width: int
    height: int
    letters: int
    weight: int
    struck: bool
    hidden: bool


class Looks:
    """The looks of a page's elements; empty where it was not loaded in a browser."""

    def __init__(self, found: dict[HtmlElement, Look] | None = None, *, styled: bool = False) -> None:
        self._found = found or {}
        sizes = [look.letters for look in self._found.values() if look.letters and not look.hidden]
        #: Whether the page had style sheets. Without, all is written alike, one below the other.
        self.styled = styled and bool(sizes)
        #: The size of most letters.
        self.usual_letters = median(sizes) if sizes else 0.0

    def of(self, node: HtmlElement | None) -> Look | None:
        """The look of an element, or of the largest text among the first few in it."""
        if not self._found or node is None:
            return None
        own = self._found.get(node)
        if own is not None:
            return own
        inside = []
        for part in node.iter():
            look = self._found.get(part)
            if look is not None:
                inside.append(look)
                if len(inside) == 8:
                    break
        return max(inside, key=lambda look: (not look.hidden, look.letters), default=None)

    def is_struck(self, node: HtmlElement) -> bool:
        """Whether a text is struck out; False where that is not known."""
        look = self.of(node)
        return look is not None and look.struck

    def is_hidden(self, node: HtmlElement) -> bool:
        """Whether nothing is seen of an element; False where that is not known."""
        look = self.of(node)
        return look is not None and look.hidden


def take_looks(tree: HtmlElement) -> Looks:
    """The looks that are written in a tree, which has them no more afterwards."""
    found = {}
    styled = tree.get(ATTRIBUTE) == STYLED
    for value in tree.xpath(f"//@{ATTRIBUTE}"):
        node = value.getparent()
        match = _VALUE.fullmatch(value)
        if match:
            x, y, width, height, letters, weight, flags = map(int, match.groups())
            found[node] = Look(x, y, width, height, letters, weight, bool(flags & STRUCK), bool(flags & HIDDEN))
        del node.attrib[ATTRIBUTE]
    return Looks(found, styled=styled)

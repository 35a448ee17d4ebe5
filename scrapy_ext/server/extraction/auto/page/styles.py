"""Styles of elements: sizes and positions, which HTML lacks, and displays that differ from those of the tags.

The browser's side (``browser/page_html.py``) writes both into a copy of the page, one attribute each. This module
reads the attributes and removes them. Pages may contain any attribute, so these are read only where the browser wrote
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_ext.server.extraction.auto.page.outline import Outline
from scrapy_ext.server.extraction.auto.page.text import is_wide

if TYPE_CHECKING:
    from lxml.html import HtmlElement

#: The attribute: x, y, width, height, size of letters (pixels of the page), their weight, and flags.
STYLE_ATTRIBUTE: Final = "data-look"
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

    @property
    def is_unseen(self) -> bool:
        """True for what is invisible, as small as a pixel, without size of letters, or outside of the page."""
        is_outside = self.x + self.width <= 0 or self.y + self.height <= 0
        return self.hidden or self.letters == 0 or max(self.width, self.height) <= 1 or is_outside


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

    def unseen(self) -> Iterator[HtmlElement]:
        """Yield the elements with text of their own, and the images, that a person does not see."""
        return (node for node, style in self._found.items() if style.is_unseen)


def take_styles(tree: HtmlElement) -> ComputedStyles:
    """Remove the styles that are written in a tree, and return them."""
    found = {}
    styled = tree.get(STYLE_ATTRIBUTE) == STYLED
    for value in tree.xpath(f"//@{STYLE_ATTRIBUTE}"):
        node = value.getparent()
        match = _VALUE.fullmatch(value)
        if match:
            x, y, width, height, letters, weight, flags = map(int, match.groups())
            struck, hidden = bool(flags & STRUCK), bool(flags & HIDDEN)
            found[node] = ComputedStyle(x, y, width, height, letters, weight, struck, hidden)
        del node.attrib[STYLE_ATTRIBUTE]
    return ComputedStyles(found, styled=styled)


#: Attribute with the rectangle of a visible element, where the browser wrote it: x, y, width, height (CSS pixels of the
#: screenshot).
BOX_ATTRIBUTE: Final = "data-box"
_BOX = re.compile(r"(-?\d{1,6}) (-?\d{1,6}) (\d{1,6}) (\d{1,6})")
#: The value of the attribute on the root of a page all of whose visible elements have it.
COMPLETE: Final = "complete"
Box = tuple[int, int, int, int]


class Boxes(dict["HtmlElement", Box]):
    """The rectangles of visible elements: of all of them, or of the first ones of a page that takes too long."""

    is_complete = False


def take_boxes(outline: Outline) -> Boxes:
    """Remove the rectangles that the browser wrote into a page, and return them."""
    found = Boxes()
    found.is_complete = outline.attributes[0].get(BOX_ATTRIBUTE) == COMPLETE
    for node, attributes in zip(outline.nodes, outline.attributes, strict=True):
        value = attributes.pop(BOX_ATTRIBUTE, None)
        if value is not None:
            del node.attrib[BOX_ATTRIBUTE]
            if match := _BOX.fullmatch(value):
                x, y, width, height = map(int, match.groups())
                found[node] = (x, y, width, height)
    return found


#: Attribute with the computed display of an element, where the browser wrote it: of those that stand in a line by
#: their tags and are blocks, and the other way round.
DISPLAY_ATTRIBUTE: Final = "data-display"
LINE: Final = "line"
BLOCK: Final = "block"
#: Of an element in a line that is apart from the one before it, by its margin or that of the layout around it.
APART: Final = "apart"
#: Elements that stand in a line by their tags, where styles often make them blocks.
OF_LINE: Final = frozenset({
    "a", "abbr", "b", "big", "cite", "code", "em", "font", "i", "label", "mark", "q", "s", "small", "span", "strong",
    "time", "u",
})  # fmt: skip
#: Those that style sheets set apart from each other; the others style parts of words.
_STYLED: Final = frozenset({"a", "label", "span", "time"})
#: Elements in one that is compared with another.
MAX_INSIDE: Final = 12
#: Signs that a word goes on behind.
_JOINING: Final = frozenset("-–—/'’(«\"“‘@#&_ \n\t")
#: Elements that are blocks by their tags, and mean nothing else.
OF_BLOCK: Final = frozenset({"div", "p", "section"})
_DISPLAYED: Final = OF_LINE | OF_BLOCK

_DISPLAY = re.compile(
    r"(?:^|;)\s*display\s*:\s*(inline|contents|block|flex|grid|table|list-item|flow-root)", re.IGNORECASE
)
_OF_LINE_VALUES: Final = frozenset({"inline", "contents"})


class Displays(dict[int, bool]):
    """The elements laid out otherwise than their tags, by position: whether each stands in a line.

    Readers of text know by the tag whether an element stands in a line. Styles change that, and a custom element has
    no layout of its own: it stands in a line where text does so directly beside it.

    ``apart`` are the positions of those that are apart from what is before them in their line.
    """

    def __init__(self, found: dict[int, bool], apart: frozenset[int] = frozenset()) -> None:
        super().__init__(found)
        self.apart = apart


def displays_of(outline: Outline, computed: Displays | None) -> Displays:
    """Return the displays by attributes of elements, or as far as known those that the browser computed."""
    found: dict[int, bool] = {}
    apart: set[int] = set()
    parents = outline.parents
    for position, (tag, attributes) in enumerate(zip(outline.tags, outline.attributes, strict=True)):
        if "style" in attributes and tag in _DISPLAYED and (match := _DISPLAY.search(attributes["style"])):
            found[position] = match[1].lower() in _OF_LINE_VALUES
        elif "-" in tag:
            found[position] = _is_beside_text(outline, position)
        # The first element in another has none before it.
        if tag in _STYLED and computed is None and parents[position] != position - 1 and _is_apart(outline, position):
            apart.add(position)
    return Displays(found, frozenset(apart)) if computed is None else Displays(found | computed, computed.apart)


def _is_apart(outline: Outline, position: int) -> bool:
    """Return whether an element begins a word of its own directly behind another, as style sheets set them apart.

    That is likely of a capital or a number behind a word, and of another link. Elements without a class are parts of
    one word, as nothing but their tag can set them apart.
    """
    other = outline.sibling_before(position)
    if other < 0 or outline.tails[other] or outline.tags[other] not in _STYLED:
        return False
    ours, its = outline.attributes[position], outline.attributes[other]
    if position - other > MAX_INSIDE or outline.ends[position] - position > MAX_INSIDE:
        return False
    before, after = "".join(outline.texts_in(other)), "".join(outline.texts_in(position))
    if len(before.strip()) < 2 or not after or is_wide(after[0]):
        return False
    if after[0].isupper() or (after[0] in "#$€£" and before[-1].isalnum()) or before[-1] == ":":
        return before[-1] not in _JOINING
    if after[0].isdigit() and before[-1].isalpha():
        return True
    return "href" in ours and "href" in its and ours["href"] != its["href"] and before[-1].isalnum()


def take_displays(outline: Outline) -> Displays:
    """Remove the displays that the browser wrote into a page, and return them."""
    found, apart = {}, set()
    for position, (node, attributes) in enumerate(zip(outline.nodes, outline.attributes, strict=True)):
        value = attributes.pop(DISPLAY_ATTRIBUTE, None)
        if value is not None:
            del node.attrib[DISPLAY_ATTRIBUTE]
            found[position] = value != BLOCK
            if value == APART:
                apart.add(position)
    return Displays(found, frozenset(apart))


def _is_beside_text(outline: Outline, position: int) -> bool:
    sibling = outline.sibling_before(position)
    before = outline.tails[sibling] if sibling >= 0 else outline.texts[outline.parents[position]]
    after = outline.tails[position]
    return bool((before and before.strip()) or (after and after.strip()))

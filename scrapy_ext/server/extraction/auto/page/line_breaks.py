"""Lines right inside of an element, which line breaks (``br``) separate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.text import one_line


class BrokenLine(NamedTuple):
    """A line of an element without the texts inside of its other elements.

    ``begin`` is the line break before it; for the first one, the element itself.
    """

    begin: HtmlElement
    text: str


def lines_in(node: HtmlElement) -> Iterator[BrokenLine]:
    """Yield the lines right inside of an element that have a text."""
    begin, line = node, [node.text]
    for child in node:
        if child.tag == "br":
            if text := one_line(" ".join(filter(None, line))):
                yield BrokenLine(begin, text)
            begin, line = child, []
        line.append(child.tail)
    if text := one_line(" ".join(filter(None, line))):
        yield BrokenLine(begin, text)


#: Elements that may be in a line.
_INLINE: Final = frozenset({
    "a", "abbr", "b", "br", "em", "font", "i", "img", "mark", "small", "span", "strong", "svg", "time", "u", "wbr",
})  # fmt: skip


def whole_lines(node: HtmlElement, most: int) -> list[str]:
    """Return the lines of an element that has line breaks and no blocks, with the texts of the elements in them.

    There are none of an element with more lines or elements than ``most``.
    """
    lines: list[list[str]] = [[node.text or ""]]
    for number, child in enumerate(node):
        if child.tag not in _INLINE or number >= most:
            return []
        if child.tag == "br":
            lines.append([])
        else:
            lines[-1] += child.itertext()
        lines[-1].append(child.tail or "")
    texts = [text for line in lines if (text := one_line("".join(line)))]
    return texts if len(lines) > 1 else []


def remove_line(begin: HtmlElement) -> None:
    """Remove the text of the line that begins at an element or line break; the other elements in the line stay."""
    if begin.tag == "br":
        begin.tail = None
        others = begin.itersiblings()
    else:
        begin.text = None
        others = begin.iterchildren()
    for other in others:
        if other.tag == "br":
            return
        other.tail = None

"""Lines right inside of an element, which line breaks (``br``) separate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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

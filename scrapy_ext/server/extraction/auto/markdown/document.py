"""Model of a document between HTML and Markdown: blocks, and the spans of text in them.

It has what CommonMark and the tables, tasks and struck text of GFM can express, and no more: a reader makes it of a
page or a PDF, and :mod:`.writing` writes it. Each span carries its whole style, so that marks never cross, whatever the
page nests in what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.page.text import is_wide
from scrapy_ext.server.extraction.auto.page.text import one_line as in_one_line

#: Nesting of quotes (1) and lists (2) within each other, as parsers count it, which stop at 20. Deeper ones are
#: dissolved.
MAX_NESTING: Final = 14


class Style(NamedTuple):
    """The marks of a span. Inside of each other from left to right."""

    link: str | None = None
    strong: bool = False
    emphasis: bool = False
    struck: bool = False

    def common(self, other: Style) -> Style:
        """Return the marks that go on from one to the other: an inner one ends with those around it."""
        is_link = self.link == other.link
        is_strong = is_link and self.strong == other.strong
        is_emphasis = is_strong and self.emphasis == other.emphasis
        return Style(
            self.link if is_link else None,
            is_link and self.strong and other.strong,
            is_strong and self.emphasis and other.emphasis,
            is_emphasis and self.struck and other.struck,
        )

    def with_mark(self, kind: str, *, on: bool = True) -> Style:
        """Return the style with a mark switched on or off: ``strong``, ``emphasis`` or ``struck``."""
        match kind:
            case "strong":
                return self._replace(strong=on)
            case "emphasis":
                return self._replace(emphasis=on)
        return self._replace(struck=on)


PLAIN: Final = Style()


class SpanKind(Enum):
    TEXT = "text"
    CODE = "code"
    #: ``text`` is the alternative text, ``url`` the address.
    IMAGE = "image"
    BREAK = "break"
    #: Box before a task of a list; ``text`` is ``x`` for one that is done, else a space.
    BOX = "box"


class Span(NamedTuple):
    kind: SpanKind
    text: str = ""
    style: Style = PLAIN
    url: str = ""


Spans = Sequence[Span]


class Paragraph(NamedTuple):
    spans: Spans


class Heading(NamedTuple):
    level: int
    spans: Spans


class CodeBlock(NamedTuple):
    text: str
    language: str = ""


class Quote(NamedTuple):
    blocks: list[Block]


class ListBlock(NamedTuple):
    """A list; ``start`` is the first number of an ordered one."""

    items: list[list[Block]]
    start: int | None = None


class Table(NamedTuple):
    """A table of rows of equal length; the header may be of empty cells."""

    header: list[Spans]
    rows: list[list[Spans]]


class Rule(NamedTuple):
    """A thematic break."""


Block = Paragraph | Heading | CodeBlock | Quote | ListBlock | Table | Rule


def settled(spans: Iterable[Span]) -> list[Span]:
    """Return spans with white space collapsed to single spaces, none at the ends and beside line breaks.

    A space or a break between two spans has the marks that both have, and spans of one style are one.
    """
    found: list[Span] = []
    #: White space before the next span, and whether a line break is in it.
    space, is_broken = "", False
    for span in spans:
        if span.kind is SpanKind.BREAK:
            is_broken = True
            continue
        text = span.text if span.kind is SpanKind.TEXT else "."
        space += text[: len(text) - len(text.lstrip())]
        if words := in_one_line(text):
            shown = span._replace(text=words) if span.kind is SpanKind.TEXT else span
            _join(found, SpanKind.BREAK if is_broken else _gap(found, space, shown), shown)
            space, is_broken = text[len(text.rstrip()) :], False
    return found


def _gap(found: list[Span], space: str, span: Span) -> SpanKind | None:
    """Return what the white space between two spans is: nothing, for a line break between characters of East Asia."""
    if not space:
        return None
    is_of_text = bool(found) and found[-1].kind is span.kind is SpanKind.TEXT
    if "\n" in space and is_of_text and is_wide(found[-1].text[-1]) and is_wide(span.text[0]):
        return None
    return SpanKind.TEXT


def _join(found: list[Span], gap: SpanKind | None, span: Span) -> None:
    if found and gap is SpanKind.BREAK:
        found.append(Span(SpanKind.BREAK, style=found[-1].style.common(span.style)))
    elif found and (gap is SpanKind.TEXT or found[-1].kind is span.kind is SpanKind.CODE):
        # Code beside code, such as keys to press, would be one.
        _add(found, Span(SpanKind.TEXT, " ", found[-1].style.common(span.style)))
    _add(found, span)


def _add(found: list[Span], span: Span) -> None:
    last = found[-1] if found else None
    if last is not None and last.kind is span.kind is SpanKind.TEXT and last.style == span.style:
        found[-1] = last._replace(text=last.text + span.text)
    else:
        found.append(span)


def one_line(spans: Iterable[Span]) -> list[Span]:
    """Return spans with spaces for line breaks."""
    return settled(Span(SpanKind.TEXT, " ") if span.kind is SpanKind.BREAK else span for span in spans)

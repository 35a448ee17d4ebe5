"""Text of a PDF as Markdown: paragraphs, and headings by the size of their letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from scrapy_ext.server.extraction.auto.markdown.document import (
    PLAIN,
    Block,
    Heading,
    Paragraph,
    Span,
    SpanKind,
    one_line,
    settled,
)
from scrapy_ext.server.extraction.auto.markdown.reading import MAX_LENGTH
from scrapy_ext.server.extraction.auto.markdown.writing import written
from scrapy_ext.server.extraction.auto.pdf.items import LARGE, PdfText
from scrapy_ext.server.extraction.auto.pdf.paragraphs import Paragraph as PdfParagraph
from scrapy_ext.server.extraction.auto.pdf.paragraphs import usual_size

#: Longest heading, in characters: longer texts in large letters are an introduction.
_LONGEST_HEADING: Final = 200
_BREAK: Final = Span(SpanKind.BREAK)


def markdown_of_pdf(text: PdfText) -> str:
    """Return the text of a document; paragraphs that follow each other without a gap are lines of one."""
    return written(list(_blocks(text)))


def _blocks(text: PdfText) -> Iterator[Block]:
    titles = text.titles
    usual = usual_size((each.size, len(each.text)) for each in text.paragraphs)
    left = MAX_LENGTH
    if titles:
        yield Heading(1, _spans(titles))
    rest = text.body if titles else text.paragraphs

    def is_large(each: PdfParagraph) -> bool:
        return each.size >= LARGE * usual and len(each.text) <= _LONGEST_HEADING

    for is_heading, group in groupby(rest, is_large):
        lines: list[PdfParagraph] = []
        for each in group:
            left -= len(each.text)
            if left < 0:
                return
            if is_heading:
                yield Heading(2, one_line(_spans([each])))
                continue
            if lines and not each.close:
                yield Paragraph(_spans(lines))
                lines = []
            lines.append(each)
        if lines:
            yield Paragraph(_spans(lines))


def _spans(paragraphs: Sequence[PdfParagraph]) -> list[Span]:
    spans: list[Span] = []
    for each in paragraphs:
        spans += [_BREAK, Span(SpanKind.TEXT, each.text, PLAIN)]
    return settled(spans)

"""Items of a PDF: its heading, and what is left out of the body."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.pdf.items import PdfText, article, page_content
from scrapy_ext.server.extraction.auto.pdf.reading import PdfDocument, PdfPage, TextLine, UnreadablePdfError

URL = "https://example.com/report.pdf"
BODY = "A paragraph of the text of this report, which is long enough to be one."


def text(*rows: tuple[str, float], title: str = "") -> PdfText:
    lines = [
        TextLine(words, 72, 72 + size * len(words) / 2, 150 + 50.0 * at, size) for at, (words, size) in enumerate(rows)
    ]
    return PdfText(PdfDocument([PdfPage(792, lines)], {"Title": title}, None))


def test_the_headline_is_the_largest_text():
    found = text(("Example Ltd.", 11), ("The report", 18), (BODY, 10), ("A section", 14), (BODY, 10))
    assert (found.headline, found.title) == ("The report", "The report")
    body = article(URL, found).articleBody or ""
    assert "The report" not in body
    assert body.startswith("Example Ltd.")


def test_the_headline_is_what_the_title_repeats():
    found = text(("EXAMPLE", 30), ("The report", 18), (BODY, 10), title="The report - Acme")
    assert (found.headline, found.title) == ("The report", "The report - Acme")


def test_without_large_letters_the_headline_is_the_title():
    found = text((BODY, 10), (BODY, 10), title="A report")
    assert (found.headline, found.title) == ("A report", "A report")
    assert article(URL, found).articleBody == page_content(URL, found).itemMain


def test_a_text_without_heading_and_title_has_no_headline():
    found = text((BODY, 10), title="report.docx")
    assert (found.headline, found.title) == (None, None)


def test_a_short_text_is_less_probable_and_none_is_no_item():
    short, long = page_content(URL, text(("Hello", 10))), page_content(URL, text(*[(BODY, 10)] * 9))
    assert short.metadata is not None
    assert long.metadata is not None
    assert 0 < (short.metadata.probability or 0) < (long.metadata.probability or 0) == 1
    with pytest.raises(UnreadablePdfError, match="no text"):
        text()

"""Opening of PDFs."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.pdf.reading import UnreadablePdfError, read
from tests.support.pdfs import file_of, with_password


def test_the_reason_of_a_pdf_is_not_that_of_the_one_before() -> None:
    without_pages = file_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"])
    for data, reason in ((with_password(), "needs a password"), (without_pages, "is damaged")):
        with pytest.raises(UnreadablePdfError, match=reason):
            read(data)

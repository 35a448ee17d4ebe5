"""The information of a document is used where it is plausible."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from scrapy_ext.server.extraction.auto.pdf import items
from scrapy_ext.server.extraction.auto.pdf.reading import PdfDocument


def document(language: str | None = None, **stated: str) -> PdfDocument:
    return PdfDocument([], stated, language)


@pytest.mark.parametrize("title", ["Annual Report 2020", "Über uns", "Microsoft and its documents", "A 3D model"])
def test_a_title_is_that_of_the_document(title):
    assert items.title_of(document(Title=f" {title}\n")) == title


@pytest.mark.parametrize(
    "title",
    ["", "Untitled", "untitled-2", "(anonymous)", "report_final.docx", "Microsoft Word - report.doc", "about:blank",
     "Slide 1", "PowerPoint Presentation", "https://example.com/a", "12 34", "Dokument1", "a" * 301],
)  # fmt: skip
def test_what_programs_write_is_no_title(title):
    assert items.title_of(document(Title=title)) is None


def test_the_name_of_the_program_is_no_part_of_the_title():
    assert items.title_of(document(Title="Microsoft Word - The report")) == "The report"


@pytest.mark.parametrize(
    ("author", "names"),
    [
        ("Jane Doe", ["Jane Doe"]),
        ("Jane Doe; John Roe", ["Jane Doe", "John Roe"]),
        ("Jane Doe, John Roe and Ann Poe", ["Jane Doe", "John Roe", "Ann Poe"]),
        ("Reuters", ["Reuters"]),
        ("Administrator", []),
        ("jdoe", []),
        ("Microsoft Office User", []),
        ("user@example.com", []),
        ("USER-PC", []),
        ("", []),
    ],
)
def test_authors_are_people_and_not_accounts(author, names):
    assert [each.name for each in items.authors_of(document(Author=author))] == names


def test_a_program_is_no_author():
    assert items.authors_of(document(Author="Acrobat Distiller", Producer="Acrobat Distiller")) == []


@pytest.mark.parametrize(
    ("raw", "iso"),
    [
        ("D:20200131235958+01'00'", "2020-01-31T23:59:58+01:00"),
        ("D:20200131235958+01'00", "2020-01-31T23:59:58+01:00"),
        ("D:20200131235958Z00'00'", "2020-01-31T23:59:58Z"),
        ("D:20200131", "2020-01-31T00:00:00"),
        ("20200131120000", "2020-01-31T12:00:00"),
    ],
)
def test_dates_become_iso_8601(raw, iso):
    date = items.published_on(document(CreationDate=raw))
    assert date is not None
    assert (date.iso, date.raw) == (iso, raw)


@pytest.mark.parametrize("raw", ["", "D:", "D:20201331", "D:19700101000000Z", "D:29990101000000Z", "last week"])
def test_an_impossible_date_is_none(raw):
    assert items.published_on(document(CreationDate=raw)) is None


def test_a_file_that_is_made_for_its_download_has_no_date():
    made = datetime.now(timezone.utc).strftime("D:%Y%m%d%H%M%SZ")
    assert items.published_on(document(CreationDate=made)) is None


def test_a_later_change_is_one_of_the_document():
    made = "D:20200131120000Z"
    later = items.modified_on(document(CreationDate=made, ModDate="D:20210131120000Z"))
    assert later is not None
    assert later.iso == "2021-01-31T12:00:00Z"
    for other in ("D:20200131120500Z", "D:20190131120000Z", ""):
        assert items.modified_on(document(CreationDate=made, ModDate=other)) is None


@pytest.mark.parametrize(("language", "code"), [("en-US", "en"), ("DE", "de"), ("deu", None), ("", None), (None, None)])
def test_the_language_is_its_two_letter_code(language, code):
    assert items.language_of(document(language)) == code

"""Dates are read as people write them, and not where they could be something else."""

import pytest

from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date, read
from scrapy_ext.server.extraction.auto.page.page import Page


def day(text: str, language: str = "en") -> str | None:
    date = read(text, Page(f"<html lang={language}><p>x", "https://example.com/a"))
    return date.iso.partition("T")[0] if date else None


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Jan 12, 24", "2024-01-12"),
        ("January 3rd, '09", "2009-01-03"),
        ("Jan 12 ’13", "2013-01-12"),
        ("12 Jan 24", "2024-01-12"),
        ("12-Jan-24", "2024-01-12"),
        ("12-Jan-2024", "2024-01-12"),
        ("Thu Aug 03, 06 4:17 pm", "2006-08-03"),
        ("Posted: Dec. 3, 99 at 10:30", "1999-12-03"),
    ],
)
def test_years_of_two_digits_are_read_beside_the_name_of_a_month(text: str, iso: str) -> None:
    assert day(text) == iso
    assert is_mostly_date(text)


@pytest.mark.parametrize(
    ("text", "language", "iso"),
    [("12. März 24", "de", "2024-03-12"), ("3 févr. 21", "fr", "2021-02-03"), ("12 янв 19", "ru", "2019-01-12")],
)
def test_they_are_read_in_the_language_of_the_page(text: str, language: str, iso: str) -> None:
    assert day(text, language) == iso


@pytest.mark.parametrize(
    "text",
    [
        "Jan 12, 10:30", "Jan 12, 10 am", "May 12, 30 people", "March 3, 20 minutes", "12 May 24 hours", "12 Mark 24",
        "Jan 12 24", "2 Pack 24", "12 Jan 24%", "Jun 14, 15, 16", "Jun 14, 15 & 16", "Jun 14, 15",
    ],
)  # fmt: skip
def test_other_numbers_behind_a_day_are_no_years(text: str) -> None:
    assert day(text) is None

"""Headers, footers and page numbers are left out where they are clearly repeated."""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.pdf.paragraphs import without_running_lines
from scrapy_ext.server.extraction.auto.pdf.reading import PdfPage, TextLine


def line(text: str, base: float) -> TextLine:
    return TextLine(text, 72, 500, base, 11)


def page(*rows: tuple[str, float]) -> PdfPage:
    return PdfPage(792, [line(text, base) for text, base in rows])


def texts(pages: list[PdfPage]) -> list[list[str]]:
    return [[each.text for each in page.lines] for page in without_running_lines(pages)]


def body(number: int) -> list[tuple[str, float]]:
    words = ("one", "two", "three", "four", "five")
    return [(f"body {words[at]} of {words[number]}", 150 + 100.0 * at) for at in range(5)]


def test_headers_footers_and_page_numbers_are_left_out():
    pages = [page(("Annual report", 40), *body(at), (f"Page {at + 7} of 99", 760)) for at in range(4)]
    assert texts(pages) == [[text for text, _ in body(at)] for at in range(4)]


def test_headers_of_left_and_right_pages_differ():
    pages = [page((("Chapter", "Book")[at % 2], 40), *body(at % 5)) for at in range(6)]
    assert not {"Chapter", "Book"} & {text for found in texts(pages) for text in found}


def test_a_line_on_two_of_many_pages_stays():
    pages = [page(("Summary", 40) if at in (1, 3) else (f"Other {'abcdef'[at]}", 40), *body(at)) for at in range(5)]
    assert "Summary" in texts(pages)[1]


def test_the_same_words_at_other_heights_stay():
    pages = [page((f"{'abcd'[at]} first", 20), ("Note", 40 + 8.0 * at), *body(at)) for at in range(4)]
    assert all("Note" in found for found in texts(pages))


def test_rows_of_numbers_that_do_not_count_pages_stay():
    numbers = (30, 10, 70, 20)
    pages = [page(*body(at), (f"Total {numbers[at]}", 760)) for at in range(4)]
    assert [found[-1] for found in texts(pages)] == ["Total 30", "Total 10", "Total 70", "Total 20"]


def test_of_two_pages_both_must_have_it():
    footer = ("https://example.com/a", 760)
    assert texts([page(*body(0), footer), page(*body(1), footer)])[1] == [text for text, _ in body(1)]
    assert texts([page(*body(0), footer), page(*body(1))])[0][-1] == footer[0]


def test_a_line_in_large_letters_stays_where_it_is_first():
    number = TextLine("Invoice 1/2021", 72, 300, 60, 14)
    pages = [PdfPage(792, [number, *page(*body(at)).lines]) for at in range(3)]
    assert [found[0] == "Invoice 1/2021" for found in texts(pages)] == [True, False, False]


def test_repeated_lines_of_the_text_stay():
    pages = [page(("Sold to: Jane Doe", 120), *body(at), ("Total", 600)) for at in range(3)]
    assert all({"Sold to: Jane Doe", "Total"} <= set(found) for found in texts(pages))


def test_pages_that_are_all_the_same_keep_it():
    assert texts([page(("Ticket", 40))] * 3) == [["Ticket"]] * 3


def test_a_single_page_keeps_all():
    assert texts([page(("Header", 40), ("1", 760))]) == [["Header", "1"]]

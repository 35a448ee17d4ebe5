"""Paragraphs are made of lines as a reader sees them."""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.pdf.paragraphs import paragraphs_of, text_of
from scrapy_ext.server.extraction.auto.pdf.reading import PdfPage, TextLine

LETTER = 5.0
#: Full lines of a column with 40 letters.
FULL = ("The quick brown fox jumps over the lazy", "dog and does so again and again, because", "a text needs lines")


def lines(*texts: str, left: float = 72, top: float = 100, size: float = 11, step: float = 13) -> list[TextLine]:
    return [TextLine(text, left, left + LETTER * len(text), top + step * at, size) for at, text in enumerate(texts)]


def found(*pages: list[TextLine]) -> list[str]:
    return [each.text for each in paragraphs_of([PdfPage(792, page) for page in pages])]


def test_lines_below_each_other_are_a_paragraph():
    assert found(lines(*FULL)) == [" ".join(FULL)]


def test_a_gap_begins_a_paragraph():
    assert found([*lines(*FULL), *lines("Another text.", top=150)]) == [" ".join(FULL), "Another text."]


def test_larger_letters_are_a_heading():
    assert found([*lines("A heading", size=18, top=80), *lines(*FULL)]) == ["A heading", " ".join(FULL)]


def test_an_indent_begins_a_paragraph():
    first = "It ends here, at the end of a full line."
    text = [*lines(*FULL[:2], first), *lines("Then comes another, indented", left=90, top=139)]
    assert found([*text, *lines("and goes on.", top=152)]) == [
        " ".join((*FULL[:2], first)),
        "Then comes another, indented and goes on.",
    ]


def test_a_line_that_ends_early_ends_its_paragraph():
    assert found(lines(*FULL[:2], "It ends.", *FULL[:2])) == [
        " ".join((*FULL[:2], "It ends.")),
        " ".join(FULL[:2]),
    ]


def test_of_justified_text_any_shorter_line_ends_a_paragraph():
    full = [line._replace(right=275) for line in lines(*FULL[:2], *FULL[:2], *FULL[:2])]
    full[2] = full[2]._replace(text="It ends here, and nearly at the edge.", right=270)
    assert [text.split()[0] for text in found(full)] == ["The", "dog"]


def test_items_of_a_list_are_lines_of_their_own_without_their_signs():
    pages = [
        PdfPage(792, lines("• the first item of the list, which goes", "on in a second line", "• the second", "• b"))
    ]
    made = paragraphs_of(pages)
    assert text_of(made) == "the first item of the list, which goes on in a second line\nthe second\nb"


def test_short_lines_are_lines_of_their_own():
    address = lines("Jane Doe", "1 Long Street", "London", top=160)
    assert found([*lines(*FULL), *address]) == [" ".join(FULL), "Jane Doe", "1 Long Street", "London"]


def test_text_beside_a_picture_is_a_paragraph():
    narrow = lines(
        "These lines are all shorter",
        "than the others, but they",
        "are full lines, all of them.",
        "Yet they go on, because it",
        "Is only a picture that",
        "Makes them so short",
        top=160,
    )
    assert found([*lines(*FULL), *narrow]) == [
        " ".join(FULL),
        "These lines are all shorter than the others, but they are full lines, all of them. Yet they go on, because it "
        "Is only a picture that Makes them so short",
    ]


def test_columns_follow_each_other_and_a_sentence_goes_on_in_the_next():
    right = lines("which was begun in the left one. And so", "it ends.", left=330)
    assert found([*lines(*FULL[:2], "this is the column"), *right]) == [
        f"{' '.join(FULL[:2])} this is the column which was begun in the left one. And so it ends."
    ]


def test_a_sentence_goes_on_across_a_note_and_the_end_of_a_page():
    note = lines("1 A note in small letters.", size=7, top=740)
    assert found([*lines(*FULL), *note], lines("that go on. The end.")) == [
        f"{' '.join(FULL)} that go on. The end.",
        "1 A note in small letters.",
    ]


def test_a_new_sentence_on_a_new_page_is_a_paragraph():
    assert found(lines(*FULL[:2], "the end of it."), lines(*FULL)) == [
        f"{' '.join(FULL[:2])} the end of it.",
        " ".join(FULL),
    ]


def test_cells_of_a_row_are_one_line():
    row = [TextLine("Price", 72, 100, 100, 11), TextLine("10.50", 300, 330, 100.5, 11)]
    assert found(row) == ["Price 10.50"]


def test_a_page_without_lines_has_none():
    assert found([], lines("a"), []) == ["a"]
    assert text_of([]) == ""

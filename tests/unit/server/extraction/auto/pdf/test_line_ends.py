"""The end of a line is joined with the next line as the word across them is written."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.pdf.paragraphs import LineEnds


def text_of(*lines: str) -> str:
    return LineEnds(lines).text_of(lines)


def test_lines_are_joined_with_a_space():
    assert text_of("The first line", "and the second.") == "The first line and the second."
    assert text_of("alone") == "alone"
    assert text_of() == ""


@pytest.mark.parametrize("hyphen", ["-", "\u2010", "\u00ad", "\x02", "\ufffe"])
def test_a_divided_word_is_one_again(hyphen):
    plain = ["a repetition of lines"] * 20
    assert text_of(*plain, f"a repe{hyphen}", "tition, and di", f"an instruc{hyphen}", "tion").endswith(
        "a repetition, and di an instruction"
    )


def test_a_hyphen_of_the_word_stays_where_the_document_has_the_word_with_it():
    lines = (
        "a well-known fact",
        "of instruction and division, divi-",
        "sion, not a divi-",
        "sion, nor an instruc-",
        "tion: well-",
        "known facts",
    )
    shown = (
        "a well-known fact of instruction and division, division, not a division, nor an instruction: well-known facts"
    )
    assert text_of(*lines) == shown


def test_a_hyphen_goes_where_the_document_has_the_word_without_it():
    plain = ["a line without a hyphen"] * 100
    lines = (*plain, "the database of a data-", "base")
    assert text_of(*lines).endswith("the database of a database")


def test_a_document_that_divides_no_words_keeps_its_hyphens():
    lines = ["a line without a hyphen"] * 100
    assert text_of(*lines, "a state-of-the-", "art thing").endswith("a state-of-the-art thing")
    found = text_of("a full-service shop", "of a full-", "service and a cross-", "country kind", "of two\x02", "way")
    assert found == "a full-service shop of a full-service and a cross-country kind of two-way"


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("by Jean-", "Paul", "by Jean-Paul"),
        ("NASA\x02", "funded", "NASA-funded"),
        ("pages 10-", "20", "pages 10-20"),
        ("a dash –", "and more", "a dash – and more"),
        ("a dash -", "and more", "a dash - and more"),
        ("日本語の", "文章です", "日本語の文章です"),
        ("日本語の", "text", "日本語の text"),
    ],
)
def test_what_divides_no_word_stays(before, after, joined):
    assert text_of(before, after) == joined

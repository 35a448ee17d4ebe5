"""Stored text is shown, never obeyed."""

from __future__ import annotations

import json
import unicodedata

import pytest
from rich.cells import cell_len

from scrapy_ext.api.violations import escaped
from scrapy_ext.commands.text import clock, counted, length, printable, printable_json, shortened, shown

#: Classes of the bidirectional algorithm whose characters are invisible and change the order of others.
_CHANGES_DIRECTION = {"LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
HOSTILE = "a\x1b[2J\x1b]0;owned\x07b\x9bc\u202ed\x7fe\rf\u200bg"


@pytest.mark.parametrize("newlines", [False, True])
def test_no_control_character_reaches_the_terminal(newlines: bool) -> None:
    text = "".join(map(chr, range(0x3000))) + HOSTILE + "\ud800"
    left = {
        character for character in printable(text, newlines=newlines) if unicodedata.category(character) in ("Cc", "Cs")
    }
    assert left == ({"\n"} if newlines else set())


def test_direction_and_invisible_characters_are_written_out() -> None:
    assert printable("\u202egnp.exe\u200b") == r"\u202egnp.exe\u200b"


def test_every_character_that_changes_the_direction_is_written_out() -> None:
    changing = {
        character
        for character in map(chr, range(0x110000))
        if unicodedata.bidirectional(character) in _CHANGES_DIRECTION
    } | set("\u061c\u200e\u200f")
    assert not changing & set(printable("".join(changing)))
    assert not changing & set(printable_json("".join(changing)))
    assert not changing & set(escaped("".join(changing)))


def test_text_of_any_language_is_left_as_it_is() -> None:
    text = "Ærø – naïve café, 東京, مرحبا, Ελλάδα, 🦊"
    assert printable(text) == text


def test_line_breaks_show_as_one_sign_or_stay() -> None:
    assert printable("a\r\nb\nc") == "a⏎b⏎c"
    assert printable("a\r\nb\nc", newlines=True) == "a\nb\nc"


def test_json_stays_the_same_json_when_it_is_made_safe() -> None:
    line = json.dumps({"name": HOSTILE}, ensure_ascii=False)
    safe = printable_json(line)
    assert json.loads(safe) == {"name": HOSTILE}
    assert not any(unicodedata.category(character) in ("Cc", "Cf") for character in safe)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (None, ""), (1.5, "1.5"), (True, "true"), (["a", 1], '["a",1]'), ({"b": None}, '{"b":null}')],
)
def test_a_field_is_shown_as_text_or_as_json(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0ms"), (999, "999ms"), (12_500, "12.5s"), (200_000, "3m20s"), (7_500_000, "2h05m"), (None, "")],
)
def test_lengths_of_time_are_short(milliseconds: object, text: str) -> None:
    assert length(milliseconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(1_700_000_000_000, "2023-11-14 22:13:20"), (None, ""), ("soon", ""), (10**30, str(10**30)), (True, "")],
)
def test_times_are_utc_and_a_wrong_one_does_no_harm(milliseconds: object, text: str) -> None:
    assert clock(milliseconds) == text


def test_one_thing_is_not_several() -> None:
    assert [counted(number, "error") for number in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]


@pytest.mark.parametrize("width", range(1, 30))
def test_a_long_text_loses_its_middle_and_keeps_its_width(width: int) -> None:
    url = "http://shop.example/c/東京/item/4711"
    text = shortened(url, width)
    assert cell_len(text) == width
    assert text.count("…") == 1
    head, _, tail = text.partition("…")
    assert url.startswith(head.rstrip())
    assert url.endswith(tail.lstrip())
    assert abs(cell_len(head) - cell_len(tail)) <= 1


def test_a_text_that_fits_is_left_as_it_is() -> None:
    assert shortened("http://a/", 9) == "http://a/"

"""Parsing of JSON in pages that is not quite JSON."""

from __future__ import annotations

import pytest

from scrapy_ext.server.extraction.auto.page.lenient_json import loads


def test_sound_json_is_read_as_it_is_with_numbers_as_they_stand() -> None:
    assert loads('{"a": [1, 2.50, true, null, "x"]}') == [{"a": ["1", "2.50", True, None, "x"]}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "1",}', {"a": "1"}),
        ('["a", "b",]', ["a", "b"]),
        ('{"a": "1" "b": "2"}', {"a": "1", "b": "2"}),
        ('// note\n{"a": /* here */ "1"}', {"a": "1"}),
        ('<!--\n{"a": "1"}\n-->', {"a": "1"}),
        ('<![CDATA[{"a": "1"}]]>', {"a": "1"}),
        ('{"a": "1"};', {"a": "1"}),
        ('{"a": "say "hi" to us", "b": "2"}', {"a": 'say "hi" to us', "b": "2"}),
        ('{"a": "two\nlines",}', {"a": "two\nlines"}),
        ('{"a": "caf\\u00e9 \\ud83d\\ude00 \\/ \\"x\\"",}', {"a": 'café 😀 / "x"'}),
        ('{a: 1.50, "b": true, "c": null,}', {"a": "1.50", "b": True, "c": None}),
        ('{"a": {"b": ["1", "2"', {"a": {"b": ["1", "2"]}}),
        ('{"a": "cut in the mid', {"a": "cut in the mid"}),
        ('{"a": ["1", {"b": "2"}', {"a": ["1", {"b": "2"}]}),
        ('{"a": , "b": "2"}', {"b": "2"}),
    ],
)
def test_what_is_broken_is_read_as_it_was_meant(text: str, value: object) -> None:
    found = loads(text)[0]
    if isinstance(found, dict) and isinstance(value, dict):
        found = {name: inner for name, inner in found.items() if name in value}
    assert found == value


def test_several_objects_in_a_row_are_all_read() -> None:
    assert loads('{"a": "1"}\n{"b": "2"}') == [{"a": "1"}, {"b": "2"}]


@pytest.mark.parametrize("text", ["", "   ", "no json", "}}}]]]", '"', "\\", ":::,,,", "nan", "/*", "//"])
def test_what_is_no_json_gives_nothing_that_is_an_object(text: str) -> None:
    assert not [value for value in loads(text) if isinstance(value, dict | list)]


def test_constants_that_are_no_json_count_as_nothing() -> None:
    assert loads('{"a": NaN, "b": Infinity}') == [{"a": None, "b": None}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "https://x.example" // one\n, "b": "2"}', {"a": "https://x.example", "b": "2"}),
        ('{"a": "1" // one\n "b": "2"}', {"a": "1", "b": "2"}),
        ('{"a": 1 // one\n, "b": 2 /* two */}', {"a": "1", "b": "2"}),
        ('{"a": "/* no */ // comment", "b": "2",}', {"a": "/* no */ // comment", "b": "2"}),
        ("{'a': 'it\\'s', 'b': 'say \"hi\"'}", {"a": "it's", "b": 'say "hi"'}),
        ("{'a': 'Ann's mug', 'b': '2'}", {"a": "Ann's mug", "b": "2"}),
        ('{"a": 19,90, "b": "2"}', {"a": None, "b": "2"}),
        ('{"a": 1.299,00}', {"a": None}),
        ('{"a": [19,90],}', {"a": ["19", "90"]}),
        ('{"a": 12.50 EUR, "b": 1 299}', {"a": "12.50 EUR", "b": "1 299"}),
        ('{"a": "x\\x27y",}', {"a": "x'y"}),
        ('{"a": true "b": false}', {"a": True, "b": False}),
        ('"{\\"a\\": \\"1\\"}"', {"a": "1"}),
        ('{"a": "1" b: "2"}', {"a": "1", "b": "2"}),
    ],
)
def test_strings_and_comments_are_distinguished(text: str, value: object) -> None:
    assert loads(text) == [value]


def test_hostile_json_takes_linear_time() -> None:
    for piece in ('"//', '"/*', "'//x\n", '":"', '" ' * 30, "/*", '{"a":1,', "\\'"):
        loads("{" + piece * (200_000 // len(piece)))

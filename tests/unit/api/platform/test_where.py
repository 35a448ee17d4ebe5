"""Conditions as people type them: what they mean, and what is said about mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.api.platform.conditions import filter_of, number_in
from scrapy_ext.api.platform.where import MAX_WHERE, OPERATORS, STATES, parse_where, written
from scrapy_ext.api.violations import ContractError

ITEMS: list[dict[str, Any]] = [
    {"name": "Kettle, wide", "price": "37.50", "color": "red", "stock": 3, "new": True},
    {"name": "Desk lamp", "price": 20, "color": "Red", "stock": None, "new": False, "offers": [{"price": 4}]},
    {"name": "walnut CHAIR", "price": "$1,299.00", "brand": {"name": "Harbour"}, "a.b": 1, "tags": ["kettle", 7]},
    {"name": "Käse", "price": "on request", "color": "", "new": "true", "offers": []},
]


def found(where: str) -> list[int]:
    conditions = filter_of([clause.condition for clause in parse_where(where)])
    assert conditions is not None
    return [n for n, item in enumerate(ITEMS) if conditions.chooses(json.dumps(item).encode())]


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("price > 20", [0, 2]),
        ("price>=20", [0, 1, 2]),
        ("price < 20", []),
        ("price = 37.5", [0]),
        ("price != 20", [0, 2, 3]),
        ("price = 20, 37.50", [0, 1]),
        ('price = "37.50"', [0]),
        ('price = "37.5"', []),
        ("name ~ kettle", [0]),
        ("name ~ KÄSE", [3]),
        ("name ~ desk lamp", [1]),
        ("name ~ kettle, chair", [0, 2]),
        ("name !~ e", [2]),
        ('name = "Kettle, wide"', [0]),
        ("name > X", [2]),
        ("color = red", [0]),
        ("color is missing", [2]),
        ("color missing", [2]),
        ("color is not missing", [0, 1, 3]),
        ("color is present", [0, 1, 3]),
        ("color is empty", [2, 3]),
        ("color is not empty", [0, 1]),
        ("stock is present", [0, 1]),
        ("stock is empty", [1, 2, 3]),
        ("new = true", [0, 3]),
        ("stock = null", [1]),
        ("price > 20 AND color is present", [0]),
        ("offers.0.price < 5", [1]),
        ("offers.0.price is missing", [0, 2, 3]),
        ("brand.name ~ harb", [2]),
        ("a.b = 1", [2]),
        ("brand ~ harbour", [2]),
        ("tags ~ 7", [2]),
        ("* ~ kettle", [0, 2]),
        ("* ~ harbour and * !~ lamp", [2]),
        ("* ~ color", []),
        ('name matches "^K.*e$"', [0, 3]),
        ('"name" ~ "e, w"', [0]),
    ],
)
def test_a_condition_chooses_what_it_says(where: str, numbers: list[int]) -> None:
    assert found(where) == numbers


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "must have the name of a field here (at character 1)"),
        ("price", "must have an operator after 'price' (at character 6)"),
        ("price >", "must have a value after > (at character 8)"),
        ("price > and name ~ x", "must have a value after > (at character 9)"),
        ("price is cheap", "must have an operator before 'is' (at character 7)"),
        ("price > 20 or name ~ x", 'has "or", which does not exist (at character 12)'),
        ("price > 20 name ~ x", "has ~ within a value (at character 17)"),
        ('name = "x" color = red', "has 'color' where the next condition begins (at character 12)"),
        ('name = "x', "has a quote without its end (at character 8)"),
        ("price > 20 and", "must have the name of a field here (at character 15)"),
        ("price > 20 !", "has a character that cannot stand here"),
        ("* > 3", "has * with an operator other than ~ and !~"),
        ("name matches (", "is not a regular expression"),
        (f"name matches {'(' * 20}a+{')+' * 20}", "must have expressions with at most 8 groups in one another"),
        ("name matches a{9}", "must have expressions without braces"),
        ("a = 1 and " * 60 + "a = 1", "may have 50 conditions at most"),
        ("a" * (MAX_WHERE + 1), f"must be {MAX_WHERE} characters at most"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_remedy(where: str, said: str) -> None:
    with pytest.raises(ContractError) as caught:
        parse_where(where)
    (fault,) = caught.value.violations
    assert said.partition(" (at")[0] in fault.rule
    assert said.rpartition("(")[2] in fault.rule
    assert fault.remedy


@pytest.mark.parametrize("field", ["name", "a b", "and", 'quo"te\\', "*x", "a=b", "naïve", "", "x\ny", "\u202e"])
@pytest.mark.parametrize("value", ["20", "red", "and", 'a "quoted" \\ text', "=x", "two words", "true", ",", "x\u0000"])
def test_a_condition_from_a_form_has_a_text_with_the_same_meaning(field: str, value: str) -> None:
    for operator in (*(each for each in OPERATORS if each != "matches"), *STATES):
        text = written(field, operator, value)
        (clause,) = parse_where(text)
        assert (clause.text, clause.form[0]) == (text, field)
        if operator in ("~", "!~"):
            assert clause.form[2] == [value]
        first, second = parse_where(f"{text} and {text}")
        assert first.form == second.form == clause.form


def test_the_conditions_of_a_text_can_be_put_together_again() -> None:
    clauses = parse_where('price > 20  and "a b" is not empty and color = red, blue AND name ~ desk lamp')
    texts = [clause.text for clause in clauses]
    assert texts == ["price > 20", '"a b" is not empty', "color = red, blue", "name ~ desk lamp"]
    assert [clause.form for clause in parse_where(" and ".join(texts))] == [clause.form for clause in clauses]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7), (1.5, 1.5), ("37.50", 37.5), ("-3", -3.0), ("$1,299.00", 1299.0), ("59,90 €", 59.9), ("EUR 5", 5.0),
        ("1.299,00", 1299.0), ("1,299", 1299.0), ("1.299", 1.299), ("5 kg", 5.0), ("12 %", 12.0), ("1 apples", None),
        (True, None), (None, None), ("", None), ("2024-01-02", None), ("1.2.3", None), ("9" * 50, None), ([1], None),
        ("٣", None), ("1e3", None), ("20 - 30", None),
    ],
)  # fmt: skip
def test_a_number_is_read_from_usual_texts_alone(value: Any, number: float | None) -> None:
    assert number_in(value) == number


def test_fields_with_any_name_are_read() -> None:
    names = ["a b", 'quo"te', "back\\slash", "", "x\ny", "é", "\u202e", "f0", "self"]
    for name in names:
        conditions = filter_of([clause.condition for clause in parse_where(written(name, "=", "1"))])
        assert conditions is not None
        assert conditions.chooses(json.dumps({"other": [1, {"b": 2}], name: 1}).encode()), name
        assert not conditions.chooses(b'{"other":1}'), name


def test_escapes_of_the_writer_do_not_hide_a_text() -> None:
    conditions = filter_of([clause.condition for clause in parse_where("* ~ käse/2")])
    assert conditions is not None
    assert conditions.chooses(b'{"name":"K\\u00e4se\\/2"}')
    assert conditions.chooses('{"deep":[{"x":"KÄSE/2"}]}'.encode())
    assert not conditions.chooses('{"käse/2":1}'.encode())

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.extraction import check
from scrapy_ext.api.extraction.attributes import MAX_ALL, MAX_ATTRIBUTES, Attribute, answer_of

URL = "https://example.com/"
STRING = {"type": "string"}


def faults(attributes: Any, **fields: Any) -> list[tuple[str, int]]:
    broken = check({"url": URL, "product": True, "customAttributes": attributes, **fields})
    return [(each.field, each.status) for each in broken]


def test_attributes_of_every_type_are_admitted() -> None:
    assert not faults(
        {
            "summary": {"type": "string", "description": "In two sentences.", "enum": ["a", "b"]},
            "wheels": {"type": "integer", "enum": [2, 3, 4]},
            "weight": {"type": "number"},
            "folds": {"type": "boolean"},
            "colours": {"type": "array", "items": {"type": "string"}},
            "size": {"type": "object", "properties": {"width": {"type": "number"}, "unit": STRING}},
        }
    )


def nested(depth: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": nested(depth - 1) if depth > 1 else STRING}}


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ({"a": {}}, "customAttributes.a"),
        ({"a": "string"}, "customAttributes.a"),
        ({"a": {"type": 1}}, "customAttributes.a"),
        ({"a": {"type": "date"}}, "customAttributes.a.type"),
        ({"": STRING}, "customAttributes."),
        ({"a" * 101: STRING}, "customAttributes." + "a" * 57 + "..."),
        ({"a": {"type": "string", "description": 5}}, "customAttributes.a.description"),
        ({"a": {"type": "string", "description": "x" * 2001}}, "customAttributes.a.description"),
        ({"a": {"type": "string", "enum": []}}, "customAttributes.a.enum"),
        ({"a": {"type": "string", "enum": "x"}}, "customAttributes.a.enum"),
        ({"a": {"type": "string", "enum": [None]}}, "customAttributes.a.enum"),
        ({"a": {"type": "string", "enum": ["x" * 201]}}, "customAttributes.a.enum"),
        ({"a": {"type": "object"}}, "customAttributes.a.properties"),
        ({"a": {"type": "object", "properties": {"b": {"type": "x"}}}}, "customAttributes.a.properties.b.type"),
        ({"a": {"type": "array", "items": {"type": "x"}}}, "customAttributes.a.items.type"),
        ({"a": nested(4)}, "customAttributes.a.properties.a.properties.a.properties.a"),
        ({f"a{n}": STRING for n in range(MAX_ATTRIBUTES + 1)}, "customAttributes"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(attributes: dict[str, Any], field: str) -> None:
    assert (field, 400) in faults(attributes)


def test_all_attributes_together_are_bounded() -> None:
    inner = {f"b{n}": STRING for n in range(MAX_ATTRIBUTES)}
    many = {f"a{n}": {"type": "object", "properties": inner} for n in range(MAX_ALL // MAX_ATTRIBUTES)}
    assert faults(many)


@pytest.mark.parametrize("field", [{"customAttributes": {"a": STRING}}, {"fieldSources": True}])
def test_what_belongs_to_automatic_extraction_needs_it_and_serp_has_none_of_it(field: dict[str, Any]) -> None:
    (name,) = field
    assert [(each.field, each.status) for each in check({"url": URL, "browserHtml": True, **field})] == [(name, 422)]
    assert [(each.field, each.status) for each in check({"url": URL, "serp": True, **field})] == [(name, 422)]
    assert not check({"url": URL, "article": True, **field})


@pytest.mark.parametrize(
    ("value", "attribute", "answer"),
    [
        ("red", Attribute("string"), "red"),
        ("red", Attribute("string", enum=["red", "blue"]), "red"),
        ("green", Attribute("string", enum=["red", "blue"]), None),
        (5, Attribute("string"), None),
        ("", Attribute("string"), None),
        (5, Attribute("integer"), 5),
        (5.0, Attribute("integer"), 5),
        (5.5, Attribute("integer"), None),
        (True, Attribute("integer"), None),
        (True, Attribute("number", enum=[1, 2]), None),
        (2.5, Attribute("number"), 2.5),
        (float("inf"), Attribute("integer"), None),
        ("yes", Attribute("boolean"), None),
        (False, Attribute("boolean"), False),
        (["a", 1, "b"], Attribute("array"), ["a", "b"]),
        ([1, "b"], Attribute("array", items=Attribute("integer")), [1]),
        ("a", Attribute("array"), None),
        ({"a": "x", "c": 1}, Attribute("object", properties={"a": Attribute("string"), "b": Attribute("string")}),
         {"a": "x", "b": None}),
        ({"ignore": "previous instructions"}, Attribute("string"), None),
    ],
)  # fmt: skip
def test_only_values_of_the_type_and_among_the_possible_ones_are_answers(
    value: Any, attribute: Attribute, answer: Any
) -> None:
    assert answer_of(value, attribute) == answer


def test_texts_and_arrays_of_answers_are_cut() -> None:
    assert len(answer_of("x" * 20_000, Attribute("string"))) == 10_000
    assert len(answer_of(["x"] * 1_000, Attribute("array"))) == 200

"""Types of arguments in annotations, and values that do not have them."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.argument_types import ArgumentType, argument_faults, type_of
from scrapy_ext.api.platform.versions import SpiderArgument


@pytest.mark.parametrize(
    ("annotation", "kind", "choices"),
    [
        (None, "", ()),
        ("int", "int", ()),
        ("int | None", "int", ()),
        ("Optional[float]", "float", ()),
        ("typing.Union[None, bool]", "bool", ()),
        ("'int | None'", "int", ()),
        ("Annotated[int, Field(ge=1)]", "int", ()),
        ("Literal['a', 'b', 3]", "", ("a", "b", "3")),
        ("Optional[Literal['a']] | Literal['b']", "", ("a", "b")),
        ("Literal['a'] | str", "", ()),
        ("Literal[-1, 0, 1.5, None]", "", ("-1", "0", "1.5")),
        ("Literal[Color.RED, 'a']", "", ()),
        ("int | str", "", ()),
        ("list[int]", "", ()),
        ("str", "", ()),
        ("shop.Category", "", ()),
        ("int; import os", "", ()),
        ("(" * 300, "", ()),
        ("'" + "x|" * 5000 + "x'", "", ()),
        ("\0", "", ()),
        (r"Literal['\d']", "", ()),
        ("Literal[" + ", ".join(map(repr, "abc")), "", ()),
    ],
)
def test_annotations_name_the_type_of_an_argument_or_any_text(
    annotation: str | None, kind: str, choices: tuple[str, ...]
) -> None:
    assert type_of(annotation) == ArgumentType(kind, choices)


@pytest.mark.parametrize(
    ("annotation", "value", "rule"),
    [
        ("int", "7", ""),
        ("int", " 7 ", ""),
        ("int", "seven", "must be a whole number, got 'seven'"),
        ("int", "9" * 5000, "must be a whole number, got '" + "9" * 60 + "'"),
        ("float", "1e3", ""),
        ("float", "1,5", "must be a number, got '1,5'"),
        ("Literal['a', 'b']", "c", "must be one of a, b, got 'c'"),
        ("Literal['a', 'b']", "a", ""),
        ("bool", "perhaps", ""),
    ],
)
def test_a_value_that_is_not_of_the_type_is_named_with_the_rule(annotation: str, value: str, rule: str) -> None:
    argument = SpiderArgument("pages", annotation=annotation)
    assert [each.rule for each in argument_faults([argument], {"pages": value})] == ([rule] if rule else [])


def test_an_argument_without_a_default_is_required_and_an_empty_one_is_given() -> None:
    known = [SpiderArgument("category", required=True), SpiderArgument("pages", default="3", annotation="int")]
    assert [(each.field, each.rule) for each in argument_faults(known, {})] == [
        ("argument.category", "is required: the spider has no default for it")
    ]
    assert list(argument_faults(known, {"category": "", "pages": 3, "other": "x"})) == []

"""Parameters that spiders declare with scrapy-spider-metadata, of which their class has the JSON schema."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scrapy import Spider

from scrapy_ext.api.platform.versions import MAX_SPIDER, SpiderArgument
from scrapy_ext.server.jobs.versions.spider_list import _spider, parameters_of

#: What pydantic makes of a model with each of these types.
SCHEMA = {
    "$defs": {"Kind": {"enum": ["a", "b"], "title": "Kind", "type": "string"}},
    "properties": {
        "url": {"description": "Where to <b>start.", "title": "Url", "type": "string"},
        "pages": {"default": 3, "title": "Pages", "type": "integer"},
        "kind": {"$ref": "#/$defs/Kind"},
        "whole": {"allOf": [{"$ref": "#/$defs/Kind"}], "default": "a"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}], "default": None},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "tags": {"default": [], "items": {"type": "string"}, "type": "array"},
        "one": {"const": "x"},
        "many": {"enum": [f"choice {n}" for n in range(1000)]},
    },
    "required": ["url", "kind"],
}


def spider(schema: Any) -> type[Spider]:
    class Declared(Spider):
        name = "declared"

        def __init__(self, *args: Any, pages: str = "9", own: str = "", **kwargs: Any) -> None:
            """Make it.

            pages: Pages to read.
            url: Not this text.
            """

        @classmethod
        def get_param_schema(cls, normalize: bool = False) -> Any:
            if isinstance(schema, Exception):
                raise schema
            return schema

    return Declared


def test_declared_parameters_have_types_defaults_and_texts_and_come_before_those_of_the_signature() -> None:
    info = _spider("declared", spider(SCHEMA), [])
    assert info.arguments == [
        SpiderArgument("url", True, None, "str", "Where to <b>start."),
        SpiderArgument("pages", False, "3", "int", "Pages to read."),
        SpiderArgument("kind", True, None, "Literal['a', 'b']"),
        SpiderArgument("whole", False, "'a'", "Literal['a', 'b']"),
        SpiderArgument("maybe", False, "None", "Literal['a', 'b'] | None"),
        SpiderArgument("price", False, "None", "float | None"),
        SpiderArgument("tags", False, "[]", "list"),
        SpiderArgument("one", False, None, "Literal['x']"),
        SpiderArgument("many"),
        SpiderArgument("own", False, "''", "str"),
    ]
    assert info.custom


LOOP: dict[str, Any] = {"properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}]}}}
LOOP["$defs"] = {"A": LOOP["properties"]["a"]}


@pytest.mark.parametrize(
    "schema",
    [None, [], {}, {"properties": []}, {"properties": None}, ValueError("no model"), RecursionError(), "text"],
    ids=repr,
)
def test_a_schema_that_is_none_gives_no_parameters(schema: Any) -> None:
    assert parameters_of(spider(schema)) == []
    assert [each.name for each in _spider("declared", spider(schema), []).arguments] == ["pages", "own"]


def test_a_schema_that_is_odd_or_large_does_no_harm() -> None:
    assert parameters_of(spider(LOOP)) == [SpiderArgument("a")]
    odd = {
        "properties": {1: {}, "no": 5, "": {}, "ref": {"$ref": 7}, "type": {"type": ["a"]}, "doc": {"description": 3}}
    }
    assert [each.name for each in parameters_of(spider(odd))] == ["ref", "type", "doc"]
    long = "\u2028<b>" * 100_000
    field = {"description": long, "default": long, "enum": ["x" * 40] * 24}
    large = {"properties": {f"{n}{'n' * 100}": field for n in range(500)}}
    found = parameters_of(spider(large))
    assert len(found) == 100
    assert max(len(each.help) for each in found) <= 200
    assert len(msgspec.json.encode(_spider("declared", spider(large), []))) < MAX_SPIDER

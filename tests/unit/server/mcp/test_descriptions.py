"""Tools as agents see them: names, schemas and words."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec
import pytest

from scrapy_ext.server.mcp.services import Need
from scrapy_ext.server.mcp.tool import Tool
from scrapy_ext.server.mcp.tools import BY_NAME, TOOLS

each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(TOOLS)


@each_tool
def test_schemas_name_and_explain_every_argument(tool: Tool[Any]) -> None:
    jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **tool.schema})
    assert tool.schema["type"] == "object"
    assert tool.schema["additionalProperties"] is False
    for name, schema in tool.schema["properties"].items():
        assert schema["description"].endswith((".", "]].", ".'")), name
        assert "anyOf" not in schema
        if schema.get("type") == "string":
            assert schema.keys() & {"maxLength", "pattern", "enum"}, name
        if schema.get("type") == "array":
            assert "maxItems" in schema, name
    assert tool.description.endswith(".")


@each_tool
def test_hints_agree_with_the_right_that_a_tool_needs(tool: Tool[Any]) -> None:
    if tool.need not in (Need.RUN, Need.WRITE):
        assert not tool.destructive
        assert tool.idempotent
    assert tool.open_world is (tool.need is Need.EXTRACT or tool.name in ("run_spider", "add_schedule"))


@each_tool
def test_results_with_foreign_text_are_bounded(tool: Tool[Any]) -> None:
    if tool.need not in (Need.RUN, Need.WRITE) and tool.name != "wait_for_job":
        assert {"cursor", "max_bytes"} <= tool.schema["properties"].keys()


def test_the_schema_and_the_check_are_one() -> None:
    checks = jsonschema_rs.validator_for(BY_NAME["list_items"].schema)
    for arguments in ({}, {"job": "1/2"}, {"job": "1/2/3", "limit": 0}, {"job": "1/2/3", "x": 1}, {"job": 1}):
        assert not checks.is_valid(arguments)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(arguments, BY_NAME["list_items"].arguments, strict=False)
    assert checks.is_valid({"job": "1/2/3", "filter": [["a", "=", [1]]]})


def test_a_filter_is_text_or_an_array() -> None:
    schema = BY_NAME["list_items"].schema
    assert schema["properties"]["filter"]["type"] == ["array", "string"]
    checks = jsonschema_rs.validator_for(schema)
    for given in ("price > 20", [["price", "num>", [20]]], []):
        assert checks.is_valid({"job": "1/2/3", "filter": given})
        msgspec.convert({"job": "1/2/3", "filter": given}, BY_NAME["list_items"].arguments, strict=False)
    for given in (5, ["price > 20"], "x" * 2001, [["a", "=", [1]]] * 21):
        assert not checks.is_valid({"job": "1/2/3", "filter": given})
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"job": "1/2/3", "filter": given}, BY_NAME["list_items"].arguments, strict=False)

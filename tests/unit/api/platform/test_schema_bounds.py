"""Schemas are bounded when they are saved: each bound is named, and schemas that people write are within all."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.api.platform.monitors import monitor_of
from scrapy_ext.api.platform.schema_bounds import MAX_DEPTH, schema_faults
from scrapy_ext.api.violations import ContractError


def doubling(levels: int, reference: str = "$ref", way: str = "#/$defs/l{}") -> dict[str, Any]:
    parts: dict[str, Any] = {"l0": {"type": "integer", "$anchor": "l0", "$dynamicAnchor": "l0"}}
    for level in range(1, levels):
        below = {reference: way.format(level - 1)}
        parts[f"l{level}"] = {"$anchor": f"l{level}", "$dynamicAnchor": f"l{level}", "allOf": [below, below]}
    return {"$defs": parts, reference: way.format(levels - 1)}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth - 1):
        schema = {"not": schema}
    return schema


def wide(levels: int) -> dict[str, Any]:
    """Multiplies over the fields of an item rather than at one place."""
    parts: dict[str, Any] = {"l0": {}}
    for level in range(1, levels):
        parts[f"l{level}"] = {
            "properties": {"a": {"$ref": f"#/$defs/l{level - 1}"}, "b": {"$ref": f"#/$defs/l{level - 1}"}}
        }
    return {"$defs": parts, "$ref": f"#/$defs/l{levels - 1}"}


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        (doubling(25), "20000 evaluations"),
        (doubling(28, way="#l{}"), "20000 evaluations"),
        (doubling(28, "$dynamicRef", "#l{}"), "20000 evaluations"),
        ({"$id": "https://x.example/s", **doubling(28, way="s#/$defs/l{}")}, "20000 evaluations"),
        ({"properties": {"definitions": doubling(20)}}, None),  # its references lead nowhere
        ({"properties": {"definitions": {"$ref": "#/$defs/l19"}}, **doubling(20)}, "20000 evaluations"),
        ({"dependentSchemas": {"enum": {"$ref": "#/$defs/l19"}}, "$defs": doubling(20)["$defs"]}, "20000 evaluations"),
        (wide(28), "20000 evaluations"),
        ({"allOf": [{"$ref": "#/$defs/a"}] * 501, "$defs": {"a": {}}}, "500 references"),
        ({"properties": {f"f{n}": {"pattern": "a"} for n in range(101)}}, "100 patterns"),
        ({"patternProperties": {f"f{n}": {} for n in range(101)}}, "100 patterns"),
        ({"pattern": "a" * 501}, "500 characters"),
        (nested(MAX_DEPTH + 1), "60 objects and arrays in one another"),
        (nested(5_000), "60 objects and arrays in one another"),
    ],
)
def test_a_schema_over_a_bound_is_refused(schema: dict[str, Any], rule: str | None) -> None:
    faults = [f"{each.field}: {each.rule}. {each.remedy}" for each in schema_faults(schema)]
    assert len(faults) == (rule is not None)
    assert all(f"{rule}" in fault and fault.startswith("schema: may ") for fault in faults)


def test_the_refusal_is_that_of_a_new_monitor() -> None:
    with pytest.raises(ContractError, match=r"schema: may need 20000 evaluations .* multiply"):
        monitor_of({"schema": doubling(25)})


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
        {"$ref": "http://json-schema.org/draft-07/schema#"},
        {"$ref": "#/nowhere/1/~0a"},
        {"$ref": "http://[", "$id": "http://["},
        {"$recursiveRef": "#", "properties": {"a": {"$recursiveRef": "#"}}},
        {"$defs": {"price": {"type": "object", "properties": {"amount": {"type": "string", "pattern": r"^\d+$"}}}},
         "properties": {f"price{n}": {"$ref": "#/$defs/price"} for n in range(200)}},
        nested(MAX_DEPTH),
        {"properties": {f"field{n}": {"type": ["string", "null"], "minLength": 1} for n in range(400)}},
        {"enum": list(range(30_000))},
    ],
)  # fmt: skip
def test_schemas_that_people_write_are_within_the_bounds(schema: Any) -> None:
    assert list(schema_faults(schema)) == []

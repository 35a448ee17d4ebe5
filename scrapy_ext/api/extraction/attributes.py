"""``customAttributes``: attributes that a caller requests beyond the item, and the values that fit them.

The contract shows ``type`` (``string``), ``description`` and ``enum``. The other types are those of JSON; ``items``
describes the elements of an array, ``properties`` the members of an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import Violation

TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")
MAX_ATTRIBUTES: Final = 100
MAX_NAME_LENGTH: Final = 100
MAX_DESCRIPTION_LENGTH: Final = 2_000
MAX_ENUM: Final = 200
MAX_ENUM_VALUE_LENGTH: Final = 200
#: Nesting depth of objects and arrays.
MAX_DEPTH: Final = 4
#: Maximum number of attributes, including nested ones.
MAX_ALL: Final = 300
#: Limits of the values of an answer: longer texts and arrays are cut.
MAX_TEXT_LENGTH: Final = 10_000
MAX_ITEMS: Final = 200


class Attribute(msgspec.Struct, frozen=True, omit_defaults=True):
    """A requested attribute: the JSON type of its value, a description, and its allowed values."""

    type: str
    description: str = ""
    enum: list[str | int | float | bool] | None = None
    items: Attribute | None = None
    properties: dict[str, Attribute] | None = None


def faults_of(attributes: dict[str, Any]) -> Iterator[Violation]:
    """Yield the violations in the ``customAttributes`` of a request."""
    yield from _faults_of_members("customAttributes", attributes, MAX_DEPTH, [MAX_ALL])


def read_attributes(attributes: dict[str, Any]) -> dict[str, Attribute]:
    """Convert valid attributes to records."""
    return msgspec.convert(attributes, dict[str, Attribute])


def answer_of(value: object, attribute: Attribute) -> Any:
    """Return a value as the answer for an attribute; None if it has another type or is not in ``enum``."""
    fitted = _FITTED[attribute.type](value, attribute)
    if fitted is not None and attribute.enum is not None and attribute.type not in ("array", "object"):
        return next((choice for choice in attribute.enum if choice == fitted and _alike(choice, fitted)), None)
    return fitted


def _alike(choice: object, value: object) -> bool:
    """Return true when both are booleans or neither is: to Python, True equals 1."""
    return isinstance(choice, bool) == isinstance(value, bool)


def _string(value: object, _: Attribute) -> str | None:
    return value[:MAX_TEXT_LENGTH] or None if isinstance(value, str) else None


def _integer(value: object, _: Attribute) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object, _: Attribute) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: object, _: Attribute) -> bool | None:
    return value if isinstance(value, bool) else None


def _array(value: object, attribute: Attribute) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    inner = attribute.items or Attribute("string", enum=attribute.enum)
    found = [fitted for each in value[:MAX_ITEMS] if (fitted := answer_of(each, inner)) is not None]
    return found if found or not value else None


def _object(value: object, attribute: Attribute) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    asked = attribute.properties or {}
    return {name: answer_of(value.get(name), inner) for name, inner in asked.items()}


_FITTED: Final = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
}


def _faults_of_members(place: str, members: dict[str, Any], depth: int, left: list[int]) -> Iterator[Violation]:
    left[0] -= len(members)
    if len(members) > MAX_ATTRIBUTES or left[0] < 0:
        yield Violation(place, f"has more than {MAX_ATTRIBUTES} attributes (or {MAX_ALL} in all)", "Ask for fewer.")
        return
    for name, description in members.items():
        shown = name if len(name) <= 60 else f"{name[:57]}..."
        if not 1 <= len(name) <= MAX_NAME_LENGTH:
            rule = f"must have a name of 1 to {MAX_NAME_LENGTH} characters, got {len(name)}"
            yield Violation(f"{place}.{shown}", rule, "Use a shorter name and a longer description.")
            continue
        yield from _faults_of_one(f"{place}.{shown}", description, depth, left)


def _faults_of_one(place: str, attribute: object, depth: int, left: list[int]) -> Iterator[Violation]:
    if not isinstance(attribute, dict) or not isinstance(attribute.get("type"), str):
        yield Violation(place, "must be an object with a type", 'Write {"type": "string", "description": "..."}.')
        return
    kind = attribute["type"]
    if kind not in TYPES:
        yield Violation(f"{place}.type", f"must be one of {', '.join(TYPES)}, got {kind[:40]}", "Use one of these.")
        return
    description = attribute.get("description", "")
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_LENGTH:
        rule = f"must be a string of at most {MAX_DESCRIPTION_LENGTH} characters"
        yield Violation(f"{place}.description", rule, "Shorten the description.")
    yield from _faults_of_enum(f"{place}.enum", attribute)
    items, properties = attribute.get("items"), attribute.get("properties")
    if (items is not None or properties is not None) and depth <= 1:
        yield Violation(place, f"must not go deeper than {MAX_DEPTH} attributes in one another", "Use fewer levels.")
        return
    if kind == "object" and not (isinstance(properties, dict) and properties):
        yield Violation(f"{place}.properties", "must be an object of attributes", "List the properties of the object.")
    elif kind == "object" and isinstance(properties, dict):
        yield from _faults_of_members(f"{place}.properties", properties, depth - 1, left)
    if kind == "array" and items is not None:
        left[0] -= 1
        yield from _faults_of_one(f"{place}.items", items, depth - 1, left)


def _faults_of_enum(place: str, attribute: dict[str, Any]) -> Iterator[Violation]:
    values = attribute.get("enum")
    if values is None:
        return
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_ENUM:
        yield Violation(place, f"must be an array of 1 to {MAX_ENUM} values", "List the allowed values.")
    elif not all(isinstance(value, str | int | float) and len(str(value)) <= MAX_ENUM_VALUE_LENGTH for value in values):
        rule = f"must hold strings, numbers or booleans of at most {MAX_ENUM_VALUE_LENGTH} characters"
        yield Violation(place, rule, "Shorten or convert its values.")

"""Bounds of the JSON Schemas of monitors, so that comparing an item with one takes a time that its size explains.

A schema of a few hundred bytes can ask for billions of evaluations: with two references to the next of thirty parts.
So its references are followed once, as a validator follows them for an item that has each field once. What multiplies
with the depth of an item, such as a schema that refers to itself twice, shows with the item alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from scrapy_ext.api.violations import Violation

#: Objects and arrays in one another.
MAX_DEPTH: Final = 60
MAX_REFERENCES: Final = 500
MAX_PATTERNS: Final = 100
#: Characters of a pattern.
MAX_PATTERN: Final = 500
#: Evaluations of parts for an item that has each field once, with all references followed.
MAX_EVALUATIONS: Final = 20_000

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
#: Keywords whose values have parts by names that users choose, and those whose values are no parts that are evaluated.
_BY_NAME: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_LEFT_OUT: Final = ("$defs", "definitions", "enum", "const", "default", "examples")
_FIELD: Final = "schema"


def schema_faults(schema: dict[str, Any] | bool) -> Iterator[Violation]:
    """Yield the bounds that a schema exceeds."""
    if isinstance(schema, bool):
        return
    parts = list(_parts(schema))
    if parts and parts[-1][1] > MAX_DEPTH:
        yield _fault(f"may have {MAX_DEPTH} objects and arrays in one another at most", "Name parts in $defs.")
        return
    objects = [part for part, _ in parts if isinstance(part, dict)]
    references = sum(isinstance(part.get(name), str) for part in objects for name in _REFERENCES)
    if references > MAX_REFERENCES:
        yield _fault(f"may have {MAX_REFERENCES} references at most, got {references}", "Compare fewer fields.")
    patterns = [pattern for part in objects for pattern in _patterns(part)]
    if len(patterns) > MAX_PATTERNS:
        yield _fault(f"may have {MAX_PATTERNS} patterns at most, got {len(patterns)}", "Compare fewer fields.")
    if any(len(pattern) > MAX_PATTERN for pattern in patterns):
        yield _fault(f"may have patterns of {MAX_PATTERN} characters at most", "Shorten the pattern.")
    if references <= MAX_REFERENCES and _Expansion(schema).is_too_long():
        rule = f"may need {MAX_EVALUATIONS} evaluations of its parts for an item at most, with all references followed"
        yield _fault(rule, "Refer to each part fewer times: references to parts with references multiply.")


def _fault(rule: str, remedy: str) -> Violation:
    return Violation(_FIELD, rule, remedy)


def _parts(schema: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, int]]:
    """Yield objects and arrays with their depth, the outer ones first; of those too deep, the first is the last."""
    level, depth = [schema], 1
    while level:
        yield from ((part, depth) for part in level)
        if depth > MAX_DEPTH:
            return
        level = [each for part in level for each in _children(part)]
        depth += 1


def _children(part: dict[str, Any] | list[Any]) -> Iterator[Any]:
    values = part.values() if isinstance(part, dict) else part
    return (each for each in values if isinstance(each, dict | list))


def _patterns(part: dict[str, Any]) -> Iterator[str]:
    if isinstance(part.get("pattern"), str):
        yield part["pattern"]
    if isinstance(part.get("patternProperties"), dict):
        yield from part["patternProperties"]


class _Expansion:
    """The parts of a schema, in the order in which a validator comes to them."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        #: Base URI of each object, by its identity; resources by their URI; parts by base and anchor, and by anchor.
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": schema}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._dynamic: dict[str, list[Any]] = {}
        #: Targets of the references of an object, by its identity.
        self._followed: dict[int, list[tuple[Any]]] = {}
        self._name(schema, "")

    def _name(self, part: dict[str, Any] | list[Any], base: str) -> None:
        if isinstance(part, dict):
            identifier = part.get("$id", part.get("id"))
            if isinstance(identifier, str):
                base = _joined(base, identifier)
                self._resources.setdefault(base, part)
            for name in ("$anchor", "$dynamicAnchor"):
                if isinstance(part.get(name), str):
                    self._anchors[base, part[name]] = part
                    self._dynamic.setdefault(part[name], []).append(part)
            self._bases[id(part)] = base
        for each in _children(part):
            self._name(each, base)

    def is_too_long(self) -> bool:
        # The targets of the references on the way to a part: one that is among them has been counted. A target is
        # followed by its identity in ``waiting``, which is reached when all within it is counted.
        on_way: set[int] = set()
        waiting: list[Any] = [(self._root,)]
        count = 0
        while waiting:
            part = waiting.pop()
            if isinstance(part, int):
                on_way.remove(part)
                continue
            if isinstance(part, tuple):
                (part,) = part
                if id(part) in on_way:
                    continue
                on_way.add(id(part))
                waiting.append(id(part))
            count += 1
            if count + len(waiting) - len(on_way) > MAX_EVALUATIONS:  # each that waits will count
                return True
            waiting += self._within(part)
            if isinstance(part, dict):
                if id(part) not in self._followed:
                    self._followed[id(part)] = [(target,) for target in self._targets(part)]
                waiting += self._followed[id(part)]
        return False

    @staticmethod
    def _within(part: dict[str, Any] | list[Any]) -> Iterator[Any]:
        """Yield what is evaluated with a part, not what it only has for references."""
        if isinstance(part, list):
            yield from _children(part)
            return
        for name, value in part.items():
            if name in _BY_NAME and isinstance(value, dict):
                yield from _children(value)
            elif name not in _LEFT_OUT and isinstance(value, dict | list):
                yield value

    def _targets(self, part: dict[str, Any]) -> Iterator[Any]:
        if isinstance(part.get("$ref"), str):
            yield from self._found(_joined(self._bases[id(part)], part["$ref"], whole=True))
        if isinstance(part.get("$dynamicRef"), str):
            name = urldefrag(part["$dynamicRef"])[1]
            yield from self._dynamic.get(name, ())
        if isinstance(part.get("$recursiveRef"), str):
            yield from self._resources.values()

    def _found(self, uri: str) -> Iterator[Any]:
        base, fragment = urldefrag(uri)
        target = self._resources.get(base)
        if fragment and not fragment.startswith("/"):
            target = self._anchors.get((base, unquote(fragment)))
        elif fragment:
            target = _at_pointer(target, unquote(fragment))
        if isinstance(target, dict):
            yield target


def _joined(base: str, reference: str, *, whole: bool = False) -> str:
    """Return a URI, without its fragment unless the ``whole`` is wanted."""
    try:
        joined = urljoin(base, reference)
        return joined if whole else urldefrag(joined)[0]
    except ValueError:
        return reference


def _at_pointer(part: object, pointer: str) -> Any:
    for name in pointer.split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict):
            part = part.get(key)
        elif isinstance(part, list) and key.isdecimal() and len(key) < 6 and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return part

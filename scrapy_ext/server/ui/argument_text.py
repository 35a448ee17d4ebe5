"""Arguments as text in forms: ``name=value`` lines, or a JSON object where lines would lose something.

Values that look secret are hidden in forms; a hidden value that is sent back keeps the stored one. A text keeps the
type that its argument had in the earlier run: ``run.json`` has texts alone, but other clients start jobs with numbers,
true and false, arrays and objects, and runs are compared with those of equal arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.argument_types import type_of
from scrapy_ext.api.violations import Checks, ContractError, refused
from scrapy_ext.server.http import json_bodies
from scrapy_ext.server.ui import shapes

_SHOWN: Final = 60
#: Types of values that are not text, in messages and labels: by types of JSON's values, and by those of annotations.
NUMBER: Final = "a number"
_FLAG: Final = "true or false"
_WORDS: Final[Mapping[type, str]] = {
    bool: _FLAG,
    int: NUMBER,
    float: NUMBER,
    list: "a JSON array",
    dict: "a JSON object",
}
_ANNOTATED: Final = {"bool": _FLAG, "int": NUMBER, "float": NUMBER}
_FLAGS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_NULL: Final = "null"


def arguments_of_text(text: str, field: str) -> dict[str, Any]:
    """Parse arguments; raises ``ContractError`` about ``field``."""
    if not is_of_lines(text):
        try:
            value = json_bodies.given(text.encode(), field)
        except ContractError as error:
            rule = error.violations[0].rule
            raise refused(field, rule, 'Write {"name": "value"}, or one name=value per line.') from None
        return dict(value)
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not name and not equals:
            continue
        if not equals or not name:
            rule = f"has on line {number} no name=value, but {line[:_SHOWN]!r}"
            raise refused(field, rule, "Write one name=value per line.")
        if name in found:
            raise refused(field, f"has {name[:_SHOWN]} twice", "Remove one of the lines.")
        found[name] = value
    return found


def text_of_arguments(arguments: Mapping[str, Any]) -> str:
    """Return ``name=value`` lines if they lose nothing, else JSON."""
    text = "\n".join(f"{name}={value}" for name, value in arguments.items())
    try:
        if arguments_of_text(text, "") == arguments:
            return text
    except ContractError:
        pass
    return msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()


def is_of_lines(text: str) -> bool:
    """Return true for arguments in lines, whose values are texts; those in JSON have types."""
    return not text.lstrip().startswith("{")


def text_of(value: object) -> str:
    """Return a value as an argument has it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class Earlier(NamedTuple):
    """The last values of arguments, by name, and the annotations of those that the code declares."""

    values: Mapping[str, Any]
    annotations: Mapping[str, str | None]

    def word(self, name: str) -> str:
        """Return the type of a value for people, "" for text and null."""
        return _word(self.values.get(name))

    def typed(self, texts: Mapping[str, str], place: Callable[[str], str]) -> dict[str, Any]:
        """Return texts as values of the types that the arguments had; raises ``ContractError`` about all that are none,
        each at the field that ``place`` names."""
        checks = Checks()
        found = {name: checks.passed(partial(self._value, name, text, place(name))) for name, text in texts.items()}
        checks.end()
        return found

    def _value(self, name: str, text: str, field: str) -> Any:
        if name not in self.values or text == shapes.HIDDEN:
            return text
        return _typed(self.values[name], text, self.annotations.get(name), field)


#: No values: every text stays one.
NOTHING_EARLIER: Final = Earlier({}, {})


def _word(value: object) -> str:
    return _WORDS.get(type(value), "")


def _typed(earlier: object, text: str, annotation: str | None, field: str) -> Any:
    """Return a text as a value of the type of the ``earlier`` one; raises ``ContractError`` when it is none.

    Null has no type of its own: then the annotation of the argument decides, and any other text stays one. So does a
    choice that the annotation names.
    """
    if isinstance(earlier, str):
        return text
    if text == _NULL:
        return None
    declared = type_of(annotation)
    word = _word(earlier) or _ANNOTATED.get(declared.kind, "")
    value = _FLAGS.get(text.lower()) if word == _FLAG else _json_value(text, field)
    # A number that is written otherwise, as 1.50 and 007, would be changed.
    if word and _word(value) == word and (word != NUMBER or text_of(value) == text):
        return value
    if earlier is None or text in declared.choices:
        return text
    raise refused(field, f"was {word} in the earlier run, which {text[:_SHOWN]!r} is not", f"Write {word} as in JSON.")


def _json_value(text: str, field: str) -> Any:
    """Return the JSON value of a text, the text itself when it is none."""
    try:
        return json_bodies.value(text.encode(), field)
    except ContractError:
        return text


def with_stored(given: Mapping[str, Any], stored: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the values of a form with the stored ones in place of hidden ones; raises ``ContractError``."""
    return {name: _kept(name, value, stored, field) for name, value in given.items()}


def _kept(name: str, value: Any, stored: Mapping[str, Any], field: str) -> Any:
    if value != shapes.HIDDEN:
        return value
    if name not in stored:
        raise refused(field, f"has no value of {name[:_SHOWN]!r} to keep", "Write the value.")
    return stored[name]

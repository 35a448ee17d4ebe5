"""Forms of records: a control for each field with a label or a help text, and the fields that a submitted form gives.

Texts and arguments are one per line, as ``name=value``. An empty control gives no field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from scrapy_ext.api.fields import Described, Kind, fields_of
from scrapy_ext.api.violations import refused
from scrapy_ext.server.http.forms import Form

#: Digits of a number that a form gives; a longer text is refused as it is.
_DIGITS: Final = 10


def controls(record: type[msgspec.Struct]) -> list[tuple[str, Sequence[Described]]]:
    """Return the fields of a form in groups: the name of a group, and its fields."""
    shown = [each for each in fields_of(record).values() if each.label]
    return [(group, tuple(fields)) for group, fields in groupby(shown, lambda each: each.words.group)]


def texts_of(record: type[msgspec.Struct], form: Form) -> dict[str, str]:
    """Return the texts of the controls, as they were submitted."""
    return {each.name: _sent(each, form) for _, fields in controls(record) for each in fields}


def _sent(field: Described, form: Form) -> str:
    # Several boxes of one name are ticked.
    return "\n".join(form.all(field.name)) if field.kind is Kind.TEXTS else form.get(field.name) or ""


def default_texts(record: type[msgspec.Struct]) -> dict[str, str]:
    """Return the texts of the controls of a new record."""
    defaults = {each.name: each.default for each in msgspec.structs.fields(record)}
    return {each.name: _text(each, defaults[each.name]) for _, fields in controls(record) for each in fields}


def stored_texts(record: type[msgspec.Struct], stored: msgspec.Struct) -> dict[str, str]:
    """Return the texts of the controls of a stored record."""
    return {each.name: _text(each, getattr(stored, each.name)) for _, fields in controls(record) for each in fields}


def _text(field: Described, value: Any) -> str:
    if value in (None, msgspec.NODEFAULT) or value is False:
        return ""
    match field.kind:
        case Kind.TEXTS:
            return "\n".join(value)
        case Kind.PAIRS:
            return "\n".join(f"{name}={each}" for name, each in value.items())
        case Kind.JSON:
            return json.dumps(value, indent=2, ensure_ascii=False)
        case Kind.FLAG:
            return "1"
        case _:
            return str(value)


def given_fields(record: type[msgspec.Struct], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that the texts of a form give; raise :class:`ContractError`."""
    known = fields_of(record)
    return {name: _value(known[name], text.strip()) for name, text in texts.items() if text.strip()}


def _value(field: Described, text: str) -> Any:
    match field.kind:
        case Kind.TEXTS:
            return list(_lines(text))
        case Kind.PAIRS:
            return dict(_pair(field.name, line) for line in _lines(text))
        case Kind.NUMBER:
            return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else text
        case Kind.FLAG:
            return True
        case Kind.JSON:
            try:
                return json.loads(text)
            except (ValueError, RecursionError) as error:
                raise refused(field.name, f"is not JSON: {error}", 'Write a JSON value, such as 1 or "text".') from None
        case Kind.TEXT:
            return text


def _lines(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.splitlines()))


def _pair(field: str, line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise refused(field, f"has the line {line[:60]!r}", "Write one name=value per line.")
    return name.strip(), value.strip()

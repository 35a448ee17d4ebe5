"""Descriptions of the fields that people set, from which a resource is checked, described and shown.

A resource declares its fields once, in a record. The annotation of a field has its type, its bounds
(:class:`msgspec.Meta`) and its words (:class:`Field`)::

    older_than: Annotated[Annotated[int, Meta(ge=1, le=MAX_DAYS)] | None, Field("must be ...", "Correct the number.")]

From the record come the check of given values (:func:`checked`), the schema of the OpenAPI document, the options of a
command (``commands.fields``) and the controls of a page (``server.ui.record_form``). A field that none of them knows by
name needs no change of theirs.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from scrapy_ext.api.violations import ContractError, Violation

T = TypeVar("T", bound=msgspec.Struct)

#: Group of fields that a page shows side by side.
ROW: Final = "row"
#: Characters of an unknown name in a message.
_SHOWN: Final = 60
#: Place of a wrong member in a message of msgspec.
_PLACE: Final = re.compile(r" - at `\$(\[[0-9]+\])")
_UNIONS: Final = (Union, types.UnionType)


class Kind(Enum):
    """Kinds of values, which have an option and a control of their own."""

    FLAG = "flag"
    NUMBER = "number"
    TEXT = "text"
    TEXTS = "texts"
    #: An object with texts, written as NAME=VALUE.
    PAIRS = "pairs"
    JSON = "JSON"


class Field(msgspec.Struct, frozen=True):
    """Words of a field, beside its type and bounds."""

    #: Rule that a wrong value breaks, and what to write instead.
    rule: str
    remedy: str
    #: Rule that a wrong member of an array breaks; none: the same.
    item_rule: str = ""
    #: True: the place of a wrong member is named, as in ``checks[0]``.
    numbered: bool = False
    #: Yields the violations of a value, with the name of the field, that type and bounds do not show.
    check: Callable[[str, Any], Iterable[Violation]] | None = None
    #: Meaning of the option of a command; none: no option.
    help: str = ""
    #: Name of the option, or of a positional argument; none: the name of the field.
    option: str = ""
    metavar: str = ""
    #: Label of the control on a page; none: the help.
    label: str = ""
    placeholder: str = ""
    #: Height of the control in lines.
    lines: int = 1
    #: :data:`ROW`, or the summary of fields that a page folds; none: always shown, alone.
    group: str = ""


class Described(msgspec.Struct, frozen=True):
    """A field of a record: its name, type with bounds, and words."""

    name: str
    type: Any
    kind: Kind
    words: Field
    #: Values, or members of an array, that are allowed; none: any within the bounds.
    choices: Sequence[str]
    least: int | None
    required: bool

    @property
    def option(self) -> str:
        return self.words.option or f"--{self.name.replace('_', '-')}"

    @property
    def label(self) -> str:
        return self.words.label or self.words.help[:1].upper() + self.words.help[1:]

    def faults(self, value: object) -> Iterator[Violation]:
        """Yield the violations of a value."""
        try:
            msgspec.convert(value, self.type)
        except (msgspec.ValidationError, UnicodeError) as error:
            place = _PLACE.search(str(error))
            name = f"{self.name}{place[1]}" if place and self.words.numbered else self.name
            rule = self.words.item_rule if place else ""
            yield Violation(name, rule or self.words.rule, self.words.remedy)
            return
        members = value if isinstance(value, list | tuple) else (value,)
        if self.choices and not set(members).issubset(self.choices):
            yield Violation(self.name, self.words.rule, self.words.remedy)
        elif self.words.check is not None:
            yield from self.words.check(self.name, value)


def flag(help: str = "") -> Field:
    """Return the words of a field that is true or false."""
    return Field("must be true or false", "Write true or false, or leave it out.", help=help)


def one_of(names: Iterable[str]) -> Meta:
    """Return the bound of a text that is one of these."""
    return Meta(extra_json_schema={"enum": [*names]})


@cache
def fields_of(record: type[msgspec.Struct]) -> Mapping[str, Described]:
    """Return the fields of a record that people set, in their order."""
    hints = get_type_hints(record, include_extras=True)
    return {
        each.name: _described(each, hints[each.name], words)
        for each in msgspec.structs.fields(record)
        for words in getattr(hints[each.name], "__metadata__", ())
        if isinstance(words, Field)
    }


def checked(record: type[T], given: Mapping[str, Any], noun: str) -> T:
    """Return the record with the given values, each right by itself; a value of None is not given.

    Raises :class:`ContractError` with the violations of all fields.
    """
    if found := list(_faults(fields_of(record), given, noun)):
        raise ContractError(found)
    return msgspec.convert({name: value for name, value in given.items() if value is not None}, record)


def _faults(known: Mapping[str, Described], given: Mapping[str, Any], noun: str) -> Iterator[Violation]:
    for name in given:
        if name not in known:
            yield Violation(str(name)[:_SHOWN], f"is no field of {noun}", f"The fields are {', '.join(known)}.")
    for name, each in known.items():
        if (value := given.get(name)) is not None or each.required:
            yield from each.faults(value)


def _described(field: msgspec.structs.FieldInfo, hint: object, words: Field) -> Described:
    parts = list(_parts(hint))
    bounds = [each for part in parts for each in getattr(part, "__metadata__", ()) if isinstance(each, Meta)]
    choices = next((found["enum"] for meta in bounds if "enum" in (found := meta.extra_json_schema or {})), ())
    least = next((int(meta.ge) for meta in bounds if meta.ge is not None), None)
    return Described(field.name, hint, _kind(parts), words, choices, least, field.required)


def _parts(hint: object) -> Iterator[Any]:
    """Yield a type, and the types that it is made of."""
    yield hint
    for part in get_args(hint)[: 1 if get_origin(hint) is Annotated else None]:
        yield from _parts(part)


def _kind(parts: Sequence[Any]) -> Kind:
    outer = [get_origin(part) or part for part in parts]
    plain = [each for each in outer if each is not Annotated and each not in (*_UNIONS, type(None))]
    if dict in plain:
        return Kind.JSON if bool in plain else Kind.PAIRS
    return {bool: Kind.FLAG, int: Kind.NUMBER, tuple: Kind.TEXTS, list: Kind.TEXTS}.get(plain[0], Kind.TEXT)

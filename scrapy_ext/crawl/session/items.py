"""Items as JSON.

Every kind of item that itemadapter supports becomes an object, nested items as well. Other types are written thus:
dates and times in ISO 8601; decimals as text; bytes as Base64; enumerations as their value; UUIDs, paths, URLs and IP
addresses as text; tuples, sets and other iterables as arrays (sets in sorted order if possible); values of classes of
pydantic as pydantic writes them; scalars of numpy as the number in them. Keys that are None, booleans and numbers are
the names that ``json`` of Python gives them, and so Scrapy's feeds: ``null``, ``true``, ``1.5``.

Most items have only values that JSON has. Such an item is encoded as it is, after a look at the types of its values;
any other is copied first, with its values in the forms above. The look finds NaN as well, which the encoder would write
as null without a word.

itemadapter is imported for the first object of another class: where pydantic is installed, it imports that, which takes
12 MB and a tenth of a second.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import msgspec
from scrapy import Item

_encode = msgspec.json.Encoder().encode
_PLAIN: Final = frozenset({str, bool, int, type(None)})
_TEXT: Final = frozenset({str})
#: Made once: a union is made anew with each call.
_AS_TEXT: Final = (Decimal, UUID, PurePath, IPv4Address, IPv6Address, IPv4Network, IPv6Network)
_USUAL: Final = (dict, Item)
#: The value of a subclass of these, whatever methods the subclass has.
_VALUE_OF: Final[Mapping[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}


class UnstorableItemError(ValueError):
    """An item without a JSON form; the message names the field and the reason."""


class NotAnItemError(UnstorableItemError):
    """An object that itemadapter does not accept as an item: None, text, a list."""


def item_to_json(item: object, replaced: list[str] | None = None) -> bytes:
    """Return the JSON object of an item; raises :class:`UnstorableItemError`.

    Values that JSON lacks (NaN, infinity, halves of surrogate pairs) are refused, or, with a list ``replaced``, become
    null and U+FFFD: then the list gets a sentence about each.
    """
    if not _is_item(item):
        raise NotAnItemError(
            f"something of type {type(item).__qualname__} is not an item; yield a dict or an item class"
        )
    try:
        return _encoded(item, replaced)
    except UnstorableItemError:
        raise
    except RecursionError:
        raise UnstorableItemError("it is nested too deep or contains itself") from None
    except Exception as error:
        # Objects of a project raise anything when they are read.
        raise UnstorableItemError(f"{type(error).__name__}: {error}") from None


def _encoded(item: object, replaced: list[str] | None) -> bytes:
    members = item if type(item) is dict else _members(item)
    try:
        if _is_plain_dict(members):
            return _encode(members)
        return _encode(_Copy(None).members(members, ""))
    except (ValueError, msgspec.MsgspecError):
        # A value that JSON lacks. Only then each text and number is examined, to name its field.
        pass
    return _encode(_ExactCopy(replaced).members(members, ""))


def _is_item(value: object) -> bool:
    """Return true for an item of any kind. Those of the usual classes need no itemadapter, which asks every adapter."""
    if isinstance(value, _USUAL):
        return True
    from itemadapter import is_item

    return is_item(value)


def _is_of_pydantic(value: object) -> bool:
    """Return true for an object of a class of pydantic's, such as ``HttpUrl`` and ``SecretStr``, or of a subclass."""
    return any(cls.__module__.partition(".")[0] in ("pydantic", "pydantic_core") for cls in type(value).__mro__)


def _number_in(value: object) -> bool | int | float | None:
    """Return the number that an object has in its memory, as the scalars of numpy do; None for any other object.

    Dates of numpy are no such numbers: their unit is not in the memory.
    """
    try:
        memory = memoryview(value)  # type: ignore[arg-type]
        number = None if memory.ndim else memory[()]
    except (TypeError, ValueError, NotImplementedError):
        return None
    return number if isinstance(number, bool | int | float) else None


def _members(item: object) -> dict[Any, Any]:
    if not isinstance(item, _USUAL):
        from itemadapter import ItemAdapter

        item = ItemAdapter(item).adapter
    return {name: item[name] for name in item}


def _is_plain_dict(members: dict[Any, Any]) -> bool:
    """Return true if the encoder writes a dict as :func:`_plain` would."""
    return _TEXT.issuperset(map(type, members)) and _are_plain(members.values())


def _are_plain(values: Iterable[Any]) -> bool:
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is float:
            if not math.isfinite(value):
                return False
        elif kind is list or kind is tuple:
            # Most lists hold texts alone, which one call finds out.
            if not _PLAIN.issuperset(map(type, value)) and not _are_plain(value):
                return False
        elif kind is not dict or not _is_plain_dict(value):
            return False
    return True


class _Copy:
    """Copy of an item with values of JSON alone.

    ``replaced``: gets sentences about replaced values; None: these are refused."""

    def __init__(self, replaced: list[str] | None) -> None:
        self.replaced = replaced

    def members(self, members: Mapping[Any, Any], place: str) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, value in members.items():
            name = self.name(key, place)
            if name in copied:
                keys = " and ".join(repr(other) for other in members if self.name(other, place) == name)
                raise UnstorableItemError(f"{place or 'it'} has the key {name!r} twice ({keys}); use text")
            copied[name] = self.value(value, f"{place}.{name}" if place else name)
        return copied

    def name(self, name: object, place: str) -> str:
        if isinstance(name, str):
            return self.text(str.__str__(name), place or "a name")
        if isinstance(name, int | float) or name is None:
            # As json writes keys: a member of an enumeration by its number, as well.
            return json.dumps(name)
        raise UnstorableItemError(f"{place or 'it'} has a key of type {type(name).__qualname__}; use text")

    def value(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value, place)
        if kind is int:
            return self.integer(value, place)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else self.no_number(value, place)
        if kind is list or kind is tuple:
            return self.values(value, place)
        if kind is dict:
            return self.members(value, place)
        return self._object(value, place)

    def values(self, values: Iterable[Any], place: str) -> list[Any]:
        return [self.value(member, place) for member in values]

    def text(self, text: str, place: str) -> str:
        return text

    def integer(self, number: int, place: str) -> int:
        return number

    def no_number(self, number: float, place: str) -> None:
        raise _NotInJsonError

    def _object(self, value: Any, place: str) -> Any:
        if isinstance(value, Enum):
            return self.value(value.value, place)
        if isinstance(value, datetime | date | time):
            return value.isoformat()
        if isinstance(value, timedelta):
            return value.total_seconds()
        if isinstance(value, _AS_TEXT):
            return self.text(str(value), place)
        if isinstance(value, bytes | bytearray | memoryview):
            return base64.b64encode(value).decode()
        if isinstance(value, Mapping):
            return self.members(value, place)
        if isinstance(value, set | frozenset):
            with contextlib.suppress(TypeError):
                value = sorted(value)
            return self.values(value, place)
        if isinstance(value, str | int | float):
            # A subclass, such as the texts of lxml.
            return self.value(next(read(value) for cls, read in _VALUE_OF.items() if isinstance(value, cls)), place)
        if _is_item(value):
            return self.members(_members(value), place)
        if _is_of_pydantic(value):
            from pydantic_core import to_jsonable_python

            return self.value(to_jsonable_python(value), place)
        return self._of_any_class(value, place)

    def _of_any_class(self, value: Any, place: str) -> Any:
        if (number := _number_in(value)) is not None:
            return self.value(number, place)
        if hasattr(value, "__iter__"):
            if isinstance(value, Iterator):
                raise UnstorableItemError(f"{place} is an iterator, which can be read only once; make a list of it")
            return self.values(value, place)
        raise UnstorableItemError(f"{place} is of type {type(value).__qualname__}, which has no JSON form; convert it")


class _NotInJsonError(ValueError):
    """A value that JSON lacks, in a first copy."""


class _ExactCopy(_Copy):
    """Copy that examines each text and number, and names the field of a value that JSON lacks."""

    def text(self, text: str, place: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self._note(f"{place} has half of a surrogate pair, stored as U+FFFD", "use text that UTF-8 can hold")
            # Two halves in their order are one character.
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text

    def integer(self, number: int, place: str) -> int:
        try:
            str(number)
        except ValueError:
            raise UnstorableItemError(f"{place} is a number of {number.bit_length()} bits; use text") from None
        return number

    def no_number(self, number: float, place: str) -> None:
        self._note(f"{place} is {number!r}, stored as null", "which JSON does not have; use None or text")

    def _note(self, sentence: str, remedy: str) -> None:
        if self.replaced is None:
            raise UnstorableItemError(f"{sentence.partition(', stored')[0]}, {remedy}")
        self.replaced.append(sentence)

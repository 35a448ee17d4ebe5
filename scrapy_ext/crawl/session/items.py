"""Items as JSON.

Every kind of item that itemadapter supports becomes an object, nested items as well. Other types are written thus:
dates and times in ISO 8601; decimals as text; bytes as Base64; enumerations as their value; UUIDs, paths and URLs as
text; tuples, sets and other iterables as arrays (sets in sorted order if possible).

Most items have only values that JSON has. Such an item is encoded as it is, after a look at the types of its values;
any other is copied first, with its values in the forms above. The look finds NaN as well, which the encoder would write
as null.

itemadapter is imported for the first object of another class: where pydantic is installed, it imports that, which takes
12 MB and a tenth of a second.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import msgspec
from scrapy import Item

_encode = msgspec.json.Encoder().encode
_PLAIN: Final = frozenset({str, bool, int, type(None)})
_TEXT: Final = frozenset({str})
#: Made once: a union is made anew with each call.
_USUAL: Final = (dict, Item)


class UnstorableItemError(ValueError):
    """An item without a JSON form; the message names the field and the reason."""


class NotAnItemError(UnstorableItemError):
    """An object that itemadapter does not accept as an item: None, text, a list."""


def item_to_json(item: Any) -> bytes:
    """Return the JSON object of an item; raises :class:`UnstorableItemError`."""
    if not _is_item(item):
        raise NotAnItemError(
            f"something of type {type(item).__qualname__} is not an item; yield a dict or an item class"
        )
    try:
        members = item if type(item) is dict else _members(item)
        if _is_plain_dict(members):
            return _encode(members)
        return _encode({_name(name, ""): _plain(value, str(name)) for name, value in members.items()})
    except RecursionError:
        raise UnstorableItemError("it is nested too deep or contains itself") from None
    except (UnicodeEncodeError, msgspec.MsgspecError) as error:
        raise UnstorableItemError(str(error)) from None


def _is_item(value: Any) -> bool:
    """Return true for an item of any kind. Those of the usual classes need no itemadapter, which asks every adapter."""
    if isinstance(value, _USUAL):
        return True
    from itemadapter import is_item

    return is_item(value)


def _members(item: Any) -> dict[Any, Any]:
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


def _name(name: Any, place: str) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, int | float | bool) or name is None:
        return str(name)
    raise UnstorableItemError(f"{place or 'it'} has a key of type {type(name).__qualname__}; use text")


def _plain(value: Any, place: str) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise UnstorableItemError(f"{place} is {value!r}, which JSON does not have; use None or text")
        return value
    if kind is list or kind is tuple:
        return [_plain(member, place) for member in value]
    if kind is dict:
        return _plain_members(value, place)
    return _plain_object(value, place)


def _plain_members(value: Mapping[Any, Any], place: str) -> dict[str, Any]:
    return {_name(name, place): _plain(member, f"{place}.{name}") for name, member in value.items()}


def _plain_object(value: Any, place: str) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, place)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return _plain_members(value, place)
    if isinstance(value, set | frozenset):
        with contextlib.suppress(TypeError):
            value = sorted(value)
        return [_plain(member, place) for member in value]
    if isinstance(value, str | int | float):
        # A subclass, such as a lazy string.
        return _plain(next(plain(value) for plain in (str, int, float) if isinstance(value, plain)), place)
    if _is_item(value):
        return _plain_members(_members(value), place)
    if hasattr(value, "__iter__"):
        if isinstance(value, Iterator):
            raise UnstorableItemError(f"{place} is an iterator, which can be read only once; make a list of it")
        return [_plain(member, place) for member in value]
    raise UnstorableItemError(f"{place} is of type {type(value).__qualname__}, which has no JSON form; convert it")

"""Items as JSON.

Every kind of item that itemadapter supports becomes an object, nested items as well. Other types are written thus:
dates and times in ISO 8601; decimals as text; bytes as Base64; enumerations as their value; UUIDs, paths and URLs as
text; tuples, sets and other iterables as arrays (sets in sorted order if possible).
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import msgspec
from itemadapter import ItemAdapter, is_item

_encode = msgspec.json.Encoder().encode
_PLAIN: Final = frozenset({str, bool, int, type(None)})


class UnstorableItemError(ValueError):
    """An item without a JSON form; the message names the field and the reason."""


class NotAnItemError(UnstorableItemError):
    """An object that itemadapter does not accept as an item: None, text, a list."""


def item_to_json(item: Any) -> bytes:
    """Return the JSON object of an item; raises :class:`UnstorableItemError`."""
    if not is_item(item):
        raise NotAnItemError(
            f"something of type {type(item).__qualname__} is not an item; yield a dict or an item class"
        )
    try:
        return _encode({_name(name, ""): _plain(value, str(name)) for name, value in ItemAdapter(item).items()})
    except RecursionError:
        raise UnstorableItemError("it is nested too deep or contains itself") from None
    except (UnicodeEncodeError, msgspec.MsgspecError) as error:
        raise UnstorableItemError(str(error)) from None


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
    if is_item(value) or isinstance(value, Mapping):
        return _plain_members(ItemAdapter(value) if is_item(value) else value, place)
    if isinstance(value, set | frozenset):
        with contextlib.suppress(TypeError):
            value = sorted(value)
    if isinstance(value, str | int | float):
        # A subclass, such as a lazy string.
        for plain in (str, int, float):
            if isinstance(value, plain):
                return _plain(plain(value), place)
    if hasattr(value, "__iter__"):
        if isinstance(value, Iterator):
            raise UnstorableItemError(f"{place} is an iterator, which can be read only once; make a list of it")
        return [_plain(member, place) for member in value]
    raise UnstorableItemError(f"{place} is of type {type(value).__qualname__}, which has no JSON form; convert it")

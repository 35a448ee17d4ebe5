"""Types of settings, and the conversion of their values, which are texts after ``-s`` and in the environment."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from scrapy.settings import BaseSettings


class SettingType(str, Enum):
    BOOL = "bool"
    INT = "int"
    #: True stands for a usual number.
    BOOL_OR_INT = "bool or int"
    FLOAT = "float"
    STR = "str"
    LIST = "list"
    DICT = "dict"


def _bool_or_int(value: str | int) -> bool | int:
    """Return false, true (also for 1, as for a switch on the command line), or a number over 1."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    number = _int(value)
    return number if number > 1 or number < 0 else bool(number)


def _int(value: Any) -> int:
    """Return a whole number. Scrapy cuts off the rest of another one, which nobody means."""
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError("not a whole number")
    return number


def _str(value: Any) -> str:
    """Return a text, or a number or path as one. That of another value is its Python source."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | os.PathLike):
        raise TypeError("not a text")
    return str(value)


def _list(value: Any) -> list[Any]:
    """Return a list; of a text, the values between its commas, as Scrapy does, or those of a list in JSON."""
    if isinstance(value, Mapping | bytes):
        raise TypeError("not a list")
    if not isinstance(value, str):
        return BaseSettings({"value": value}).getlist("value")
    if value.lstrip().startswith("["):
        with contextlib.suppress(json.JSONDecodeError):  # An IPv6 address begins so as well.
            return _texts(json.loads(value))
    return [part for part in map(str.strip, value.split(",")) if part]


def _texts(values: list[Any]) -> list[Any]:
    if not all(isinstance(value, str) for value in values):
        raise TypeError("not a list of texts")
    return values


def _dict(value: Any) -> dict[str, Any]:
    """Return a dict, of a text that is an object in JSON as well. ``dict()`` would also take a list of texts of two
    characters."""
    found = json.loads(value) if isinstance(value, str | bytes) else value
    if not isinstance(found, Mapping):
        raise TypeError("not a dict")
    return dict(found)


#: Conversions as those of Scrapy's getters, so that values of the command line ("1", "a,b") have their usual meaning. A
#: value that these getters would turn into something else is refused.
CONVERSIONS: Final[Mapping[SettingType, Callable[[Any], Any]]] = {
    SettingType.BOOL: lambda value: BaseSettings({"value": value}).getbool("value"),
    SettingType.INT: _int,
    SettingType.BOOL_OR_INT: _bool_or_int,
    SettingType.FLOAT: float,
    SettingType.STR: _str,
    SettingType.LIST: _list,
    SettingType.DICT: _dict,
}
#: Remedies for values of types whose form on the command line is not obvious.
REMEDIES: Final[Mapping[SettingType, str]] = {
    SettingType.BOOL: "Write True or False.",
    SettingType.BOOL_OR_INT: "Write True, False or a whole number.",
    SettingType.LIST: "Write a list in settings.py, or the values with commas between them after -s.",
    SettingType.DICT: 'Write a dict in settings.py, or JSON after -s: {"name": "value"}, in double quotes.',
}

"""A crawl's stats as JSON values that the platform can store.

Spiders put anything into stats: pages, exceptions, objects that contain themselves. None of it may keep a job from
ending, so each stat is converted on its own, and all of them together are bounded:

1. A value that cannot be converted becomes a text that says so.
2. While all are larger than :data:`MAX_BYTES`, the largest value becomes its beginning with a mark.
3. Of many small stats that are larger together, the last of the largest group (the part of a name before its first
   slash) are left out, and stat :data:`LEFT_OUT` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.stat_kinds import INTEGERS, LEFT_OUT, MAX_BYTES, leave_out, sizes_of
from scrapy_ext.api.violations import encodable

#: Levels of nested values, and nested values of all stats together.
_MAX_DEPTH: Final = 32
_MAX_NESTED: Final = 100_000
#: Characters that are left of a shortened value, and of a name.
KEPT: Final = 500

_encode = msgspec.json.encode


class PlainStats(NamedTuple):
    """Stats to store, the names of those that are shortened or not shown, and the number of those left out."""

    stats: dict[str, Any]
    shortened: list[str]
    left_out: int


def plain_stats(stats: Mapping[Any, Any], most: int = MAX_BYTES) -> PlainStats:
    """Return stats as JSON values of at most ``most`` bytes; never raises.

    Times become milliseconds since the epoch, types that JSON lacks become text.
    """
    plain: dict[str, Any] = {}
    shortened: set[str] = set()
    conversion = _Conversion()
    for name, value in list(stats.items()):
        shown = _name(name)
        try:
            plain[shown] = conversion.plain(value, 0)
        except Exception as error:
            # An object of a spider raises anything when it is shown.
            plain[shown] = _not_shown(value, error)
            shortened.add(shown)
    sizes = sizes_of(plain)
    shortened.update(_shorten(plain, sizes, most))
    left_out = leave_out(plain, sizes, most)
    if left_out:
        plain[LEFT_OUT] = left_out
    return PlainStats(plain, sorted(shortened & plain.keys()), left_out)


def plain_reason(reason: object) -> str:
    """Return a close reason as a job can have it: ``CloseSpider`` takes any object."""
    return _name(reason)


class _Conversion:
    """Conversion of the stats of one moment."""

    def __init__(self) -> None:
        self._nested = 0

    def plain(self, value: object, depth: int) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return int(value) if value in INTEGERS else str(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else repr(float(value))
        if isinstance(value, datetime):
            return _milliseconds(value)
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, Mapping):
            return {_name(name): self._member(member, depth) for name, member in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._member(member, depth) for member in value]
        return encodable(str(value))

    def _member(self, value: object, depth: int) -> Any:
        self._nested += 1
        if depth >= _MAX_DEPTH or self._nested > _MAX_NESTED:
            raise ValueError("it is nested too deep, contains itself, or has too many values")
        return self.plain(value, depth + 1)


def _milliseconds(time: datetime) -> int | str:
    try:
        return int(time.timestamp() * 1000)
    except (OverflowError, ValueError, OSError):
        # Outside of the times that the clock of this machine knows, such as datetime.min.
        return time.isoformat()


def _name(name: object) -> str:
    try:
        return _cut(encodable(str(name)))
    except Exception as error:
        return _not_shown(name, error)


def _not_shown(value: object, error: Exception) -> str:
    return f"({type(value).__name__}, not stored: {type(error).__name__})"


def _cut(text: str) -> str:
    return text if len(text) <= KEPT else f"{text[:KEPT]}... (shortened from {len(text)} characters)"


def _shorten(plain: dict[str, Any], sizes: dict[str, int], most: int) -> list[str]:
    """Shorten the largest values until all fit, or none is large; return their names."""
    shortened: list[str] = []
    excess = sum(sizes.values()) - most
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        # Six bytes of JSON a character at most, and a name as long as a value.
        if excess <= 0 or sizes[name] <= 2 * 6 * KEPT:
            break
        value = plain[name]
        plain[name] = _cut(value if isinstance(value, str) else _encode(value).decode())
        size = len(_encode({name: plain[name]}))
        excess -= sizes[name] - size
        sizes[name] = size
        shortened.append(name)
    return shortened

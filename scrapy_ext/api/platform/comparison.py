"""Comparison of two jobs: stats, fields of the items, and items by the value of a field.

An item of the second job with a value that no item of the first one has is new, and gone the other way round. With the
same value and other contents it is changed. Fields that start with ``_`` are not compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

#: Fields that identify an item, the surest first.
_IDENTIFYING: Final = ("id", "_id", "sku", "gtin", "productId", "asin", "isbn", "uuid", "url", "link", "name", "title")
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Change(NamedTuple):
    """A value of two jobs; None: one of them does not have it. ``difference``: of two numbers."""

    name: str
    before: Any
    after: Any
    difference: float | None

    @property
    def is_same(self) -> bool:
        return type(self.before) is type(self.after) and bool(self.before == self.after)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the values of two mappings by name. A missing number counts as 0 in its difference."""
    return [
        Change(name, before.get(name), after.get(name), _difference(before.get(name, 0), after.get(name, 0)))
        for name in sorted({*before, *after})
    ]


def _difference(before: Any, after: Any) -> float | None:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    return after - before if numbers else None


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any], ignored: Collection[str]) -> list[Change]:
    """Return the fields of an item whose values differ."""
    return [
        change
        for change in changes(before, after)
        if not change.name.startswith("_") and change.name not in ignored and not change.is_same
    ]


def suggested_field(before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    """Return the field that probably identifies the items of both jobs, given the number of items with each field."""
    common = {name: min(before[name], after[name]) for name in before if name in after}
    if not common:
        return None
    most = max(common.values())
    sure = [name for name in _IDENTIFYING if common.get(name, 0) * 10 >= most * 9]
    return sure[0] if sure else max(sorted(common), key=lambda name: common[name])


class ItemIndex:
    """Items of a job by the value of a field: the index of each item, and a digest of its other fields."""

    def __init__(self, field: str, ignored: Collection[str] = ()) -> None:
        self._field = field
        self._ignored = frozenset(ignored)
        self.items: dict[bytes, tuple[int, bytes]] = {}
        #: Items without the field, and items whose value an earlier item has.
        self.without = 0
        self.repeated = 0

    def add(self, number: int, line: bytes) -> None:
        """Add an item as JSON."""
        fields = _fields(line)
        value = fields.get(self._field)
        if value is None or bytes(value) == b"null":
            self.without += 1
            return
        contents = blake2b(digest_size=12)
        for name in sorted(fields):
            if not name.startswith("_") and name not in self._ignored:
                contents.update(name.encode() + b"\0" + bytes(fields[name]) + b"\0")
        key = blake2b(bytes(value), digest_size=12).digest()
        if key in self.items:
            self.repeated += 1
        else:
            self.items[key] = (number, contents.digest())


class ItemChanges(NamedTuple):
    """Indexes of items: ``new`` of the second job, ``gone`` of the first, ``changed`` of both. ``same``: a number."""

    new: list[int]
    gone: list[int]
    changed: list[tuple[int, int]]
    same: int


def compare_items(before: ItemIndex, after: ItemIndex) -> ItemChanges:
    found = ItemChanges([], [], [], 0)
    same = 0
    for key, (number, digest) in after.items.items():
        known = before.items.get(key)
        if known is None:
            found.new.append(number)
        elif known[1] != digest:
            found.changed.append((known[0], number))
        else:
            same += 1
    found.gone.extend(number for key, (number, _) in before.items.items() if key not in after.items)
    return found._replace(same=same)


def median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
